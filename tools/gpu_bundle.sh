#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs what tools/gpu_check.sh needs into one file, for a machine with a GPU that has neither this
# checkout nor the distribution's packages: programs, suites, the list of tests, and every shared
# library but the driver and CUDA's. Unpack it there and run ./gpu_check.sh.
#
# usage: tools/gpu_bundle.sh [--build FOLDER] [OUT.tar]
#
# --build: build-release of the checkout by default
# OUT.tar: gpu-check.tar by default; compressed where it ends in .gz. The folder in it is gpu-check
#
# Fails when the unpacked files are more than 64 MiB.
set -euo pipefail
export LC_ALL=C

fail() {
  echo "gpu_bundle: $*" >&2
  exit 2
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build-release out=
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help)
      sed -n '7,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    --build)
      [ $# -gt 1 ] || fail "--build: expected a folder, got nothing"
      build=$2
      shift 2
      ;;
    -*) fail "expected --build or a file, got '$1'" ;;
    *)
      [ -z "$out" ] || fail "expected one file, got '$out' and '$1'"
      out=$1
      shift
      ;;
  esac
done
out=${out:-gpu-check.tar}
tests=$build/tests/gpu_tests.txt
[ -f "$tests" ] || fail "no $tests: build first (ninja -C build-release), or name another --build"

programs=("$build/tuner/rnntune")
while read -r name share rest; do
  [ -z "$share" ] || [[ $name == ['#/']* ]] || programs+=("$build/tests/$name")
done <"$tests"
for program in "${programs[@]}"; do
  [ -x "$program" ] || fail "no $program: build it (ninja -C build-release)"
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
bundle=$scratch/gpu-check
mkdir -p "$bundle"/{bin,lib,glibc,suites}
cp "$root/tools/gpu_check.sh" "$root/LICENSE" "$tests" "$bundle/"
cp "$root"/suites/*.json "$bundle/suites/"
for program in "${programs[@]}"; do
  cp "$program" "$bundle/bin/"
  strip "$bundle/bin/${program##*/}"
done

# Of the C library for a machine whose own is older than the programs; else it is not used.
libraries() {
  ldd "$@" | sed -n 's/^[[:space:]]*\(.* => \)\{0,1\}\(\/[^ ]*\) (0x.*/\2/p' | sort -u
}
while read -r library; do
  case ${library##*/} in
    libcuda.so* | libnvrtc* | libcublas* | libcudnn* | libcupti*) fail "it needs $library" ;;
    ld-linux* | libc.so* | libm.so* | libdl.so* | libpthread.so* | librt.so* | libmvec.so*)
      cp -L "$library" "$bundle/glibc/"
      ;;
    *)
      cp -L "$library" "$bundle/lib/"
      strip "$bundle/lib/${library##*/}"
      ;;
  esac
done < <(libraries "${programs[@]}")
# What a driver's libraries may ask of the C library beside that.
for name in libdl.so.2 libpthread.so.0 librt.so.1; do
  beside=$(dirname "$(libraries "${programs[0]}" | grep '/libc\.so')")/$name
  [ ! -f "$beside" ] || cp -L "$beside" "$bundle/glibc/"
done

bytes=$(du -sb "$bundle" | cut -f 1)
[ "$bytes" -le $((64 << 20)) ] || fail "$bytes bytes unpacked, more than 64 MiB"
compress=()
[[ $out != *.gz ]] || compress=(-z)
tar -C "$scratch" "${compress[@]}" --owner 0 --group 0 -cf "$out" gpu-check
echo "$out: $((bytes >> 20)) MiB unpacked"
echo "there: tar -xf $(basename "$out") && gpu-check/gpu_check.sh"
