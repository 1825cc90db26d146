#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Installs a build into a prefix, moves the prefix, and uses what is there.

usage: install_test.py CMAKE BUILD_DIR SOURCE_DIR
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CMAKE, BUILD, SOURCE = sys.argv[1:4]
ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


class Installation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        first = pathlib.Path(cls.directory.name, "first")
        subprocess.run([CMAKE, "--install", BUILD, "--prefix", first], check=True,
                       stdout=subprocess.DEVNULL)
        cls.prefix = first.rename(first.with_name("second"))
        cls.scenarios = cls.prefix / "share/railyard/scenarios"

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def railyard(self, *arguments):
        run = subprocess.run([self.prefix / "bin/railyard", *arguments], env=ENVIRONMENT,
                             cwd=self.directory.name, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def test_lists_the_scenarios_it_was_installed_with(self):
        listed = self.railyard("list", "scenarios")
        self.assertIn("second/share/railyard/scenarios/h100_4x8_flap.textproto", listed)
        self.assertNotIn(SOURCE, listed)

    def test_no_scenario_is_missing_but_those_that_read_what_is_not_in_the_tree(self):
        installed = {path.name for path in self.scenarios.iterdir()}
        shipped = {path.name for path in pathlib.Path(SOURCE, "simulator/scenarios").iterdir()}
        self.assertEqual(shipped - installed, {"nccl_log_16ranks.textproto"})
        self.assertEqual(installed - shipped, set())

    def test_files_that_scenarios_name_are_installed(self):
        named = [path for path in sorted(self.scenarios.glob("*.textproto"))
                 if '"../' in path.read_text()]
        self.assertGreater(len(named), 10)
        for path in named:
            text = path.read_text()
            for word in text.split('"'):
                if word.startswith("../"):
                    self.assertTrue((self.scenarios / word).is_file(), f"{path.name}: {word}")
        self.railyard("validate", self.scenarios / "plan_gpt_2.textproto")
        self.railyard("validate", self.scenarios / "h100_4x8_flap.textproto")

    def test_runs_an_installed_scenario(self):
        self.railyard("run", self.scenarios / "fault_flap.textproto", "--quiet", "--out", "out")
        self.assertTrue(pathlib.Path(self.directory.name, "out/summary.json").is_file())

    def test_the_manual_page_has_the_help_of_every_command(self):
        page = (self.prefix / "share/man/man1/railyard.1").read_text().replace("\\-", "-")
        for command in ("run", "validate", "topo", "help"):
            self.assertIn(f".SH RAILYARD {command}\n", page)
            self.assertIn(self.railyard(command, "--help"), page)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
