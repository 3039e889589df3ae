#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where the time goes: tables of the parts of ./test.sh, and of each compile, link and test.

usage: build_times.py [--top N] [FOLDER...]     default: every build-* of the checkout

Parts are what ./test.sh wrote into part_times.txt; steps are ninja's last run of each, so that a
step which the compiler cache answered counts with what that took; tests are the last `meson test`.
Times are seconds of the clock, of jobs that ran beside each other: their sum is about the time of
the part times the number of cores.
"""

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path

KINDS = [("compile", (".o",)), ("precompile", (".gch", ".pch")), ("archive", (".a",))]


def kind_of(target):
    for kind, endings in KINDS:
        if target.endswith(endings):
            return kind
    return "generate" if "." in Path(target).name and ".so" not in target else "link"


def steps(folder):
    """(seconds, kind, target) of the last run of each step."""
    last = {}
    try:
        lines = (folder / ".ninja_log").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    for line in lines:
        fields = line.split("\t")
        if len(fields) == 5:
            start, end, _, target, command = fields
            last[command] = ((int(end) - int(start)) / 1000, kind_of(target), target)
    return sorted(last.values(), reverse=True)


def tests(folder):
    """(seconds, name, result) of the last test run."""
    try:
        lines = (folder / "meson-logs" / "testlog.json").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    rows = map(json.loads, lines)
    return sorted(((row["duration"], row["name"].split(" / ")[-1], row["result"]) for row in rows),
                  reverse=True)


def parts(folder):
    """(what, seconds) as test.sh wrote them."""
    try:
        lines = (folder / "part_times.txt").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [tuple(line.rsplit(" ", 1)) for line in lines if " " in line]


def table(title, head, rows):
    print(f"\n{title}\n\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        cells = (f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in row)
        print("| " + " | ".join(cells) + " |")


def sums(found):
    """Count and seconds by folder of the tree and kind of step."""
    total = defaultdict(lambda: [0, 0.0])
    for seconds, kind, target in found:
        room = target.split("/")[0] if "/" in target else "."
        total[room, kind][0] += 1
        total[room, kind][1] += seconds
    rows = [(room, kind, count, seconds) for (room, kind), (count, seconds) in total.items()]
    return sorted(rows, key=lambda row: -row[3])


def show(folder, top):
    found, ran = steps(folder), tests(folder)
    print(f"\n## {folder.name}")
    if parts(folder):
        table("Parts of ./test.sh", ("part", "s"), parts(folder))
    table(f"Steps: {sum(row[0] for row in found):.0f} s in {len(found)}",
          ("room", "step", "count", "s"), sums(found))
    table(f"The {min(top, len(found))} longest steps", ("s", "step", "target"), found[:top])
    if ran:
        table(f"Tests: {sum(row[0] for row in ran):.0f} s in {len(ran)}",
              ("s", "test", "result"), ran[:top])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--top", type=int, default=25, help="rows of the long tables (25)")
    parser.add_argument("folders", nargs="*", type=Path)
    options = parser.parse_args()
    root = Path(__file__).resolve().parent.parent
    folders = options.folders or sorted(root.glob("build-*"))
    folders = [folder for folder in folders if (folder / ".ninja_log").exists()]
    if not folders:
        sys.exit("build_times: no build folder with a .ninja_log; build first, or name one")
    for folder in folders:
        show(folder, options.top)


if __name__ == "__main__":
    main()
