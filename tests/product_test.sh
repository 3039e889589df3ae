#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What README shows works with what quickstart.sh builds, which is the target `product` alone: the
# program, and the library that README's lines link.
# usage: product_test.sh BUILD_FOLDER SOURCE_FOLDER, with CXX and CXXFLAGS in the environment
set -euo pipefail
build=$1 source=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  echo "product_test: $*"
  exit 1
}

# Not whether they are there, since tests build everything, but whether `product` makes them.
inputs=$(ninja -C "$build" -t query product | tr -d " |")
for link in kernels/librnntune.so kernels/librnntune.so.0; do
  file=$(realpath --relative-to="$build" "$build/$link")
  [ -f "$build/$file" ] || fail "$link is a link to nothing"
  grep -qxF "$file" <<<"$inputs" || fail "the target product does not build $file, which $link is"
done
grep -qxF tuner/rnntune <<<"$inputs" || fail "the target product does not build tuner/rnntune"

# CXX and CXXFLAGS are words.
# shellcheck disable=SC2086
$CXX -std=c++20 $CXXFLAGS -I "$source/kernels/include" "$source/examples/train.cpp" \
  -L "$build/kernels" -lrnntune -o "$scratch/train"
LD_LIBRARY_PATH=$build/kernels "$scratch/train" --problem lstm:L1,T8,B16,I1,H16,f32 --steps 300 \
  >"$scratch/log" ||
  fail "$(tail -n 1 "$scratch/log")"
