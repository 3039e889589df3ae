#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Proves rnntune on the GPU of this machine, without network, and ends with a table of verdicts.
#
# usage: tools/gpu_check.sh [--device cuda:N|simt] [--out FOLDER] [--deadline SECONDS]
#                           [--only REGEX] [--build FOLDER] [--tests FILE]
#
# --device: cuda:0 by default; simt walks through the same parts on the emulator, with tiny problems
# --out: gpu-check-out by default; gets verdicts (Markdown, JSON), log, database, journal, results,
#        report
# --deadline: 540 by default; each part has a share of it and is killed past that
# --only: the parts whose name this finds; they share the whole deadline
# --build: build-release of the checkout by default; in a bundle of gpu_bundle.sh the bundle itself
# --tests: the list of test programs; by default the one of the build
#
# Exit codes: 0 all parts are fine, or skipped for a reason; 1 one failed or ran out of time; 2 bad
# usage; 3 no such device, and what needs none is fine.
set -uo pipefail
export LC_ALL=C

usage() {
  sed -n '5,15s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

fail() {
  echo "gpu_check: $*" >&2
  exit 2
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
device=cuda:0 out=gpu-check-out deadline=540 only='' build=$here/../build-release tests=
[ ! -x "$here/bin/rnntune" ] || build=$here
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help)
      usage
      exit 0
      ;;
    --device | --out | --deadline | --only | --build | --tests)
      [ $# -gt 1 ] || fail "$1: expected a value, got nothing"
      declare "${1#--}=$2"
      shift 2
      ;;
    *) fail "expected an option, got '$1'" ;;
  esac
done
[[ $deadline =~ ^[1-9][0-9]{0,5}$ ]] || fail "--deadline: expected seconds, got '$deadline'"
[[ $device =~ ^(cuda:[0-9]+|simt)$ ]] || fail "--device: expected cuda:N or simt, got '$device'"

scratch=$(mktemp -d) || fail "no temporary folder"
trap 'rm -rf "$scratch"' EXIT
# Nothing compiled earlier is used, and nothing is left on the machine.
with=(env "RNNTUNE_DEVICE=$device" "XDG_CACHE_HOME=$scratch/cache")
# A bundle keeps everything in one folder and brings its libraries.
if [ -x "$build/bin/rnntune" ]; then
  rnntune=$build/bin/rnntune programs=$build/bin suites=$build/suites
  with+=("RNNTUNE_SUITES=$suites" "LD_LIBRARY_PATH=$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
  tests=${tests:-$build/gpu_tests.txt}
else
  rnntune=$build/tuner/rnntune programs=$build/tests suites=$here/../suites
  with+=("RNNTUNE_SUITES=$suites")
  tests=${tests:-$build/tests/gpu_tests.txt}
fi
[ -x "$rnntune" ] || fail "no $rnntune: build it (ninja -C build-release), or name another --build"
[ -r "$tests" ] || fail "--tests: there is no '$tests'"
# On a machine whose C library is older than the bundle's programs they run on the bundle's own.
if [ -d "$build/glibc" ] && ! "${with[@]}" "$rnntune" --version >/dev/null 2>&1; then
  for loader in "$build"/glibc/ld-linux*; do
    with+=("$loader" --library-path "$build/glibc:$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
  done
fi
said=$("${with[@]}" "$rnntune" --version 2>&1) || fail "$rnntune does not run here: $said"
mkdir -p "$out" || fail "--out: cannot make '$out'"
out=$(cd "$out" && pwd)

names=() verdicts=() times=() evidences=()
json_text() {
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  printf '"%s"' "$(tr '\000-\037' ' ' <<<"$text" | sed 's/ $//')"
}

# Written after every part: the next one may end all of this.
write_verdicts() {
  local i
  {
    echo "| part | verdict | seconds | evidence |"
    echo "|---|---|---|---|"
    for i in "${!names[@]}"; do
      echo "| ${names[i]} | ${verdicts[i]} | ${times[i]} | ${evidences[i]//|/\\|} |"
    done
  } >"$out/verdict.md"
  {
    printf '{"device": %s, "deadline_s": %d, "parts": [' "$(json_text "$device")" "$deadline"
    for i in "${!names[@]}"; do
      [ "$i" = 0 ] || printf ','
      printf '\n  {"part": %s, "verdict": %s, "seconds": %d, "evidence": %s}' \
        "$(json_text "${names[i]}")" "$(json_text "${verdicts[i]}")" "${times[i]}" \
        "$(json_text "${evidences[i]}")"
    done
    printf '\n]}\n'
  } >"$out/verdict.json"
}

record() {
  names+=("$1") verdicts+=("$2") times+=("$3") evidences+=("$(tr '\t\r' '  ' <<<"${4:0:300}")")
  write_verdicts
  printf '%-12s %-9s %4d s  %s\n' "$1" "$2" "$3" "${4:0:160}" >&2
}

# What a log proves, in one line.
device_line() { grep "^cuda" "$1" | head -n 1; }
last_line() { grep -v '^[[:space:]]*$' "$1" | tail -n 1; }
matching_line() { grep -E "$absent" "$1" | tail -n 1; }
verified() {
  awk '/^ok +[^ ]+ cudnn /{library++; next} /^ok /{ok++} /^FAIL /{bad++}
    /^FAILED .* second reference/{bad++}
    / no second reference: /{alone++} /^skip /{skip++; $1 = ""; reason = $0}
    END {
      if (ok + bad + skip == 0) exit
      printf "%d of %d problems and variants right", ok, ok + bad
      if (library + alone) printf ", cuDNN agrees on %d of %d problems", library, library + alone
      if (skip) printf ", %d skipped, such as%s", skip, reason
      print ""
    }' "$1"
}
compiled() { grep ' compiled, ' "$1" | tail -n 1; }
tested() { grep -E '^\[  (PASSED|FAILED|SKIPPED) *\]' "$1" | head -n 3 | paste -sd ' ' -; }
answered() {
  awk '/^  FAILED /{bad++} /^  [a-z_]+: /{n++; last = $0}
    END {if (n + bad) printf "%d answers, %d failed; last:%s\n", n, bad, last}' "$1"
}
sanitized() { grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$1" | tail -n 1; }

# part NAME SHARE COMMAND...: runs it within its share of the deadline, of which all shares together
# make up the whole. Nothing runs while they are counted.
# evidence: the function that finds it; absent: a failure whose log has that is a skip.
part() {
  wanted "$1" || return 0
  if [ -n "$counting" ]; then
    total=$((total + $2))
    return
  fi
  local name=$1 limit=$(($2 * (deadline - grace) / total)) status=0 verdict line log=$scratch/log
  shift 2
  local left=$((deadline - SECONDS))
  [ "$limit" -gt 0 ] || limit=1
  [ "$limit" -le "$left" ] || limit=$left
  if [ "$limit" -le 0 ]; then
    record "$name" "timed out" 0 "the deadline of $deadline s had passed"
    return
  fi
  local start=$SECONDS
  timeout -k "$grace" "$limit" "$@" >"$log" 2>&1 </dev/null &
  child=$!
  wait "$child" || status=$?
  child=
  local took=$((SECONDS - start))
  {
    echo "== $name: $*"
    cat "$log"
    echo "== $name: status $status after $took s"
  } >>"$out/log.txt"
  line=$("${evidence:-last_line}" "$log")
  if [ "$status" = 0 ]; then
    verdict=ok
  elif [ "$status" = 124 ] || { [ "$status" = 137 ] && [ "$took" -ge "$limit" ]; }; then
    verdict="timed out"
    line="killed after $limit s${line:+; $line}"
  elif [ -n "${absent:-}" ] && grep -qE "$absent" "$log"; then
    verdict=skipped
    line=$(matching_line "$log")
  else
    verdict=failed
    line="status $status: ${line:-$(last_line "$log")}"
  fi
  record "$name" "$verdict" "$took" "${line:-no output}"
}

matched=''
wanted() { [[ $1 =~ $only ]] && matched=yes; }

skip() {
  ! wanted "$1" || [ -n "$counting" ] || record "$1" skipped 0 "$2"
}

# What needs the device.
gpu_part() {
  wanted "$1" || return 0
  if [ -n "$no_device" ]; then
    skip "$1" "$no_device"
  else
    part "$@"
  fi
}

child=''
grace=3
stop() {
  [ -z "$child" ] || kill "$child" 2>/dev/null
  record stopped "timed out" 0 "by a signal after $SECONDS s"
  exit 1
}
trap stop INT TERM

run=("${with[@]}" "$rnntune")
no_device='' sanitizer='' architecture=sm_90
problems=("$suites/gpu-check.json") search=(--budget 12) bench_s=6 against=cudnn,unfused
edge=("$suites/edge.json" --filter '^(one|two|primes|tail|input|batch_wide|layers|bias)')
tiny=(--problem "lstm:L2,T3,B2,I3,H5,f32")
if [ "$device" = simt ]; then
  problems=("${tiny[@]}") edge=("${tiny[@]}") search=(--evaluations 3 --budget 3)
  bench_s=2 against=unfused
elif timeout 20 "${run[@]}" devices --device "$device" >"$scratch/device" 2>&1; then
  architecture=$(sed -n 's/^  architecture *//p' "$scratch/device")
else
  no_device=$(head -n 1 "$scratch/device")
  no_device=${no_device#rnntune: }
fi
for place in "$(command -v compute-sanitizer)" /usr/local/cuda/bin/compute-sanitizer \
  "${CUDA_HOME:-/nowhere}/bin/compute-sanitizer"; do
  [ -n "$sanitizer" ] || [ ! -x "$place" ] || sanitizer=$place
done

# A row of the tests' list: a program of the build, or any by its path.
test_part() {
  local name=$1 share=$2 program=$programs/$1
  shift 2
  [[ $name != /* ]] || program=$name
  evidence=tested gpu_part "${name##*/}" "$share" "${with[@]}" "$program" "$@"
}

sanitizer_part() {
  local of=(verify --device "$device" --problem "lstm:L2,T3,B34,I5,H36,f32" --samples 2)
  if [ "$device" = simt ]; then
    skip "$1" "compute-sanitizer is for a CUDA device"
  elif [ -z "$sanitizer" ]; then
    skip "$1" "${no_device:-no compute-sanitizer on PATH or in the toolkit}"
  else
    absent='Device not supported' evidence=sanitized gpu_part "$1" 45 "$sanitizer" --tool "$1" \
      --error-exitcode 9 --target-processes all "${run[@]}" "${of[@]}"
  fi
}

all_parts() {
  local on=(--device "$device") row
  local files=(--db "$out/rnntune.db.json" --journal "$out/rnntune.journal.jsonl")
  evidence=device_line part devices 5 "${run[@]}" devices
  absent='no libnvrtc|built without CUDA' evidence=compiled part compile 35 "${run[@]}" compile \
    --architecture "$architecture"
  evidence=verified part cpu 10 "${run[@]}" verify --device cpu "${tiny[@]}" --samples 2
  evidence=verified part emulator 15 "${run[@]}" verify --device simt "${tiny[@]}" --samples 2
  evidence=verified gpu_part verify 60 "${run[@]}" verify "${on[@]}" "${edge[@]}" --samples 4
  evidence=verified gpu_part shapes 35 "${run[@]}" verify "${on[@]}" "${problems[@]}" --samples 2
  evidence=answered gpu_part questions 40 "${run[@]}" devices "${on[@]}" --measure \
    --filter 'barrier|memory|clusters|launch|step'
  evidence=answered gpu_part cudnn 65 "${run[@]}" devices "${on[@]}" --measure --filter cudnn
  while read -ra row; do
    [[ ${#row[@]} -lt 2 || ${row[0]} == '#'* ]] || test_part "${row[@]}"
  done <"$tests"
  sanitizer_part memcheck
  sanitizer_part racecheck
  gpu_part tune 70 "${run[@]}" tune "${problems[@]}" "${on[@]}" "${files[@]}" "${search[@]}"
  gpu_part bench 40 "${run[@]}" bench "${problems[@]}" "${on[@]}" --db "$out/rnntune.db.json" \
    --budget "$bench_s" --against "$against" --out "$out/bench.json"
  gpu_part report 5 "${run[@]}" report "${files[@]}" --results "$out/bench.json" \
    --html "$out/report.html" --markdown "$out/report.md"
}

: >"$out/log.txt"
rm -f "$out"/{rnntune.db.json,rnntune.journal.jsonl,bench.json,report.html,report.md}
total=0 counting=yes
all_parts
counting=
[ -n "$matched" ] || fail "--only: no part matches '$only'"
all_parts

cat "$out/verdict.md"
for verdict in "${verdicts[@]}"; do
  [[ $verdict == ok || $verdict == skipped ]] || exit 1
done
[ -z "$no_device" ] || exit 3
