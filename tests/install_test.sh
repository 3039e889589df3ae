#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs into an empty folder; a program that knows nothing but pkg-config must build against it
# and train; the library must export nothing but its interface, and need no BLAS and no CUDA.
# usage: install_test.sh BUILD_FOLDER SOURCE_FOLDER, with CXX and CXXFLAGS in the environment
set -euo pipefail
build=$1 source=$2
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

fail() {
  echo "install_test: $*"
  exit 1
}

DESTDIR=$root meson install -C "$build" --no-rebuild --quiet
description=$(find "$root" -name rnntune.pc)
[ -f "$description" ] || fail "no rnntune.pc was installed"
export PKG_CONFIG_PATH=${description%/*} PKG_CONFIG_SYSROOT_DIR=$root
library=$(find "$root" -name librnntune.so)

# CXX and CXXFLAGS are words.
# shellcheck disable=SC2046,SC2086
$CXX -std=c++20 $CXXFLAGS "$source/examples/train.cpp" $(pkg-config --cflags --libs rnntune) \
  -o "$root/train"
LD_LIBRARY_PATH=${library%/*} "$root/train" --problem lstm:L1,T8,B16,I1,H16,f32 --steps 300

readelf -d "$library" | grep -q 'SONAME.*\[librnntune\.so\.[0-9]*\]' || fail "no SONAME"
exported=$(nm -D --defined-only --format=posix "$library" | cut -d ' ' -f 1)
grep -q '^rnntune_version$' <<<"$exported" || fail "rnntune_version is not exported"
others=$(grep -vE '^(rnntune_|_ZN7rnntune|_ZNK7rnntune|_ZT[ISV]N7rnntune)' <<<"$exported" || true)
[ -z "$others" ] || fail "exported besides the interface: $others"
inside=$(grep -E '^_ZNK?7rnntune(3cpu|4cuda|6detail)' <<<"$exported" || true)
[ -z "$inside" ] || fail "exported from the inside: $inside"
needed() { readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p'; }
cuda='cuda|cudnn|cublas|nvrtc|cupti|nvperf|nvjitlink'
linked=$(needed "$library" | grep -iE "blas|mkl|dnnl|$cuda" || true)
[ -z "$linked" ] || fail "needs at load time: $linked"
program=$(find "$root" -name rnntune -type f)
[ -x "$program" ] || fail "no rnntune was installed"
linked=$(needed "$program" | grep -iE "$cuda" || true)
[ -z "$linked" ] || fail "$program needs at load time: $linked"
