# SPDX-License-Identifier: Apache-2.0
# Sourced by quickstart.sh and test.sh.

# configure DIR [MESON OPTION...]: a folder that is new, stale or left half done becomes ready.
configure() {
  local dir=$1 log=$1/setup.log
  shift
  [ -f "$dir/build.ninja" ] || rm -rf "$dir"
  mkdir -p "$dir"
  # Reconfiguring costs seconds and finds what was installed since, such as a newer oneDNN.
  local again=()
  [ ! -f "$dir/build.ninja" ] || again=(--reconfigure)
  if ! meson setup "${again[@]}" "$dir" "$@" >"$log" 2>&1; then
    tail -n 20 "$log"
    return 1
  fi
}
