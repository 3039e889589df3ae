#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A database that `rnntune tune` wrote, in the hands of a program that trains with the library.

database_use_test.py RNNTUNE TRAIN: the two binaries.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

RNNTUNE, TRAIN = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
SCHEMA_TEST = pathlib.Path(__file__).resolve().parent / "schema_test.py"
PROBLEM = "lstm:L1,T8,B16,I1,H16,f32"
NEIGHBOUR = "lstm:L1,T8,B24,I1,H16,f32"
STRANGER = "lstm:L1,T8,B16,I9,H16,f32"


class DatabaseUse(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.environment = {**os.environ, "RNNTUNE_DATABASES": "", "XDG_DATA_HOME": cls.folder.name,
                           "XDG_CACHE_HOME": cls.folder.name,
                           # See cli_fixture.py.
                           "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        cls.tuned = cls.run_in(RNNTUNE, "tune", "--problem", PROBLEM, "--evaluations", "4",
                               "--budget", "5", "--against", "onednn", "--db", "good.json")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def run_in(cls, *command):
        return subprocess.run(command, cwd=cls.path, env=cls.environment, text=True,
                              capture_output=True, check=False)

    def explained(self, database, problem=PROBLEM):
        """The explanation's line; whatever the rung, training must work."""
        done = self.run_in(TRAIN, "--db", database, "--problem", problem, "--steps", "300")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.splitlines()[0]

    def changed(self, name, edit):
        database = json.loads((self.path / "good.json").read_text())
        edit(database["devices"][0])
        (self.path / name).write_text(json.dumps(database))
        return name

    def test_tune_writes_a_sound_database(self):
        self.assertEqual(self.tuned.returncode, 0, self.tuned.stderr)
        done = self.run_in(RNNTUNE, "db", "validate", "good.json")
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        done = self.run_in(sys.executable, str(SCHEMA_TEST), "database", "good.json")
        self.assertIn(done.returncode, (0, 77), done.stdout + done.stderr)
        self.assertEqual(sorted(p.name for p in self.path.glob("good.json*")), ["good.json"])

    def test_exact(self):
        line = self.explained("good.json")
        self.assertTrue(line.startswith("exact: "), line)
        entry = json.loads((self.path / "good.json").read_text())["devices"][0]["entries"][0]
        config = entry["config"]
        params = ",".join(f"{name}={value}" for name, value in config["params"].items())
        self.assertIn(f"{config['variant']}:{params}", line)

    def test_nearest_says_which_and_how_far(self):
        line = self.explained("good.json", NEIGHBOUR)
        self.assertTrue(line.startswith("nearest: "), line)
        self.assertIn(PROBLEM, line)
        self.assertIn("0.58", line)

    def test_too_far_is_default(self):
        self.assertTrue(self.explained("good.json", STRANGER).startswith("default: "))

    def test_stale(self):
        name = self.changed("stale.json", lambda d: d["entries"][0].update(kernel_hash="then"))
        line = self.explained(name)
        self.assertTrue(line.startswith("stale: "), line)

    def test_architecture(self):
        name = self.changed("other.json", lambda d: d["device"].update(key="other silicon"))
        line = self.explained(name)
        self.assertTrue(line.startswith("architecture: "), line)
        self.assertIn("other silicon", line)

    def test_an_entry_out_of_the_space_is_passed_over(self):
        name = self.changed("out.json",
                            lambda d: d["entries"][0].update(config={"variant": "gone"}))
        line = self.explained(name)
        self.assertTrue(line.startswith("default: "), line)
        self.assertIn("passed over", line)

    def test_files_that_do_not_serve(self):
        text = (self.path / "good.json").read_text()
        (self.path / "empty.json").write_text("")
        (self.path / "cut.json").write_text(text[:len(text) // 2])
        (self.path / "newer.json").write_text(text.replace('"version":1', '"version":2'))
        for name in ("empty.json", "cut.json", "newer.json", "none.json", ""):
            before = (self.path / name).read_text() if (self.path / name).is_file() else None
            line = self.explained(name)
            self.assertTrue(line.startswith("default: "), line)
            self.assertIn(name or "the path is empty", line)
            if before is not None:
                self.assertEqual((self.path / name).read_text(), before)

    def test_tune_refuses_what_it_cannot_write_before_it_works(self):
        (self.path / "bad.json").write_text("{")
        for name in ("", "/nonexistent/x.json", "/dev/full", ".", "bad.json"):
            done = self.run_in(RNNTUNE, "tune", "--problem", PROBLEM, "--db", name,
                               "--journal", "refused.jsonl")
            self.assertEqual(done.returncode, 2, name + done.stderr)
            self.assertFalse((self.path / "refused.jsonl").exists(), name)
        self.assertEqual((self.path / "bad.json").read_text(), "{")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
