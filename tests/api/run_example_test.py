#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Examples fail by their exit status as well as by their output."""

import unittest

import run_example


class RunExampleTest(unittest.TestCase):
    def wrong(self, script):
        return run_example.what_is_wrong(["sh", "-c", script], "a [0-9]+ ms.*b")

    def test_status_and_output_must_be_right(self):
        self.assertIsNone(self.wrong("echo a 12 ms; echo b"))
        self.assertIn("ends with status 1", self.wrong("echo a 12 ms; echo b; exit 1"))
        self.assertIn("ends with status -6", self.wrong("echo a 12 ms; echo b; kill -ABRT $$"))
        self.assertIn("prints nothing that matches", self.wrong("echo a x ms; echo b"))
        self.assertIn("a x ms", self.wrong("echo a x ms >&2"))


if __name__ == "__main__":
    unittest.main()
