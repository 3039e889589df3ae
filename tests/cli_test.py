#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line as a user meets it: exit codes, bad input, interruption, resuming.

Usage: cli_test.py RNNTUNE, with the path of the program.
"""

import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
SCHEMA_TEST = str(pathlib.Path(__file__).resolve().parent / "schema_test.py")
TINY = "lstm:T3,B2,I4,H5"


class CommandTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.cwd = pathlib.Path(self.folder.name)
        self.env = dict(os.environ, XDG_CACHE_HOME=str(self.cwd / "cache"),
                        XDG_DATA_HOME=str(self.cwd / "data"), OMP_WAIT_POLICY="passive")

    def run_it(self, *args, code=0):
        done = subprocess.run([PROGRAM, *args], cwd=self.cwd, env=self.env, text=True,
                              capture_output=True, timeout=240)
        self.assertEqual(done.returncode, code, f"{args}: {done.stdout}{done.stderr}")
        return done

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


class Usage(CommandTest):
    def test_help_and_version(self):
        self.assertIn("tune", self.run_it("--help").stdout)
        self.assertRegex(self.run_it("--version").stdout, r"^rnntune \d+\.\d+\.\d+\n$")
        for command in ("devices", "space", "inspect", "tune", "verify", "bench"):
            self.assertIn("--device", self.run_it(command, "--help").stdout)

    def test_the_emulated_device(self):
        shown = json.loads(self.run_it("devices", "--device", "simt", "--json").stdout)
        self.assertEqual(shown["devices"][0]["backend"], "simt")
        self.assertTrue(shown["devices"][0]["key"].startswith("simt;compute_capability="))
        choices = "expected one of simt, simt:checked, cpu, cuda, cuda:N, got "
        for name in ("simt:x", "gpu"):
            self.refused("devices", "--device", name, says=f"{choices}'{name}'")

    def test_what_it_does_not_know(self):
        self.refused(says="a subcommand is required")
        self.refused("tunee", says="tunee")
        self.refused("space", "--wat", says="--wat")
        self.refused("devices", "--device", "cuda:x", says="'cuda:x'")
        self.refused("devices", "--device", "cuda:4096", says="device cuda:4096: ")
        self.refused("devices", "--isa", "mmx", says="mmx")
        self.refused("tune", "--problem", TINY, "--strategy", "luck", says="--strategy")
        self.refused("bench", "--problem", TINY, "--against", "nobody", says="nobody")

    def test_problems(self):
        self.refused("space", says="expected a suite file or --problem")
        self.refused("space", "--problem", "lstm:T10,Babc", says="Babc")
        self.refused("space", "--problem", "gru,", says="gru")
        self.refused("space", "--problem", "lstm:T1,B1,I1,H0", says="H")
        self.refused("space", "missing.json", says="missing.json")
        self.refused("space", "--problem", TINY, "--filter", "lstmm",
                     says="no problem matches 'lstmm'")
        self.refused("space", "--problem", TINY, "--filter", "(", says="--filter")

    def test_numbers(self):
        for option in ("--timeout", "--budget"):
            for value in ("0", "-1", "abc", "nan", "inf"):
                self.refused("tune", "--problem", TINY, option, value, says=option)
        self.refused("tune", "--problem", TINY, "--evaluations", "0", says="--evaluations")
        self.refused("space", "--problem", TINY, "--threads", "0", says="--threads")
        self.refused("tune", "--problem", TINY, "--budget", "1", "--budget", "2", says="--budget")

    def test_files_that_cannot_be_written(self):
        (self.cwd / "folder").mkdir()
        for option in ("--db", "--journal"):
            for path in ("", "/nonexistent/x.json", "/dev/full", "folder"):
                self.refused("tune", "--problem", TINY, option, path, says=option)
        self.assertEqual(sorted(p.name for p in self.cwd.iterdir()), ["folder"])

    def test_a_damaged_database_is_named_and_left_alone(self):
        (self.cwd / "bad.json").write_text("{ not json")
        self.refused("tune", "--problem", TINY, "--db", "bad.json", says="bad.json")
        self.assertEqual((self.cwd / "bad.json").read_text(), "{ not json")


class Commands(CommandTest):
    def test_devices_says_why_there_is_none(self):
        shown = json.loads(self.run_it("devices", "--json").stdout)
        backends = [d["backend"] for d in shown["devices"]]
        self.assertEqual(backends[0], "cpu")
        absent = {row["backend"]: row["reason"] for row in shown["absent"]}
        self.assertNotEqual("cuda" in backends, "cuda" in absent)
        if "cuda" in absent:
            lines = self.run_it("devices").stdout.splitlines()
            self.assertIn("cuda: none: " + absent["cuda"], lines)
        # At once: 16 ms where it was measured; a context or a library of a toolkit takes hundreds.
        start = time.monotonic()
        self.run_it("devices", "--json")
        self.assertLess(time.monotonic() - start, 2)

    def test_compile(self):
        listed = self.run_it("compile", "--list").stdout.splitlines()
        self.assertTrue(all(line.count("\t") == 1 for line in listed))
        one = "^" + re.escape(listed[0].replace("\t", ":")) + "$"
        self.refused("compile", "--filter", "no such kernel", says="no kernel matches")
        self.refused("compile", "--filter", "(", says="--filter")
        done = subprocess.run([PROGRAM, "compile", "--architecture", "sm_90", "--json", "--filter",
                               one], cwd=self.cwd, env=self.env, text=True,
                              capture_output=True, timeout=240)
        if done.returncode == 2:
            self.assertRegex(done.stderr, "compiler: no libnvrtc|built without CUDA")
            self.skipTest(done.stderr.splitlines()[0])
        self.assertEqual(done.returncode, 0, done.stderr)
        row, = json.loads(done.stdout)["kernels"]
        self.assertGreater(row["registers"], 0)
        self.assertFalse(row["from_cache"])
        self.assertIn("sm_90: 1 of 1 compiled", done.stderr)
        again = self.run_it("compile", "--architecture", "sm_90", "--json", "--filter",
                            one).stdout
        self.assertTrue(json.loads(again)["kernels"][0]["from_cache"])
        self.assertIn("failed: ", self.run_it("compile", "--architecture", "sm_1", "--filter",
                                              one, code=1).stdout)

    def test_devices(self):
        shown = json.loads(self.run_it("devices", "--json").stdout)
        self.assertRegex(shown["cudnn"].get("version", shown["cudnn"].get("reason")), r"^\S.*$")
        self.assertRegex(self.run_it("devices").stdout, r"(?m)^cudnn: (9\.\d+\.\d+|none: .+)$")
        device = shown["devices"][0]
        self.assertEqual(device["backend"], "cpu")
        self.assertNotIn("limits", device)
        measured = json.loads(self.run_it("devices", "--measure", "--json").stdout)["devices"][0]
        for row in measured["limits"]:
            self.assertGreater(row["fma_peak_f32_gflops"], 0)
            self.assertGreater(min(p["gbytes_per_s"] for p in row["read_bandwidth"]), 0)
        again = json.loads(self.run_it("devices", "--json").stdout)["devices"][0]
        self.assertEqual(again["limits"], measured["limits"])

    def test_space(self):
        done = self.run_it("space", "--problem", TINY, "--json")
        problem = json.loads(done.stdout)["problems"][0]
        branches = {branch["variant"]: branch for branch in problem["branches"]}
        self.assertIn("unfused", branches)
        total = sum(branch.get("configs", 0) for branch in branches.values())
        self.assertEqual(problem["configs"], total)
        self.assertIn("unfused", self.run_it("space", "--problem", TINY).stdout)

    def inspected(self, *args):
        (self.cwd / "found.json").write_text(self.run_it("inspect", *args, "--json").stdout)
        done = subprocess.run([sys.executable, SCHEMA_TEST, "inspection", "found.json"],
                              cwd=self.cwd, text=True, capture_output=True)
        self.assertIn(done.returncode, (0, 77), done.stdout + done.stderr)
        return json.loads((self.cwd / "found.json").read_text())

    def test_inspect(self):
        command = ("inspect", "--problem", "lstm:L2,T5,B20,I64,H64", "--gpu", "a100")
        shown = self.run_it(*command).stdout
        for part in ("a100: A100 SXM4 40 GB, sm_80, 108 multiprocessors", "Memory of the plan",
                     "One training step", "Kernel launches", "Kernel resources", "Products",
                     "Memory accesses of the kernels"):
            self.assertIn(part, shown)
        self.assertRegex(shown, r"(?m)^  k2  pointwise_forward<4, true> +10 +1x5 +32x4$")
        found = self.inspected(*command[1:])
        self.assertEqual((found["format"], found["version"]), ("rnntune-inspection", 1))
        self.assertEqual(found["gpu"]["architecture"], "sm_80")
        result, = found["results"]
        flops = sum(row["count"] * row["flops"] for row in result["products"])
        self.assertEqual(flops, result["step_flops"])
        self.assertGreater(result["reserve_bytes"], 0)
        self.assertGreater(sum(row["launches"] for row in result["kernels"]), 20)
        for row in result["kernels"]:
            self.assertIn("lines" if "counted_share" in row else "not_counted", row)
        if "not_compiled" in result:
            self.assertRegex(result["not_compiled"], "libnvrtc|built without CUDA")
            self.assertIn(result["not_compiled"].splitlines()[0], shown)
            self.skipTest(result["not_compiled"])
        for row in result["kernels"]:
            self.assertGreater(row["resources"]["registers"], 0)
            self.assertGreater(row["resources"]["occupancy"], 0)

    def test_inspect_of_what_is_not_there(self):
        self.refused("inspect", "--problem", TINY, "--gpu", "h1000",
                     says="--gpu: expected one of v100, a100, ")
        self.refused("inspect", "--problem", TINY, "--gpu", "", says="--gpu: expected one of")
        self.refused("inspect", "--problem", TINY, "--gpu", "h100", "--device", "cpu",
                     says="--gpu names a GPU")
        self.refused("inspect", "--problem", TINY, "--gpu", "h100", "--device", "cuda:0",
                     says="give one of them")
        self.refused("inspect", "--problem", TINY, "--device", "simt:x", says="'simt:x'")
        self.refused("inspect", "--problem", TINY, "--config", "warp:a=1", says="--config")
        self.refused("inspect", "--problem", "gru:T3,B2,I4,H5", says="computes lstm, not gru")
        self.refused("inspect", says="expected a suite file or --problem")

    def test_inspect_of_a_cpu(self):
        shown = self.run_it("inspect", "--problem", TINY, "--device", "cpu").stdout
        self.assertRegex(shown, r"(?m)^  workspace ")
        found = self.inspected("--problem", TINY, "--device", "cpu")
        self.assertEqual(found["device"]["backend"], "cpu")
        self.assertGreater(found["results"][0]["packed_bytes"], 0)

    def test_verify(self):
        done = self.run_it("verify", "--problem", TINY, "--samples", "2")
        self.assertRegex(done.stdout, r"(?m)^ok .* unfused: \d of \d configs, worst \S+ error ")
        results = json.loads(self.run_it("verify", "--problem", TINY, "--json", "--samples",
                                         "1").stdout)["results"]
        self.assertTrue(all(row["failures"] == 0 for row in results))

    def test_verify_of_one_config(self):
        self.refused("verify", "--problem", TINY, "--config", "warp:a=1", says="--config")
        self.refused("verify", "--problem", TINY, "--config", "unfused:threads=many",
                     says="--config")
        self.tune("--evaluations", "1")
        config = [r for r in self.journal() if r["type"] == "final"][0]["config"]
        text = config["variant"] + ":" + ",".join(f"{k}={v}" for k, v in config["params"].items())
        done = self.run_it("verify", "--problem", TINY, "--config", text, "--seed", "5")
        self.assertIn("1 of 1 configs", done.stdout)

    def test_bench_against_what_is_not_here(self):
        done = self.run_it("bench", "--problem", TINY, "--against", "cudnn", "--budget", "1",
                           code=3)
        self.assertIn("no cudnn: cudnn is not at hand: runs on a cuda device, this one is cpu",
                      done.stderr)

    def test_bench(self):
        self.tune("--evaluations", "1")
        done = self.run_it("bench", "--problem", TINY, "--against", "unfused", "--budget", "2",
                           "--json", "--out", "results.json")
        results = json.loads(done.stdout)
        written = json.loads((self.cwd / "results.json").read_text())
        self.assertEqual(len(written["benchmarks"]), len(results["benchmarks"]))
        self.assertEqual(results["context"].get("json_schema_version", 1), 1)  # 1.8 and later
        self.assertIn("rnntune_device", results["context"])
        names = {row["run_name"].rsplit("/", 1)[1] for row in results["benchmarks"]}
        self.assertEqual(names, {"rnntune", "unfused"})
        medians = {row["run_name"].rsplit("/", 1)[1]: row for row in results["benchmarks"]
                   if row.get("aggregate_name") == "median"}
        self.assertEqual(json.loads(medians["rnntune"]["label"])["rung"], "exact")
        samples = [row["real_time"] for row in results["benchmarks"]
                   if row["run_type"] == "iteration" and row["run_name"].endswith("/rnntune")]
        self.assertAlmostEqual(medians["rnntune"]["real_time"],
                               sorted(samples)[len(samples) // 2], delta=max(samples))
        for row in medians.values():
            self.assertLess(row["validation_error"], row["validation_bound"])
            self.assertLessEqual(row["ratio_low"], row["ratio"])
            self.assertGreaterEqual(row["ratio_high"], row["ratio"])


class Tuning(CommandTest):
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
        self.assertEqual((problem["evaluated"], problem["resumed"]), (2, 3))

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
        self.assertEqual(len(outcomes), 30)
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
