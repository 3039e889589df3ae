# SPDX-License-Identifier: Apache-2.0
# Sourced by quickstart.sh and test.sh, with the checkout as working folder.

# Meson calls the compiler through ccache where there is one. It hits across checkouts in different
# folders: paths below the checkout count as relative, and the working folder not at all.
# Precompiled headers need the sloppiness that ccache's manual asks for.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_ctime,include_file_mtime

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
