#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, and only that: distribution packages (as root or through sudo), and the
# newest oneDNN from PyPI into .venv of the checkout.
# usage: tools/dependencies.sh [--tests]     --tests: also what ./test.sh needs beside a build
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build_packages=(
  g++ ccache meson ninja-build pkg-config python3 python3-venv
  libhwy-dev libdnnl-dev libopenblas-openmp-dev nlohmann-json3-dev libcli11-dev libbenchmark-dev
  libgtest-dev libgmock-dev libjs-vega zlib1g-dev
)
test_packages=(clang libclang-rt-dev libomp-dev python3-jsonschema)

# The newest oneDNN on PyPI with a CPU runtime of its own (3.2, OpenMP, 40 MB, loads nothing else).
# The package `onednn` (3.13) has a SYCL engine only: it takes OpenCL and 0.6 GB of wheels, cannot
# be held to a thread count, and its f32 LSTM step was no faster where it was measured.
wheels=(onednn-cpu-gomp onednn-devel-cpu-gomp)

install_packages() {
  local missing=() package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
      missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  local apt=(apt-get)
  if [ "$(id -u)" != 0 ]; then
    # sudo may ask for a password only where somebody can answer.
    if command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
      apt=(sudo apt-get)
    else
      echo "Packages are missing. As root, run:"
      echo "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
      exit 1
    fi
  fi
  echo "Installing ${#missing[@]} packages: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  local log
  log=$(mktemp)
  if ! { "${apt[@]}" update -qq &&
    "${apt[@]}" install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log"
    exit 1
  fi
  rm -f "$log"
}

install_wheels() {
  local stamp=.venv/onednn-wheels
  [ "$(cat "$stamp" 2>/dev/null)" != "${wheels[*]}" ] || return 0
  [ -x .venv/bin/pip ] || "$python" -m venv .venv
  echo "Fetching the newest oneDNN from PyPI into .venv"
  # --no-deps: the list above is complete for the CPU engine.
  if .venv/bin/pip install --quiet --disable-pip-version-check --retries 1 --upgrade --no-deps \
    "${wheels[@]}" 2>.venv/pip.log; then
    echo "${wheels[*]}" >"$stamp"
  else
    echo "PyPI gave no oneDNN (.venv/pip.log); going on with the distribution's."
  fi
}

[ "${1:-}" = --tests ] || test_packages=()
if command -v apt-get >/dev/null; then
  install_packages "${build_packages[@]}" "${test_packages[@]}"
else
  echo "No apt-get here; needed, by Debian's names: ${build_packages[*]} ${test_packages[*]}"
fi
# The distribution's Python where there is one: another may lack venv.
python=python3
[ ! -x /usr/bin/python3 ] || python=/usr/bin/python3
install_wheels
