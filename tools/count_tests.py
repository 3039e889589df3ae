#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sums the last `meson test` of each build folder given: 'N passed, N failed[, N skipped]'.

Cases of GoogleTest count one by one, any other test as one. Exits 1 on any failure; a folder
without a log is one, and so is a program that fails although each of its cases passed.
"""

import json
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path


def outcome(case):
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "skipped" if case.find("skipped") is not None else "passed"


def count(folder):
    logs = Path(folder) / "meson-logs"
    try:
        lines = (logs / "testlog.json").read_text(encoding="utf-8").splitlines()
        suites = list(ElementTree.parse(logs / "testlog.junit.xml").getroot().iter("testsuite"))
    except (OSError, ElementTree.ParseError):
        return Counter(failed=1)
    total = Counter()
    for test in map(json.loads, lines):
        name = test["name"].split(":")[-1].split("/")[-1].strip()
        cases = [case for suite in suites if f".{name}." in suite.get("name")
                 for case in suite.iter("testcase")]
        found = Counter(map(outcome, cases))
        if test["result"] in ("OK", "EXPECTEDFAIL"):
            total += found or Counter(passed=1)
        elif test["result"] == "SKIP":
            total += found or Counter(skipped=1)
        else:
            total += found if found["failed"] else found + Counter(failed=1)
    return total if total else Counter(failed=1)


def main(folders):
    total = sum(map(count, folders), Counter())
    line = f"{total['passed']} passed, {total['failed']} failed"
    print(line + (f", {total['skipped']} skipped" if total["skipped"] else ""))
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
