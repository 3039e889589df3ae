#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The sum that test.sh ends with: what must count as a failure does."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
import count_tests  # noqa: E402  (found through the path above)

JUNIT = """<testsuites><testsuite name="rnntune.unit_test.Suite">
<testcase name="a"/><testcase name="b">{b}</testcase><testcase name="c"><skipped/></testcase>
</testsuite><testsuite name="rnntune"><testcase name="plain"/></testsuite></testsuites>"""


def counted(results, b=""):
    with tempfile.TemporaryDirectory() as root:
        logs = Path(root, "meson-logs")
        logs.mkdir()
        lines = [json.dumps({"name": n, "result": r}) for n, r in results.items()]
        (logs / "testlog.json").write_text("\n".join(lines))
        (logs / "testlog.junit.xml").write_text(JUNIT.format(b=b))
        return dict(count_tests.count(root))


class Count(unittest.TestCase):
    def test_cases_and_plain_tests(self):
        self.assertEqual(counted({"unit_test": "OK", "plain": "OK"}), {"passed": 3, "skipped": 1})

    def test_failed_case(self):
        self.assertEqual(counted({"unit_test": "FAIL"}, "<failure/>"),
                         {"passed": 1, "failed": 1, "skipped": 1})

    def test_program_fails_though_its_cases_passed(self):
        self.assertEqual(counted({"unit_test": "FAIL"})["failed"], 1)

    def test_plain_failures(self):
        for result in ("FAIL", "TIMEOUT", "ERROR", "INTERRUPT", "UNEXPECTEDPASS"):
            self.assertEqual(counted({"plain": result}), {"failed": 1}, result)

    def test_no_log_and_empty_log(self):
        self.assertEqual(dict(count_tests.count("/nonexistent")), {"failed": 1})
        self.assertEqual(counted({}), {"failed": 1})


if __name__ == "__main__":
    unittest.main()
