#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""scripts/studies writes the tables that docs/studies has, and says what it cannot do.

usage: regenerate_test.py [--all] RAILYARD SOURCE_DIR

With --all, every page is written again, which takes half an hour on two cores; else one is, in seconds.
"""

import os
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.abspath(sys.argv.pop())
RAILYARD = os.path.abspath(sys.argv.pop())
ALL = "--all" in sys.argv
if ALL:
    sys.argv.remove("--all")
STUDY = "deepseek-v3-inference"


def studies(*words, program=RAILYARD):
    return subprocess.run([os.path.join(SOURCE, "scripts/studies"), *words],
                          env={**os.environ, "RAILYARD": program},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def table(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Regenerate(unittest.TestCase):
    def test_tables_and_figures(self):
        with tempfile.TemporaryDirectory() as folder:
            docs = os.path.join(folder, "docs")
            done = studies("--out", os.path.join(folder, "out"), "--docs", docs, *([] if ALL else [STUDY]))
            self.assertEqual(done.returncode, 0, done.stderr)
            made = set(os.listdir(os.path.join(docs, "figures")))
            shipped = set(os.listdir(os.path.join(SOURCE, "docs/studies/figures")))
            self.assertEqual(made, shipped if ALL else {f"{STUDY}-summary.csv", f"{STUDY}.csv", f"{STUDY}.svg"})
            for name in sorted(made):
                if not name.endswith(".csv"):
                    continue
                with self.subTest(table=name):
                    self.assertEqual(table(os.path.join(docs, "figures", name)),
                                     table(os.path.join(SOURCE, "docs/studies/figures", name)))

    def test_it_fails_with_a_reason(self):
        for words, program, reason in ((["no-such-study"], RAILYARD,
                                        "there is no study \"no-such-study\""),
                                       (["--jobs", "none"], RAILYARD, "--jobs takes a number"),
                                       (["--figures"], RAILYARD, "there is no option --figures"),
                                       ([STUDY], "/no/program", "/no/program is not there")):
            done = studies(*words, program=program)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn(reason, done.stderr)

    def test_a_run_that_fails_ends_it(self):
        with tempfile.TemporaryDirectory() as folder:
            done = studies("--out", os.path.join(folder, "out"), "--docs",
                           os.path.join(folder, "docs"), STUDY,
                           program="/bin/false")
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"{STUDY} failed", done.stderr)


if __name__ == "__main__":
    unittest.main()
