#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, then builds and runs all tests three times: release with g++, with
# clang++, and with the address and undefined-behaviour sanitizers. Ends with the sum.
# usage: ./test.sh [release] [clang] [sanitize]     default: all three
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source tools/build.sh

# Optimisation costs most of a build's time and speed is not tested here, so only release has it in
# full; every part runs every test program.
declare -A options=(
  [release]=""
  [clang]="-Doptimization=1"
  [sanitize]="-Db_sanitize=address,undefined -Dbuildtype=debug -Doptimization=0"
)
# Tests ask for more memory than there is, and want the null pointer. The leak checker crashes on
# thread-local storage of libraries loaded late (oneDNN), unless:
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1:intercept_tls_get_addr=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

run_part() (
  part=$1 dir=build-$1
  echo "== $part"
  rm -f "$dir"/meson-logs/testlog.*
  [ "$part" != clang ] || export CC=clang CXX=clang++
  # shellcheck disable=SC2086  # options are words
  configure "$dir" ${options[$part]} && ninja -C "$dir" --quiet &&
    meson test -C "$dir" --no-rebuild --print-errorlogs
)

parts=("$@")
[ $# -gt 0 ] || parts=(release clang sanitize)
for part in "${parts[@]}"; do
  if [ -z "${options[$part]+known}" ]; then
    echo "test.sh: expected release, clang or sanitize, got $part"
    exit 2
  fi
done
tools/dependencies.sh --tests

broken=0
for part in "${parts[@]}"; do
  SECONDS=0
  run_part "$part" || broken=1
  echo "== $part took $SECONDS s"
done
python3 tools/count_tests.py "${parts[@]/#/build-}" || broken=1
exit $broken
