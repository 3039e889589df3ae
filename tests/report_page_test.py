#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens a report in a headless browser: no console error, charts drawn, hostile names harmless.

report_page_test.py RNNTUNE [--keep FOLDER]
The journal, database, results and limits are made up here, from a seed; they look like a tuning run
and are none. --keep leaves the pages in FOLDER to look at. Without chromium the parts that need it
are skipped with a line that says so; exit 77 if nothing was left to check.
"""
import html.parser
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which(
    "google-chrome")
STAMP = "2026-11-30T10:00:00Z"
KEY = "test data"
DEVICE = {"backend": "cpu", "name": "Made-up CPU (test data)", "architecture": "x86_64/avx512",
          "key": KEY, "properties": {"vendor": "AuthenticTest", "threads": "2"}}
ENVIRONMENT = {"compiler": "g++ 12.2.0", "library": "0.1.0", "os": "Test OS"}
# Name, problem, GFLOP of a step, share of the two-thread peak that the best config reaches.
PROBLEMS = [("ptb_small", "lstm:L2,T20,B20,I200,H200,f32", 1.536, 0.66),
            ("db_512_b16", "lstm:L1,T25,B16,I512,H512,f32", 5.033, 0.80),
            ("small_b1", "lstm:L1,T100,B1,I128,H128,f32", 0.0786, 0.35),
            ("kws_lstm", "lstm:L1,T49,B100,I10,H64,f32", 0.5569, 0.63)]
HOSTILE = '</script><script>document.title="owned"</script><img src=x onerror=alert(1)>"\'|`*'


def time_us(median, random_):
    width = median * random_.uniform(0.001, 0.005)
    return {"median": median, "low": median - width, "high": median + width, "samples": 41,
            "noise": 0.006, "stop": "converged"}


def configs():
    for layout in ("tbh", "thb"):
        for chunk in ("0", "1", "8"):
            for threads in ("1", "2"):
                for tile in ("4x4", "6x4", "12x2"):
                    yield {"variant": "cell", "params": {"layout": layout, "threads": threads,
                                                         "chunk": chunk, "tile": tile}}
                yield {"variant": "pointwise", "params": {"layout": layout, "threads": threads,
                                                          "chunk": chunk}}
    for threads in ("1", "2"):
        yield {"variant": "unfused", "params": {"threads": threads}}


def slowdown(config, random_):
    params = config["params"]
    factor = {"cell": 1.0, "pointwise": 1.35, "unfused": 2.1}[config["variant"]]
    factor *= {"tbh": 1.0, "thb": 1.12}.get(params.get("layout"), 1)
    factor *= {"1": 1.72, "2": 1.0}[params["threads"]]
    factor *= {"0": 1.0, "1": 1.18, "8": 1.04}.get(params.get("chunk"), 1)
    factor *= {"4x4": 1.09, "6x4": 1.0, "12x2": 1.03}.get(params.get("tile"), 1)
    return factor * random_.uniform(1.0, 1.06)


def outcome(name, problem, config, median, random_):
    record = {"type": "outcome", "problem": problem, "config": config, "kernel_hash": "h",
              "outcome": "ok", "reason": "", "repeatable": True, "workspace_bytes": 3 << 20,
              "reserve_bytes": 11 << 20, "packed_bytes": 1 << 20, "time_us": time_us(
                  median, random_), "cost_us": {"prepare": 900.0, "validate": 1e4, "measure": 5e5},
              "validation": {"reference": "blas64", "error": 4e-7 * random_.uniform(1, 2),
                             "bound": 3.1e-5, "tensor": "dW_hh[0]"}}
    if config["params"].get("tile") == "12x2" and config["params"]["chunk"] == "8":
        for field in ("time_us", "validation"):
            del record[field]
        record.update(outcome="wrong_result",
                      reason="dW_hh[0]: element 4095 is 0, reference 0.0132, error 3.1 > 3.1e-05")
    if name == "kws_lstm" and config["params"].get("chunk") == "1":
        record.pop("time_us", None)
        record.update(outcome="timed_out", reason="60 s over")
    return record


def session(problems):
    return {"format": "rnntune-journal", "version": 1, "type": "session", "time": STAMP,
            "library": "0.1.0", "device": DEVICE, "environment": ENVIRONMENT, "seed": 1,
            "strategy": "exhaustive", "budget_s": 60,
            "problems": [{"name": p[0], "problem": p[1]} for p in problems]}


def against(best, opponent, ratio, random_):
    return {"opponent": opponent, "version": {"onednn": "2.6.3", "unfused": ""}[opponent],
            "algorithm": "", "time_us": time_us(best * ratio, random_),
            "ratio": {"median": ratio, "low": ratio * 0.985, "high": ratio * 1.014}}


def write_samples(folder):
    random_ = random.Random(1)
    journal, entries = [session(PROBLEMS)], []
    for name, problem, gflop, share in PROBLEMS:
        base = gflop / (430 * share) * 1e6
        records = [outcome(name, problem, c, base * slowdown(c, random_), random_)
                   for c in configs()]
        for record in records:
            journal += [{k: record[k] for k in ("problem", "config", "kernel_hash")} |
                        {"type": "start"}, record]
        winner = min((r for r in records if r["outcome"] == "ok"),
                     key=lambda r: r["time_us"]["median"])
        best = winner["time_us"]["median"]
        final = {"problem": problem, "config": winner["config"], "time_us": winner["time_us"],
                 "tied": [records[1]["config"]] if name == "ptb_small" else [],
                 "against": [against(best, "unfused", 2.05 * random_.uniform(0.9, 1.3), random_),
                             against(best, "onednn", random_.uniform(0.95, 1.6), random_)],
                 "evaluations": len(records), "complete": True}
        journal.append({"type": "final", "space": 2 * len(records), **final})
        entries.append({**final, "objective": "step", "kernel_hash": "h", "environment": 0,
                        "policy": "warm", "seed": 1, "budget_s": 60, "time": STAMP,
                        **{k: winner[k] for k in ("workspace_bytes", "reserve_bytes",
                                                  "packed_bytes", "validation")}})
    (folder / "journal.jsonl").write_text("".join(json.dumps(r) + "\n" for r in journal))
    (folder / "db.json").write_text(json.dumps(
        {"format": "rnntune-database", "version": 1, "devices": [
            {"device": DEVICE, "environments": [ENVIRONMENT], "entries": entries}]}))


def write_limits(folder):
    name = 0xcbf29ce484222325  # FNV-1a of the device key, as the cache names its files
    for byte in KEY.encode():
        name = ((name ^ byte) * 0x100000001b3) % 2**64
    points = [(24 << 10, 380), (512 << 10, 160), (8 << 20, 84), (256 << 20, 33)]
    limits = [{"threads": t, "fma_peak_f32_gflops": peak, "read_bandwidth": [
        {"working_set_bytes": size, "gbytes_per_s": rate * t} for size, rate in points]}
        for t, peak in ((1, 206.0), (2, 430.0))]
    cache = folder / "cache" / "rnntune"
    cache.mkdir(parents=True)
    (cache / f"limits-{name:016x}.json").write_text(json.dumps(
        {"format": "rnntune-limits", "version": 1, "device": KEY, "time": STAMP,
         "limits": limits}))


class Page(html.parser.HTMLParser):
    """Elements, their attributes, and the text of a page; text inside scripts is kept apart."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text, self.data, self.inside = [], "", "", None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside = dict(attrs).get("type", tag) if tag in ("script", "style") else None

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside == "application/json":
            self.data += data
        elif self.inside is None:
            self.text += data


class ReportPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(KEEP or cls.temporary.name)
        cls.folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(cls.folder / "cache", ignore_errors=True)
        write_samples(cls.folder)
        write_limits(cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def report(self, *arguments, expected=0, html="report.html"):
        done = subprocess.run([RNNTUNE, "report", "--html", html, "--markdown", "report.md",
                               *arguments], cwd=self.folder, text=True, capture_output=True,
                              env=os.environ | {"XDG_CACHE_HOME": str(self.folder / "cache")})
        self.assertEqual(done.returncode, expected, done.stderr + done.stdout)
        return done

    def page(self, *arguments, html="report.html"):
        self.report(*arguments, html=html)
        return (self.folder / html).read_text(encoding="utf-8")

    def whole(self):
        return self.page("--db", "db.json", "--journal", "journal.jsonl")

    def open(self, name, *more):
        if not CHROMIUM:
            self.skipTest("chromium is not installed")
        with tempfile.TemporaryDirectory() as profile:
            done = subprocess.run(
                [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
                 "--v=0", "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={profile}",
                 "--virtual-time-budget=5000", *more, "--dump-dom", str(self.folder / name)],
                text=True, capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        return done.stdout, console

    def test_terminal_summary_names_every_problem_and_both_files(self):
        out = self.report("--db", "db.json", "--journal", "journal.jsonl").stdout
        for name, *_ in PROBLEMS:
            self.assertRegex(out, rf"(?m)^{name} .*cell:layout=tbh")
        self.assertIn("geometric mean of 4", out)
        self.assertIn(str(self.folder / "report.html"), out)
        self.assertIn(str(self.folder / "report.md"), out)

    def test_page_needs_nothing_from_outside(self):
        page = Page(self.whole())
        for tag, attributes in page.elements:
            for name in ("src", "href"):
                self.assertNotIn(name, attributes, tag)
            self.assertNotIn(tag, ("link", "iframe", "img", "object", "embed", "base"))
        policy = [a["content"] for t, a in page.elements
                  if a.get("http-equiv") == "Content-Security-Policy"]
        self.assertEqual(len(policy), 1)
        self.assertIn("default-src 'none'", policy[0])
        self.assertNotIn("unsafe-eval", policy[0])

    def test_page_states_the_figures(self):
        page = Page(self.whole())
        for text in ("vs unfused", "vs onednn", "of 3.1e-05", "blas64", "wrong_result", "timed_out",
                     "FMA peak", "Test OS", "2.6.3", "test data"):
            self.assertIn(text, page.text)
        data = json.loads(page.data)
        self.assertEqual([p["name"] for p in data["problems"]], [p[0] for p in PROBLEMS])
        for problem, (_, _, gflop, _) in zip(data["problems"], PROBLEMS):
            self.assertAlmostEqual(problem["gflops"], gflop / problem["time_us"]["median"] * 1e6,
                                   delta=0.01 * problem["gflops"])
            self.assertEqual(sum(a["best"] for a in problem["attempts"]), 1)

    def test_charts_are_drawn_without_a_console_message(self):
        self.whole()
        dom, console = self.open("report.html")
        self.assertEqual(console, [])
        for figure in ("ratios", "roof", "points"):
            part = re.search(rf'<figure[^>]*id="{figure}".*?</figure>', dom, re.S).group()
            self.assertIn("<svg", part, figure)
            marks = re.findall(r'role="graphics-symbol"|aria-roledescription', part)
            self.assertGreater(len(marks), 3, figure)
            self.assertNotIn("NaN", part, figure)
        self.assertRegex(dom, r'id="fastest".*<td class="number">10</td>')

    def test_charts_of_parts_alone(self):
        (self.folder / "empty.jsonl").write_text(json.dumps(session(PROBLEMS)) + "\n")
        for arguments in (["--db", "db.json", "--journal", "empty.jsonl"],
                          ["--journal", "journal.jsonl"], ["--db", "db.json"]):
            with self.subTest(arguments):
                self.page(*arguments, html="part.html")
                self.assertEqual(self.open("part.html")[1], [])

    def test_hostile_names_are_text(self):
        lines = (self.folder / "journal.jsonl").read_text().splitlines()
        head = json.loads(lines[0])
        head["device"]["name"] = HOSTILE
        head["environment"][HOSTILE] = HOSTILE
        head["problems"][0]["name"] = HOSTILE
        failed = json.loads(lines[2]) | {"outcome": "crashed", "reason": HOSTILE}
        (self.folder / "hostile.jsonl").write_text("\n".join(
            [json.dumps(head), lines[1], json.dumps(failed), *lines[3:]]) + "\n")
        page = Page(self.page("--journal", "hostile.jsonl", html="hostile.html"))
        self.assertEqual(json.loads(page.data)["problems"][0]["name"], HOSTILE)
        self.assertIn(HOSTILE, page.text)
        self.assertEqual([t for t, _ in page.elements if t in ("img", "iframe")], [])
        dom, console = self.open("hostile.html")
        self.assertEqual(console, [])
        self.assertIn("<title>rnntune report</title>", dom)
        table = [line for line in (self.folder / "report.md").read_text().splitlines()
                 if line.startswith("| &lt;/script>")]
        self.assertTrue(table)
        self.assertEqual(len(re.findall(r"(?<!\\)\|", table[0])), 12)

    def test_invalid_times_say_so(self):
        times, lines = iter((0, -1, 1e-9, 1e308)), []
        for line in (self.folder / "journal.jsonl").read_text().splitlines():
            record = json.loads(line)
            if record["type"] == "final":
                record["time_us"].update(dict.fromkeys(("median", "low", "high"), next(times)))
            lines.append(json.dumps(record) + "\n")
        (self.folder / "odd.jsonl").write_text("".join(lines))
        text = Page(self.page("--journal", "odd.jsonl", html="odd.html")).text
        self.assertEqual(text.count("invalid"), 4)
        self.assertEqual((self.folder / "report.md").read_text().count("invalid"), 4)
        for word in (r"\binf\b", r"\bnan\b"):
            self.assertNotRegex(text.lower(), word)
        self.assertEqual(self.open("odd.html")[1], [])

    def test_bad_input_is_named(self):
        database = json.loads((self.folder / "db.json").read_text())
        for entry in database["devices"][0]["entries"]:
            entry["time_us"]["median"] = 0
        (self.folder / "broken.json").write_text(json.dumps(database))
        for arguments, expected in [
                (["--db", "none.json"], "none.json"),
                (["--journal", "db.json"], "db.json"),
                (["--db", "broken.json"], "entries[0]"),
                (["--results", "journal.jsonl", "--db", "db.json"], "journal.jsonl"),
                ([], "rnntune tune"),
                (["--html", "/nonexistent/x.html"], "--html"),
                (["--db", "db.json", "--problem", "lstm:T1,Bx"], "lstm:T1,Bx")]:
            with self.subTest(arguments):
                self.assertIn(expected, self.report(*arguments, expected=2).stderr)


if __name__ == "__main__":
    RNNTUNE = str(pathlib.Path(sys.argv[1]).resolve())
    KEEP = sys.argv[3] if sys.argv[2:3] == ["--keep"] else None
    unittest.main(argv=sys.argv[:1])
