#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The check of commands that documents name, tested."""

import os
import tempfile
import unittest

import commands

HELP = {("run",): "--out TEXT\n--set FIELD=VALUE\n-h,--help", ("topo", "show"): "--json FILE", ("compare",): "--json --fabric"}
CMAKE = "add_executable(tool a.cc)\nadd_test(NAME documents.fast COMMAND lint --few)\n"
PRESETS = """{"configurePresets": [{"name": "base", "hidden": true}, {"name": "release"}],
              "buildPresets": [{"name": "release"}], "testPresets": [{"name": "dev"}]}"""


class CommandsTest(unittest.TestCase):
    def errors(self, text):
        files = {"CMakePresets.json": PRESETS, "tests/CMakeLists.txt": CMAKE, "scripts/lint": "#!/bin/sh\n",
                 "tests/a_test.cc": "TEST_F(HangTest, IsFound) {}\n", "tests/module.py": "A = 1\n",
                 "tests/run/program.py": "#!/usr/bin/env python3\n"}
        with tempfile.TemporaryDirectory() as source:
            for name, content in files.items():
                path = os.path.join(source, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(content)
            os.chmod(os.path.join(source, "scripts/lint"), 0o755)
            return commands.check(source, {"a.md": text}, HELP.get)

    def test_commands_and_options_exist(self):
        self.assertEqual(self.errors("`railyard run a.textproto --out b --set\nseed=-1` `railyard compare old new`\n"
                                     "```\nrailyard topo show TOPOLOGY [--json FILE]\n```\n"), [])
        self.assertEqual(self.errors("text\n`railyard walk a` and `railyard run SCENARIO --output=b`\n"
                                     "```\n  railyard topo show TOPOLOGY [--jsn FILE]\n```\n"),
                         ["a.md:2: there is no command railyard walk a",
                          "a.md:2: railyard run has no option --output",
                          "a.md:4: railyard topo show has no option --jsn"])

    def test_scripts_exist(self):
        self.assertEqual(self.errors("`scripts/lint` and\nscripts/gone, not my/scripts/x\n"),
                         ["a.md:2: there is no script scripts/gone"])

    def test_python_programs_can_be_executed(self):
        self.assertEqual(self.errors("`tests/module.py` and\ntests/run/program.py --all, my/tests/x.py\n`tests/gone.py`\n"),
                         ["a.md:2: tests/run/program.py cannot be executed",
                          "a.md:3: tests/gone.py cannot be executed"])

    def test_blocks_of_commands_are_run(self):
        self.assertEqual(self.errors("<!-- run by tests/CMakeLists.txt, of fewer files -->\n```\nscripts/lint # all\n```\n"
                                     "<!-- not run: it takes an hour -->\n```\ncmake --preset release\n```\n"
                                     "```\nnsys profile # ctest\nmpirun x\n```\n```sh\nctest\n```\n"), [])
        self.assertEqual(self.errors("text\n```\nA=1 scripts/lint\n```\n"
                                     "<!-- run by tests/a_test.cc -->\n```\nscripts/lint\n```\n"
                                     "<!-- run by tests/gone -->\n```\nscripts/lint\n```\n"
                                     "<!-- not run: no reason -->\n```\nnone\n```\n"),
                         ["a.md:2: nothing runs scripts/lint (expected <!-- run by FILE --> or <!-- not run: REASON --> above)",
                          "a.md:6: scripts/lint is not run by tests/a_test.cc",
                          "a.md:10: scripts/lint is not run by tests/gone",
                          "a.md:14: there is no program in the block"])

    def test_commands_beside_figures_are_run(self):
        self.assertEqual(self.errors("`railyard run tests/a_test.cc` takes 3 us.\n\n"
                                     "```console\n$ railyard run tests/a_test.cc --out b\n3 us\n```\n"), [])
        self.assertEqual(self.errors("`railyard run mine.textproto` or `railyard run SCENARIO` takes 3 us.\n\n"
                                     "`railyard run tests/a_test.cc` is a command of 2 servers, `--set at=3us`.\n\n"
                                     "- It takes 3 us.\n- `railyard run tests/a_test.cc`\n\n"
                                     "<!-- not run: it takes hours -->\nIt takes 3 h:\n`railyard run tests/a_test.cc`.\n"), [])
        self.assertEqual(self.errors("Text.\n\nIt loses 1.5 %:\n`railyard run\ntests/a_test.cc`.\n"
                                     "- At 24.1 GB/s `railyard compare --json --fabric x` ends.\n\n"
                                     "<!-- not run: it takes hours -->\nText.\n\nThese 8 KiB: `railyard run tests/a_test.cc`\n\n"
                                     "```sh\nrailyard run tests/a_test.cc\n```\n"
                                     "```console\n$ railyard run tests/module.py\n3 us\n```\n"),
                         [f"a.md:{line}: no block ```console runs railyard {command}, which figures stand beside "
                          "(or <!-- not run: REASON --> above the paragraph)"
                          for line, command in ((4, "run tests/a_test.cc"), (6, "compare --json --fabric x"),
                                                (11, "run tests/a_test.cc"))])

    def test_presets_targets_and_tests_exist(self):
        self.assertEqual(self.errors("cmake --preset release && cmake --build --preset release --target tool && "
                                     "ctest --preset dev -R Hang\n`ctest --preset dev -R documents.fast`\n"), [])
        self.assertEqual(self.errors("cmake --preset base && cmake --build --preset dev --target toll\n"
                                     "ctest --preset release -R Stall # all\n"),
                         ["a.md:1: base is none of the configurePresets of CMakePresets.json",
                          "a.md:1: dev is none of the buildPresets of CMakePresets.json",
                          "a.md:1: no CMakeLists.txt names the target toll",
                          "a.md:2: release is none of the testPresets of CMakePresets.json",
                          "a.md:2: no test has a name that Stall matches"])


if __name__ == "__main__":
    unittest.main()
