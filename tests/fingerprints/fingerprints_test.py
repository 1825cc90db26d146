#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""fingerprints.py lists two small scenarios with and without the replay cache, and finds what differs.

usage: fingerprints_test.py RAILYARD
"""

import os
import subprocess
import sys
import tempfile
import unittest

SCENARIOS = ("fault_iteration", "topology_rail_only")  # the cache replays collectives of the first
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fingerprints.py")


def call(*arguments):
    """Exit status and output of the script."""
    done = subprocess.run([sys.executable, "-B", SCRIPT, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


class FingerprintsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.list = os.path.join(cls.directory.name, "list")
        cls.written = call("write", PROGRAM, cls.list, "--jobs", "2", "--only", f"^({'|'.join(SCENARIOS)})$")

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def lines(self):
        with open(self.list, encoding="utf-8") as file:
            return file.read().splitlines()

    def compare_with(self, lines):
        other = os.path.join(self.directory.name, "other")
        with open(other, "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))
        return call("compare", self.list, other)

    def test_each_scenario_has_one_fingerprint_with_and_without_the_cache(self):
        self.assertEqual(self.written, (0, ""))
        runs = [line.split() for line in self.lines()]
        self.assertEqual([run[:2] for run in runs],
                         [[name, cache] for name in SCENARIOS for cache in ("cache", "no-cache")])
        for run in runs:
            self.assertRegex(run[2], "^[0-9a-f]{32}$")
        self.assertEqual(runs[0][2], runs[1][2])
        self.assertEqual(runs[2][2], runs[3][2])
        self.assertNotEqual(runs[0][2], runs[2][2])

    def test_equal_lists_agree(self):
        self.assertEqual(call("compare", self.list, self.list),
                         (0, "4 compared, 0 differ, 0 exceeded the time limit\n"))

    def test_what_differs_or_is_missing_is_named(self):
        first, *others = self.lines()
        name, cache, value, *costs = first.split()
        changed = " ".join([name, cache, "0" * 32, *costs])
        self.assertEqual(self.compare_with([changed, *others]),
                         (1, f"{name} {cache} {value} became {'0' * 32}\n"
                             "4 compared, 1 differ, 0 exceeded the time limit\n"))
        status, printed = self.compare_with(others)
        self.assertEqual(status, 1)
        self.assertIn(f"{name} {cache} is missing from ", printed)

    def test_runs_beyond_the_time_limit_are_not_compared(self):
        first, *others = self.lines()
        name, cache, _, *costs = first.split()
        self.assertEqual(self.compare_with([" ".join([name, cache, "-", *costs]), *others]),
                         (0, "3 compared, 0 differ, 1 exceeded the time limit\n"))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    PROGRAM = os.path.abspath(sys.argv.pop())
    unittest.main()
