#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The comparison of documents, tested."""

import os
import tempfile
import unittest

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


class CheckLinks(unittest.TestCase):
    def test_links_lead_somewhere(self):
        with tempfile.TemporaryDirectory() as source:
            for name in ("a.md", "b.md"):
                open(os.path.join(source, name), "w", encoding="utf-8").close()
            texts = {"a.md": "[x](b.md#the-end-of-2)\n[y](c.md)\n[z](b.md#no)\n[w](https://d)\n",
                     "b.md": "## The end, of `2`\n"}
            self.assertEqual(documents.check_links(source, texts),
                             ["a.md:2: a link leads to c.md, which is not there",
                              "a.md:3: b.md has no heading #no"])


if __name__ == "__main__":
    unittest.main()
