#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, then builds and runs all tests twice: release with g++, and with
# clang++, assertions and the address and undefined-behaviour sanitizers. Ends with the sum.
# usage: ./test.sh [release] [sanitize]     default: both
#        ./test.sh quick                    what a change needs while it is being made
# quick: release only, without the tests that walk or measure for long; it says which those are.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source tools/build.sh

declare -A options=(
  [release]=""
  # Optimisation costs most of a build's time: only what tests run for minutes has some. SSE4 takes
  # the paths of the baseline, which the sanitizers see better. Line tables are enough for a trace.
  [sanitize]="-Db_sanitize=address,undefined -Db_lundef=false -Dbuildtype=debug -Doptimization=0
              -Ddebug=false -Db_ndebug=false -Dcpp_args=-gline-tables-only -Dskip_targets=SSE4"
)
# Tests ask for more memory than there is, and want the null pointer. The leak checker crashes on
# thread-local storage of libraries loaded late (oneDNN), unless:
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1:intercept_tls_get_addr=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

timed() { # timed FILE WHAT COMMAND...: adds "WHAT seconds" to the file
  local file=$1 what=$2 start=$SECONDS status=0
  shift 2
  "$@" || status=$?
  echo "$what $((SECONDS - start))" >>"$file"
  return $status
}

run_part() (
  part=$1 dir=build-$1
  shift
  echo "== $part"
  mkdir -p "$dir"
  rm -f "$dir"/meson-logs/testlog.* "$dir/part_times.txt"
  [ "$part" != sanitize ] || export CC=clang CXX=clang++
  # shellcheck disable=SC2086  # options are words
  timed "$dir/part_times.txt" configure configure "$dir" ${options[$part]} &&
    timed "$dir/part_times.txt" build ninja -C "$dir" --quiet &&
    timed "$dir/part_times.txt" tests meson test -C "$dir" --no-rebuild --print-errorlogs "$@"
)

arguments=()
case "${1:-}" in
  quick)
    parts=(release)
    arguments=(--no-suite long)
    ;;
  '') parts=(release sanitize) ;;
  *) parts=("$@") ;;
esac
for part in "${parts[@]}"; do
  if [ -z "${options[$part]+known}" ]; then
    echo "test.sh: expected quick, or release and sanitize, got $part"
    exit 2
  fi
done
tools/dependencies.sh --tests

broken=0
for part in "${parts[@]}"; do
  SECONDS=0
  run_part "$part" "${arguments[@]}" || broken=1
  echo "== $part took $SECONDS s"
done
python3 tools/count_tests.py "${parts[@]/#/build-}" || broken=1
if [ "${1:-}" = quick ]; then
  echo "Left out, for ./test.sh before landing: the sanitizers and clang++, and the tests" \
    "$(meson test -C build-release --no-rebuild --list --suite long 2>/dev/null |
      sed 's/.* \/ //' | sort | paste -sd ' ')"
fi
exit $broken
