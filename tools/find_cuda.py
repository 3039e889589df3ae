#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the include folders of the CUDA headers that a build needs, one a line; nothing if absent.

usage: find_cuda.py SOURCE_ROOT

A toolkit ($CUDA_HOME, $CUDA_PATH, /usr/local/cuda) has all of them in one folder, PyPI wheels in
.venv of the checkout in one for each package.
"""
import os
import pathlib
import sys

HEADERS = ["cuda.h", "nvrtc.h", "cublas_v2.h", "cublasLt.h", "driver_types.h"]


def candidates(root):
    for place in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        if place:
            root_of = pathlib.Path(place)
            # Some packages of the toolkit keep CUPTI's headers apart.
            yield [root_of / "include", root_of / "extras" / "CUPTI" / "include"]
    yield sorted(root.glob(".venv/lib/python*/site-packages/nvidia/*/include"))


def main(root):
    for folders in candidates(pathlib.Path(root)):
        if all(any((folder / header).is_file() for folder in folders) for header in HEADERS):
            print("\n".join(str(folder) for folder in folders if folder.is_dir()))
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
