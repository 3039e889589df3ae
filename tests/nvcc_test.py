#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nvcc compiles the device text without a warning, which NVRTC would keep to itself.

Usage: nvcc_test.py RNNTUNE SOURCE_ROOT [NVCC]. One instantiation of each kernel: warnings are of
the text. Skips without nvcc.
"""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ARCHITECTURE = "90"


def kernels(rnntune):
    """File and expression of the first instantiation of each kernel."""
    listed = subprocess.run([rnntune, "compile", "--list"], check=True, text=True,
                            capture_output=True).stdout
    first = {}
    for line in listed.splitlines():
        file, expression = line.split("\t")
        first.setdefault((file, expression.split("<")[0]), expression)
    return [(file, expression) for (file, _), expression in first.items()]


def program(rows):
    """A source in which every kernel is used, so that its template is compiled."""
    files = sorted({file for file, _ in rows})
    names = "".join(f"    reinterpret_cast<const void*>(&{name}),\n" for _, name in rows)
    includes = "".join(f'#include "cuda/{file}"\n' for file in files)
    return f"{includes}extern const void* const kernels[];\nconst void* const kernels[] = {{\n" \
           f"{names}}};\n"


def compile_with_nvcc(text):
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernels.cu")
        source.write_text(text)
        done = subprocess.run(
            [NVCC, "-std=c++20", f"-gencode=arch=compute_{ARCHITECTURE},code=sm_{ARCHITECTURE}",
             "-Werror=all-warnings", "-Xcompiler=-Wall,-Wextra", f"-I{ROOT}/kernels",
             f"-I{ROOT}/kernels/cuda", f"-I{ROOT}/kernels/include", "-c", source, "-o",
             Path(folder, "kernels.o")], text=True, capture_output=True)
        return done.returncode, done.stdout + done.stderr


class Nvcc(unittest.TestCase):
    def setUp(self):
        if not NVCC:
            self.skipTest("no nvcc")

    def test_every_kernel_without_a_warning(self):
        rows = kernels(RNNTUNE)
        self.assertGreater(len(rows), 0)
        code, output = compile_with_nvcc(program(rows))
        self.assertEqual((code, output), (0, ""))

    def test_a_warning_fails(self):
        code, output = compile_with_nvcc("__global__ void kernel() { int unused; }\n")
        self.assertNotEqual(code, 0)
        self.assertIn("unused", output)


if __name__ == "__main__":
    RNNTUNE, ROOT, NVCC = (*sys.argv[1:], "")[:3]
    unittest.main(argv=sys.argv[:1])
