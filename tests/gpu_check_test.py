#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/gpu_check.sh on the emulator and without a device, from the build and from a bundle.

Usage: gpu_check_test.py RNNTUNE BUILD_ROOT SOURCE_ROOT
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

PARTS = ("devices", "cpu", "emulator", "verify", "shapes", "questions", "cudnn", "memcheck",
         "racecheck", "tune", "bench", "report")
# Nothing of this machine's settings but where programs of the system are.
EMPTY = {"PATH": "/usr/bin:/bin", "OMP_WAIT_POLICY": "passive"}


class GpuCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cwd = pathlib.Path(folder.name)
        self.tests = self.cwd / "tests.txt"
        self.tests.write_text("# none\n")

    def check(self, *args, code, script=None, env=EMPTY):
        """Runs it; the parts by their name."""
        if script is None:
            script = ROOT / "tools" / "gpu_check.sh"
            args += ("--build", str(BUILD), "--tests", str(self.tests))
        done = subprocess.run(["bash", str(script), *args, "--out", "out"], cwd=self.cwd, env=env,
                              text=True, capture_output=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        if code == 2:
            return done.stderr
        verdicts = json.loads((self.cwd / "out" / "verdict.json").read_text())["parts"]
        self.assertEqual((self.cwd / "out" / "verdict.md").read_text(), done.stdout)
        self.assertEqual(len(done.stdout.splitlines()), 2 + len(verdicts))
        return {row["part"]: row for row in verdicts}

    def test_every_part_on_the_emulator(self):
        parts = self.check("--device", "simt", code=0)
        verdicts = {name: row["verdict"] for name, row in parts.items()}
        compiled = verdicts.pop("compile")  # skipped where there is no NVRTC
        self.assertIn(compiled, ("ok", "skipped"))
        expected = dict.fromkeys(PARTS, "ok") | {"memcheck": "skipped", "racecheck": "skipped"}
        self.assertEqual(verdicts, expected)
        self.assertRegex(parts["verify"]["evidence"], r"^2 of 2 problems and variants right")
        self.assertRegex(parts["questions"]["evidence"], r"^\d+ answers, 0 failed")
        out = self.cwd / "out"
        database = json.loads((out / "rnntune.db.json").read_text())
        self.assertEqual(len(database["devices"][0]["entries"]), 1)
        self.assertTrue(json.loads((out / "bench.json").read_text())["benchmarks"])
        self.assertIn("lstm:", (out / "report.md").read_text())
        self.assertIn("<html", (out / "report.html").read_text())

    def test_a_part_that_fails_and_one_that_hangs_stop_no_other(self):
        self.tests.write_text("/bin/false 5\n/bin/sleep 1 300\n/bin/true 5\n")
        begin = time.monotonic()
        parts = self.check("--device", "simt", "--deadline", "90", "--only",
                           "^(false|sleep|true|emulator|devices)$", code=1)
        self.assertLess(time.monotonic() - begin, 40)
        self.assertEqual(list(parts), ["devices", "emulator", "false", "sleep", "true"])
        self.assertEqual([row["verdict"] for row in parts.values()],
                         ["ok", "ok", "failed", "timed out", "ok"])
        self.assertIn("status 1", parts["false"]["evidence"])
        self.assertIn("killed after", parts["sleep"]["evidence"])

    def test_a_program_that_ignores_signals_is_killed(self):
        stubborn = self.cwd / "stubborn"
        stubborn.write_text("#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 1; done\n")
        stubborn.chmod(0o755)
        self.tests.write_text(f"{stubborn} 10\n")
        parts = self.check("--device", "simt", "--deadline", "5", "--only", "stubborn", code=1)
        self.assertEqual(parts["stubborn"]["verdict"], "timed out")

    def test_no_gpu_is_told_and_is_no_failure(self):
        if not subprocess.run([RNNTUNE, "devices", "--device", "cuda:0"],
                              capture_output=True).returncode:
            self.skipTest("there is a GPU")
        parts = self.check("--only", "verify|tune|cpu", code=3)
        self.assertEqual({name: row["verdict"] for name, row in parts.items()},
                         {"cpu": "ok", "verify": "skipped", "tune": "skipped"})
        self.assertIn("cuda", parts["verify"]["evidence"].lower())
        self.assertIn("no part matches", self.check("--only", "nothing", code=2))

    def test_bad_usage(self):
        for args in (("--device", "cpu"), ("--deadline", "0"), ("--deadline",), ("extra",),
                     ("--tests", "/nonexistent")):
            done = subprocess.run(["bash", str(ROOT / "tools/gpu_check.sh"), "--build", str(BUILD),
                                   *args], cwd=self.cwd, env=EMPTY, text=True, capture_output=True)
            self.assertEqual(done.returncode, 2, args)
            self.assertIn("gpu_check: ", done.stderr)
        self.assertEqual(list(self.cwd.iterdir()), [self.tests])

    def bundle(self):
        if b"__asan_init" in RNNTUNE.read_bytes():
            self.skipTest("with the sanitizers a build is larger than a bundle may be")
        build = self.cwd / "build"  # with no test program: those may not be built
        (build / "tests").mkdir(parents=True)
        (build / "tuner").mkdir()
        (build / "tests" / "gpu_tests.txt").write_text("/bin/true 1\n")
        (build / "tuner" / "rnntune").symlink_to(RNNTUNE)
        done = subprocess.run(["bash", str(ROOT / "tools/gpu_bundle.sh"), "--build", str(build),
                               str(self.cwd / "gpu-check.tar")], text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        subprocess.run(["tar", "-xf", "gpu-check.tar"], cwd=self.cwd, check=True)
        return self.cwd / "gpu-check"

    def test_a_bundle_brings_its_libraries(self):
        bundle = self.bundle()
        size = sum(file.stat().st_size for file in bundle.rglob("*") if file.is_file())
        self.assertLess(size, 64 << 20)
        loaded = subprocess.run([bundle / "bin" / "rnntune"], text=True, capture_output=True,
                                env={"LD_LIBRARY_PATH": str(bundle / "lib"),
                                     "LD_TRACE_LOADED_OBJECTS": "1"}).stdout
        for line in loaded.splitlines():
            library = line.split()[0]
            if not library.startswith(("linux-vdso", "/", "libc.so", "libm.so")):
                self.assertIn(f"=> {bundle}/lib/", line)
        self.assertIn("libstdc++", loaded)
        parts = self.check("--device", "simt", "--only", "verify|true|questions", code=0,
                           script=bundle / "gpu_check.sh")
        self.assertEqual([row["verdict"] for row in parts.values()], ["ok"] * 3)

    def test_a_bundle_on_an_older_c_library(self):
        """A library that refuses stands for the machine's; the bundle's own loader is used then."""
        bundle = self.bundle()
        program = bundle / "bin" / "rnntune"
        # Neither interpreter nor libraries of this machine: only a loader that is named runs it.
        data = program.read_bytes()
        interpreter = b"/lib64/ld-linux-x86-64.so.2\0"
        if data.count(interpreter) != 1:
            self.skipTest("another interpreter than x86-64's")
        program.write_bytes(data.replace(interpreter, b"/nonexistent/ld.so".ljust(28, b"\0")))
        parts = self.check("--device", "simt", "--only", "verify", code=0,
                           script=bundle / "gpu_check.sh")
        self.assertEqual(parts["verify"]["verdict"], "ok")


if __name__ == "__main__":
    RNNTUNE, BUILD, ROOT = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
