#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line share: the program in an empty folder of its own."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
TINY = "lstm:T3,B2,I4,H5"


class CommandTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.cwd = pathlib.Path(self.folder.name)
        self.env = dict(os.environ, XDG_CACHE_HOME=str(self.cwd / "cache"),
                        XDG_DATA_HOME=str(self.cwd / "data"), OMP_WAIT_POLICY="passive")

    def run_it(self, *args, code=0):
        done = self.run_once(*args)
        # The checker itself, at the exit of one of some fifty processes that had many threads.
        if "LeakSanitizer has encountered a fatal error" in done.stderr:
            self.without_leak_check()
            done = self.run_once(*args)
        self.assertEqual(done.returncode, code, f"{args}: {done.stdout}{done.stderr}")
        return done

    def run_once(self, *args):
        return subprocess.run([PROGRAM, *args], cwd=self.cwd, env=self.env, text=True,
                              capture_output=True, timeout=240)

    def without_leak_check(self):
        self.env["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

    def refused(self, *args, says):
        done = self.run_it(*args, code=2)
        self.assertIn(says, done.stderr)
        self.assertIn("usage: rnntune", done.stderr)
        self.assertEqual(done.stdout, "")

    def tune(self, *args, code=0):
        return self.run_it("tune", "--problem", TINY, "--against", "unfused", *args, code=code)

    def journal(self):
        lines = (self.cwd / "rnntune.journal.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
