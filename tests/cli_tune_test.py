#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tune` as a user meets it: interruption, resuming, and opponents that crash.

Usage: cli_tune_test.py RNNTUNE PLUGIN [TEST...], with the paths of the program and of an opponent
that is broken on purpose (broken_plugin.cpp).
"""

import collections
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from cli_fixture import PROGRAM, TINY, CommandTest

PLUGIN = str(pathlib.Path(sys.argv.pop(1)).resolve())


class TuneTest(CommandTest):
    """Tests that share what a first `tune` measures of the machine."""

    @classmethod
    def setUpClass(cls):
        cls.cache = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.cache.cleanup)

    def setUp(self):
        super().setUp()
        self.env["XDG_CACHE_HOME"] = self.cache.name
        # What `tune` wrote would be there when run_it asks a second time.
        self.without_leak_check()


class Opponents(TuneTest):
    """A library that crashes costs its own comparison and no more."""

    def setUp(self):
        super().setUp()
        # A sanitizer would make an exit of its own out of the signal.
        self.env["ASAN_OPTIONS"] += ":handle_segv=0"
        # Plugins are looked for beside the program first.
        self.program = self.cwd / "rnntune"
        shutil.copy(PROGRAM, self.program)
        for name in ("system", "wheel"):
            shutil.copy(PLUGIN, self.cwd / f"rnntune_onednn_{name}.so")

    def run_here(self, *args, code=0, **env):
        done = subprocess.run([self.program, *args], cwd=self.cwd, env={**self.env, **env},
                              text=True, capture_output=True, timeout=240)
        self.assertEqual(done.returncode, code, f"{args}: {done.stdout}{done.stderr}")
        return done

    def entry(self):
        database = json.loads((self.cwd / "rnntune.db.json").read_text())
        return database["devices"][0]["entries"][0]

    def test_an_opponent_that_aborts_is_told_and_the_entry_kept(self):
        for when in ("prepare", "step 3", "step 40"):
            done = self.run_here("tune", TINY, "--evaluations", "2", "--budget", "2",
                                 RNNTUNE_TEST_PLUGIN=when + " abort")
            self.assertRegex(done.stderr, r"no onednn: the process of the comparison died of "
                             r"signal 6 \(Aborted\): .*, while (preparing|timing) ")
            self.assertEqual([a["opponent"] for a in self.entry()["against"]], ["unfused"])
            final = [r for r in self.journal() if r["type"] == "final"][-1]
            self.assertIn("signal 6", json.dumps(final["notes"]))

    def test_bench_goes_on_without_it(self):
        for how, told in (("abort", "signal 6"), ("exit", "exited with 0"),
                          ("segv", "signal 11")):
            done = self.run_here("bench", TINY, "--against", "onednn,unfused", "--budget", "0.5",
                                 code=3, RNNTUNE_TEST_PLUGIN="step 5 " + how)
            self.assertIn(told, done.stderr)
            self.assertRegex(done.stdout, r"(?m)^  unfused .* ratio ")
            self.assertNotRegex(done.stdout, r"(?m)^  onednn ")

    def test_a_library_that_gives_wrong_results_is_no_opponent(self):
        done = self.run_here("bench", TINY, "--against", "onednn", "--budget", "0.5", code=3,
                             RNNTUNE_TEST_PLUGIN="wrong")
        self.assertIn("reference broken", done.stderr)


class Tuning(TuneTest):
    def test_every_evaluation_is_announced_and_the_winner_saved(self):
        done = self.tune("--evaluations", "6", "--seed", "3")
        self.assertNotIn("\r", done.stderr)  # no progress bar in a pipe
        journal = self.journal()
        self.assertEqual(journal[0]["type"], "session")
        self.assertEqual(journal[0]["format"], "rnntune-journal")
        for before, after in zip(journal[1:-1:2], journal[2:-1:2]):
            self.assertEqual((before["type"], after["type"]), ("start", "outcome"))
            self.assertEqual(before["config"], after["config"])
        self.assertEqual(journal[-1]["type"], "final")
        self.assertEqual(journal[-1]["evaluations"], 6)
        self.assertFalse(journal[-1]["complete"])
        self.assertEqual(journal[-1]["against"][0]["opponent"], "unfused")
        database = json.loads((self.cwd / "rnntune.db.json").read_text())
        entry = database["devices"][0]["entries"][0]
        self.assertEqual(entry["config"], journal[-1]["config"])
        self.assertEqual(entry["seed"], 3)

    def test_the_same_command_goes_on_where_it_was(self):
        self.tune("--evaluations", "3")
        done = self.tune("--evaluations", "5", "--json")
        problem = json.loads(done.stdout)["problems"][0]
        # The baseline may have won the race untried, which is a record more.
        self.assertIn((problem["evaluated"], problem["resumed"]), ((2, 3), (1, 4), (3, 3), (2, 4)))

    def test_each_strategy_within_a_time_budget(self):
        for strategy in ("local", "random", "exhaustive"):
            start = time.monotonic()
            self.tune("--strategy", strategy, "--budget", "1", "--journal", strategy)
            self.assertLess(time.monotonic() - start, 120)

    def test_killed_and_started_again_it_repeats_no_finished_evaluation(self):
        command = [PROGRAM, "tune", "--problem", TINY, "--against", "unfused",
                   "--evaluations", "30"]
        process = subprocess.Popen(command, cwd=self.cwd, env=self.env,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        journal = self.cwd / "rnntune.journal.jsonl"
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and process.poll() is None:
            if journal.exists() and journal.read_text().count('"outcome":"') >= 5:
                break
            time.sleep(0.01)
        process.kill()
        process.wait()
        self.assertEqual(process.returncode, -signal.SIGKILL, "it ended before it was killed")
        self.assertFalse((self.cwd / "rnntune.db.json").exists())

        subprocess.run(command, cwd=self.cwd, env=self.env, check=True, capture_output=True)
        records = self.journal()
        outcomes = collections.Counter(
            json.dumps(r["config"]) for r in records if r["type"] == "outcome")
        self.assertEqual(set(outcomes.values()), {1})
        self.assertIn(len(outcomes), (30, 31))  # the baseline may win the race untried
        starts = [json.dumps(r["config"]) for r in records if r["type"] == "start"]
        self.assertLessEqual(len(starts) - len(outcomes), 1)  # the one in flight, once more
        entries = json.loads((self.cwd / "rnntune.db.json").read_text())["devices"][0]["entries"]
        self.assertEqual(len(entries), 1)

    def test_a_config_in_flight_at_two_deaths_is_crashed(self):
        self.tune("--evaluations", "1")
        path = self.cwd / "rnntune.journal.jsonl"
        lines = path.read_text().splitlines()
        start = next(line for line in lines if '"type":"start"' in line)
        path.write_text("\n".join([lines[0], start, start]) + "\n")
        done = self.tune("--evaluations", "2", "--json")
        crashed = [r for r in self.journal() if r.get("outcome") == "crashed"]
        self.assertEqual([r["config"] for r in crashed], [json.loads(start)["config"]])
        self.assertEqual(json.loads(done.stdout)["problems"][0]["failed"], 1)

    def test_ctrl_c_saves_and_says_so(self):
        process = subprocess.Popen(
            [PROGRAM, "tune", "--problem", TINY, "--against", "unfused", "--budget", "100"],
            cwd=self.cwd, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        journal = self.cwd / "rnntune.journal.jsonl"
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if journal.exists() and '"outcome":"ok"' in journal.read_text():
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130, out + err)
        self.assertEqual(self.journal()[-1]["type"], "final")
        self.assertTrue((self.cwd / "rnntune.db.json").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
