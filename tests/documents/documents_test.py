#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The comparison of documents, tested."""

import contextlib
import os
import sqlite3
import tempfile
import unittest
import unittest.mock

import documents


class FirstDifference(unittest.TestCase):
    def test_any_other_figure_differs(self):
        self.assertIsNone(documents.first_difference(["a  1", "b"], ["a  1", "b"]))
        self.assertEqual(documents.first_difference(["a  1", "b"], ["a  2", "b"]), 0)
        self.assertEqual(documents.first_difference(["a"], ["a", "b"]), 1)
        self.assertEqual(documents.first_difference(["a", "b"], ["a"]), 1)

    def test_dots_stand_for_lines_or_text(self):
        self.assertIsNone(documents.first_difference(["a", "...", "d"], ["a", "b", "c", "d"]))
        self.assertIsNone(documents.first_difference(["a", "..."], ["a"]))
        self.assertEqual(documents.first_difference(["...", "d"], ["a", "c"]), 1)
        self.assertIsNone(documents.first_difference(["a ... z"], ["a 17 z"]))

    def test_only_what_the_machine_says_is_masked(self):
        shown = "Simulated 4 s in 2.35 s of run time (CPU 2.37 s; memory 21.1 MiB)."
        self.assertTrue(documents.line_matches(
            shown, "Simulated 4 s in 11 s of run time (CPU 9 s; memory 3 GiB)."))
        self.assertFalse(documents.line_matches(
            shown, "Simulated 5 s in 11 s of run time (CPU 9 s; memory 3 GiB)."))


    def test_progress_of_a_slow_machine_is_no_output(self):
        progress = ("railyard: simulated 1.07 s in 20 s, 67.0 % done, about 83.3 s left; the fault-free run: 332 us, "
                    "19.4 % done; 153 k hops/s, 0.0997 collectives/s, 47.6 MiB")
        self.assertEqual(documents.without_progress([progress, "flap: COMPLETED"]), ["flap: COMPLETED"])


class ReadBlocks(unittest.TestCase):
    def test_no_command_is_skipped(self):
        _, errors = documents.read_blocks("a.md", "```\n$ railyard x\ny\n```\n")
        self.assertEqual(errors,
                         ["a.md:2: a command outside of a block ```console is not checked"])
        _, errors = documents.read_blocks("a.md", "```console\n$ railyard x\n```\n")
        self.assertEqual(errors, ["a.md:2: no output is shown beneath the command"])

    def test_commands_have_what_is_beneath(self):
        blocks, errors = documents.read_blocks(
            "a.md", "```console slow\n$ cat f\na: 1\n$ railyard run f\nb\n```\n```\nother\n```\n")
        self.assertEqual(errors, [])
        self.assertEqual(len(blocks), 1)
        self.assertTrue(blocks[0].is_slow)
        self.assertEqual([c.shown for c in blocks[0].commands], [["a: 1"], ["b"]])

    def test_blocks_in_lists_are_indented(self):
        blocks, errors = documents.read_blocks(
            "a.md", "- text\n\n  ```console\n  $ railyard x\n    b\n\n  c\n  ```\n- text\n```console\n$ railyard y\n  d\n```\n")
        self.assertEqual(errors, [])
        self.assertEqual([(c.text, c.shown) for block in blocks for c in block.commands],
                         [("railyard x", ["  b", "", "c"]), ("railyard y", ["  d"])])

    def test_a_python_program_is_one_command(self):
        blocks, errors = documents.read_blocks("a.md", "```python\nx = 1\nprint(x)\n```\n")
        self.assertEqual(errors, [])
        self.assertEqual([c.text for c in blocks[0].commands], ["x = 1\nprint(x)\n"])
        self.assertEqual(documents.run_block("no program", blocks[0]), [])
        for code, why in (("x = 1", "prints nothing"), ("1 / 0", "ends with status 1")):
            blocks, _ = documents.read_blocks("a.md", f"```python\n{code}\n```\n")
            self.assertIn(why, documents.run_block("no program", blocks[0])[0])

    def test_a_program_without_its_modules_is_an_error_in_ci(self):
        blocks, _ = documents.read_blocks("a.md", "```python\nimport no_such_module\nprint(1)\n```\n")
        with unittest.mock.patch.dict(os.environ, {"CI": "true"}):
            self.assertIn("no Python has the modules", documents.run_block("no program", blocks[0])[0])
        with unittest.mock.patch.dict(os.environ, {"CI": ""}):
            self.assertEqual(documents.run_block("no program", blocks[0]), [])

    def test_plain_commands_have_a_status_and_files(self):
        blocks, errors = documents.read_blocks(
            "a.md", "<!-- given: cp x y; railyard topo list -->\n```sh slow\n"
                    "railyard run y  # exit status 3\n\nrailyard list presets\n```\n")
        self.assertEqual(errors, [])
        self.assertEqual(blocks[0].given, ["cp x y", "railyard topo list"])
        self.assertEqual([(c.text, c.status) for c in blocks[0].commands],
                         [("railyard run y", 3), ("railyard list presets", 0)])
        self.assertTrue(blocks[0].is_slow)

    def test_only_a_synopsis_need_not_run(self):
        text = "```\n{}\n```\n"
        for line in ("railyard run SCENARIO", "railyard topo show a [--json b]"):
            self.assertEqual(documents.read_blocks("a.md", text.format(line))[1], [])
        for line in ("railyard run a.textproto", "railyard perf -b 1M --net Socket",
                     "railyard run a --set nccl.IB_TIMEOUT=14"):
            self.assertEqual(
                documents.read_blocks("a.md", text.format(line))[1],
                ["a.md:2: a command outside of a block ```sh or ```console is not run"])


class Queries(unittest.TestCase):
    def test_queries_must_be_run(self):
        line = 'sqlite3 a.sqlite "SELECT 1"'
        self.assertEqual(documents.read_blocks("a.md", f"```\n{line}\n```\n")[1],
                         ["a.md:2: a command outside of a block ```sh or ```console is not run"])
        blocks, errors = documents.read_blocks("a.md", f"```sh\n{line}\n```\n")
        self.assertEqual(errors, [])
        self.assertEqual([c.text for c in blocks[0].commands], [line])

    def test_queries_have_an_answer(self):
        with tempfile.TemporaryDirectory() as directory:
            file = os.path.join(directory, "a.sqlite")
            with contextlib.closing(sqlite3.connect(file)) as database:
                database.executescript("CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 'x'), (2.5, NULL)")
            self.assertEqual(documents.answer(file, "SELECT * FROM t"), (0, "1|x\n2.5|"))
            self.assertEqual(documents.answer(file, "SELECT c FROM t"), (1, "Error: no such column: c"))
            for query, error in (("SELECT a FROM t", None), ("SELECT a FROM t WHERE a > 3", "prints nothing"),
                                 ("SELECT c FROM t", "ends with status 1")):
                blocks, _ = documents.read_blocks("a.md", f'```sh\nsqlite3 {file} "{query}"\n```\n')
                errors = documents.run_block("no program", blocks[0])
                self.assertEqual(len(errors), 0 if error is None else 1)
                self.assertIn(error or "", "".join(errors))
            self.assertEqual(documents.answer(os.path.join(directory, "none"), "SELECT 1")[0], 1)


if __name__ == "__main__":
    unittest.main()
