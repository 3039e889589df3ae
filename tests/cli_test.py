#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line as a user meets it: usage, exit codes, bad input, and what only looks
(cli_fixture.py has what it shares with the tests of `tune`).

Usage: cli_test.py RNNTUNE [TEST...], with the path of the program.
"""

import json
import pathlib
import re
import subprocess
import sys
import time
import unittest

from cli_fixture import PROGRAM, TINY, CommandTest

SCHEMA_TEST = str(pathlib.Path(__file__).resolve().parent / "schema_test.py")


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
        self.refused("space", says="expected a suite file or a problem string")
        self.refused("space", "--problem", "lstm:T10,Babc", says="Babc")
        self.refused("space", "--problem", "gru,", says="gru")
        self.refused("space", "--problem", "lstm:T1,B1,I1,H0", says="H")
        self.refused("space", "missing.json", says="missing.json")
        self.refused("space", "lstm:T0,B1,I1,H1", says="T: expected at least 1, got '0'")
        self.refused("tune", "lstmm:T1,B1,I1,H1", says="unknown cell 'lstmm'")
        self.refused("space", "--problem", TINY, "--filter", "lstmm",
                     says="no problem matches 'lstmm'")
        self.refused("space", "--problem", TINY, "--filter", "(", says="--filter")

    def test_a_problem_string_wherever_a_suite_is(self):
        for command in ("space", "verify", "bench", "inspect", "tune"):
            self.assertIn("problem strings", self.run_it(command, "--help").stdout)
        shown = json.loads(self.run_it("space", TINY, "lstm:T1,B1,I1,H1", "--json").stdout)
        self.assertEqual([p["problem"] for p in shown["problems"]],
                         ["lstm:L1,T3,B2,I4,H5,f32", "lstm:L1,T1,B1,I1,H1,f32"])
        self.assertIn("of 1 configs", self.run_it("verify", TINY, "--config", "unfused:threads=1,"
                                                  "blas=openblas,products=team").stdout)

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

    def test_a_database_that_was_named_must_be_there(self):
        (self.cwd / "cut.json").write_text('{"format":')
        (self.cwd / "newer.json").write_text(
            '{"format":"rnntune-database","version":99,"devices":[]}')
        for command in (("bench", "--against", "unfused"), ("inspect", "--device", "cpu")):
            for name in ("missing.json", "cut.json", "newer.json"):
                self.refused(command[0], TINY, *command[1:], "--db", name, says=name)
        (self.cwd / "empty.json").write_text(
            '{"format":"rnntune-database","version":1,"devices":[]}')
        done = self.run_it("bench", TINY, "--against", "unfused", "--budget", "0.2", "--db",
                           "empty.json")
        self.assertRegex(done.stderr, r"default: \w+:.*no usable entry of lstm:\S+ .*empty.json")
        shown = self.run_it("inspect", TINY, "--device", "cpu", "--db", "empty.json").stdout
        self.assertRegex(shown, "no usable entry of lstm:.*empty.json")
        # A place that nobody named may be empty, and that is no news.
        done = self.run_it("inspect", TINY, "--device", "cpu")
        self.assertNotIn("No such file", done.stdout + done.stderr)

    def test_threads_and_where_they_come_from(self):
        def threads(*args, **env):
            done = subprocess.run([PROGRAM, "devices", "--json", *args], cwd=self.cwd, text=True,
                                  env={**self.env, **env}, capture_output=True, check=True)
            device = json.loads(done.stdout)["devices"][0]
            return device["threads"], device["threads_from"]
        self.env.pop("OMP_NUM_THREADS", None)
        self.env.pop("OMP_THREAD_LIMIT", None)
        count, source = threads()
        self.assertIn(source, ("the affinity mask", "the control group's CPU quota"))
        self.assertEqual(threads("--threads", "3", OMP_NUM_THREADS="1"), (3, "the option"))
        self.assertEqual(threads(OMP_NUM_THREADS="4096"), (count, source))
        self.assertEqual(threads(OMP_NUM_THREADS="none"), (count, source))
        if count == 1:
            self.skipTest("one core: no limit is smaller")
        self.assertEqual(threads(OMP_NUM_THREADS="1"), (1, "OMP_NUM_THREADS"))
        self.assertEqual(threads(OMP_NUM_THREADS="1,2"), (1, "OMP_NUM_THREADS"))
        self.assertEqual(threads(OMP_THREAD_LIMIT="1"), (1, "OMP_THREAD_LIMIT"))
        shown = self.run_it("devices").stdout
        self.assertRegex(shown, rf"(?m)^  threads +{count}, from {source}$")

    def test_devices(self):
        shown = json.loads(self.run_it("devices", "--json").stdout)
        self.assertRegex(shown["cudnn"].get("version", shown["cudnn"].get("reason")), r"^\S.*$")
        self.assertRegex(self.run_it("devices").stdout, r"(?m)^cudnn: (9\.\d+\.\d+|none: .+)$")
        device = shown["devices"][0]
        self.assertEqual(device["backend"], "cpu")
        self.assertNotIn("limits", device)
        done = self.run_it("devices", "--measure", "--json")
        measured = json.loads(done.stdout)["devices"][0]
        for row in measured["limits"]:
            self.assertGreater(row["fma_peak_f32_gflops"], 0)
            self.assertGreater(min(p["gbytes_per_s"] for p in row["read_bandwidth"]), 0)
        again = json.loads(self.run_it("devices", "--json").stdout)["devices"][0]
        if "not cached" in done.stderr:  # other tests had the cores
            self.assertIn("other work had the cores", done.stderr)
            self.assertNotIn("limits", again)
        else:
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
        self.refused("inspect", says="expected a suite file or a problem string")

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


if __name__ == "__main__":
    unittest.main(verbosity=2)
