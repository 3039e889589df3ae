#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Brings the CUDA libraries that rnntune opens at run time (NVRTC, cuBLAS, cuDNN, CUPTI) from PyPI
# into a folder where it finds them, for a machine that has a driver and no toolkit.
#
# usage: tools/fetch_cuda.sh [--cuda 12|13] [FOLDER]
#
# --cuda: the major version; by default the one of the driver, 13 where there is none
# FOLDER: by default ~/.local/share/rnntune ($XDG_DATA_HOME), where rnntune looks by itself; for
#         another one set RNNTUNE_CUDA_WHEELS=FOLDER when running it
#
# Needs Python 3 with pip, 1.1 GB of download and up to 2.2 GB of disk. Nothing outside
# FOLDER/nvidia is touched, and that only when everything has arrived.
set -eu

usage() {
  sed -n '6,11s/^# \{0,1\}//p' "$0"
}

fail() {
  echo "fetch_cuda: $*" >&2
  exit 2
}

# 12 or 13: the newest CUDA that the driver runs.
version_of_driver() {
  "$python" - <<'EOF'
import ctypes
version = ctypes.c_int(0)
try:
    ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
except OSError:
    pass
print(12 if 0 < version.value < 13000 else 13)
EOF
}

python=${PYTHON:-python3}
cuda=
folder=
while [ $# -gt 0 ]; do
  case $1 in
    --cuda)
      [ $# -gt 1 ] || fail "--cuda: expected 12 or 13, got nothing"
      cuda=$2
      shift
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    -*) fail "expected --cuda or a folder, got '$1'" ;;
    *)
      [ -z "$folder" ] || fail "expected one folder, got '$folder' and '$1'"
      folder=$1
      ;;
  esac
  shift
done
"$python" -m pip --version >/dev/null 2>&1 ||
  fail "$python has no pip (Debian: apt install python3-pip)"
cuda=${cuda:-$(version_of_driver)}
if [ -z "$folder" ]; then
  folder=${XDG_DATA_HOME:-${HOME:?set HOME or name a folder}/.local/share}/rnntune
fi

case $cuda in
  13) set -- 'nvidia-cuda-nvrtc>=13,<14' 'nvidia-cublas>=13,<14' 'nvidia-cudnn-cu13>=9,<10' \
    'nvidia-cuda-cupti>=13,<14' ;;
  12) set -- 'nvidia-cuda-nvrtc-cu12>=12.8' 'nvidia-cublas-cu12>=12.8' 'nvidia-cudnn-cu12>=9,<10' \
    'nvidia-cuda-cupti-cu12>=12.8' ;;
  *) fail "--cuda: expected 12 or 13, got '$cuda'" ;;
esac

mkdir -p "$folder"
new=$(mktemp -d "$folder/.fetch_cuda.XXXXXX")
trap 'rm -rf "$new"' EXIT
trap 'exit 130' INT TERM
echo "fetching CUDA $cuda into $folder/nvidia" >&2
"$python" -m pip install --disable-pip-version-check --no-cache-dir --only-binary :all: \
  --target "$new" "$@" >&2
mv "$new"/*.dist-info "$new/nvidia/"  # their licences
rm -rf "$folder/nvidia"
mv "$new/nvidia" "$folder/nvidia"

missing=
for name in libnvrtc.so.$cuda libcublas.so.$cuda libcudnn.so.9 libcupti.so.$cuda; do
  ls "$folder"/nvidia/*/lib/$name 2>/dev/null || missing="$missing $name"
done
[ -z "$missing" ] || fail "the packages lack$missing"
