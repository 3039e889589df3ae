#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No library of CUDA may be a NEEDED entry: such a binary does not start where there is none.

Usage: needed_test.py ELF..., with a C compiler in CC. It reads the dynamic sections itself, and is
first proved on a program that does need one.
"""
import os
import shlex
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FORBIDDEN = ("libcuda", "libcudart", "libnvrtc", "libcublas", "libcudnn", "libcupti", "libnvperf",
             "libnvJitLink")
PT_LOAD, PT_DYNAMIC, DT_NEEDED, DT_STRTAB = 1, 2, 1, 5


def needed(path):
    """The NEEDED entries of a 64-bit little-endian ELF file."""
    data = Path(path).read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{path}: no 64-bit little-endian ELF file")
    start, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    segments = []  # type, offset, address, bytes
    for i in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, start + i * size)
        segments.append((kind, offset, address, length))
    entries = [struct.unpack_from("<QQ", data, at)
               for kind, offset, _, length in segments if kind == PT_DYNAMIC
               for at in range(offset, offset + length, 16)]
    table = dict(entries).get(DT_STRTAB)
    if table is None:
        raise ValueError(f"{path}: no dynamic section")
    strings = next(offset + table - address for kind, offset, address, length in segments
                   if kind == PT_LOAD and address <= table < address + length)
    names = [strings + value for tag, value in entries if tag == DT_NEEDED]
    return [data[at:data.index(b"\0", at)].decode() for at in names]


def forbidden(path):
    return [name for name in needed(path) if name.startswith(FORBIDDEN)]


class Needed(unittest.TestCase):
    def test_flags_a_program_that_needs_the_driver(self):
        compiler = shlex.split(os.environ["CC"])
        with tempfile.TemporaryDirectory() as folder:
            library, program = Path(folder, "libcuda.so.1"), Path(folder, "program")
            source = Path(folder, "source.c")
            source.write_text("int cuInit(unsigned flags) { return (int)flags; }\n")
            subprocess.run([*compiler, "-shared", "-fPIC", source, "-o", library,
                            "-Wl,-soname,libcuda.so.1"], check=True)
            source.write_text("int cuInit(unsigned);\nint main(void) { return cuInit(0); }\n")
            subprocess.run([*compiler, source, library, "-o", program], check=True)
            self.assertEqual(forbidden(program), ["libcuda.so.1"])

    def test_ours(self):
        self.assertTrue(FILES)
        for path in FILES:
            with self.subTest(path):
                self.assertIn("libc.so.6", needed(path))
                self.assertEqual(forbidden(path), [])


if __name__ == "__main__":
    FILES = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
