#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the test cases of two build folders by name, from the last `meson test` of each.

usage: compare_tests.py BEFORE AFTER

A case of GoogleTest is Suite.Case, any other test its own name. Prints the names that vanished and
those that are new, and says where a case that ran is skipped now. Exits 1 where a name vanished or
a case stopped running, so that each can be explained.
"""

import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def cases(folder):
    """Name to whether it ran."""
    logs = Path(folder) / "meson-logs"
    found, with_cases = {}, set()
    for suite in ElementTree.parse(logs / "testlog.junit.xml").getroot().iter("testsuite"):
        parts = suite.get("name").split(".")  # project.test.Suite of GoogleTest, else project
        if len(parts) < 3:
            continue
        with_cases.add(parts[1])
        for case in suite.iter("testcase"):
            found[f"{parts[-1]}.{case.get('name')}"] = case.find("skipped") is None
    for line in (logs / "testlog.json").read_text(encoding="utf-8").splitlines():
        test = json.loads(line)
        name = test["name"].split(" / ")[-1].split(":")[-1].strip()
        if name not in with_cases:
            found[name] = test["result"] != "SKIP"
    return found


def main(before, after):
    old, new = cases(before), cases(after)
    vanished = sorted(set(old) - set(new))
    stopped = sorted(name for name in old if old[name] and new.get(name) is False)
    for what, names in (("vanished", vanished), ("runs no more", stopped),
                        ("new", sorted(set(new) - set(old)))):
        for name in names:
            print(f"{what}: {name}")
    print(f"{len(old)} cases before, {len(new)} after, {len(vanished)} vanished, "
          f"{len(stopped)} run no more")
    return 1 if vanished or stopped else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
