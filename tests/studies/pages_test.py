#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A page of docs/studies has its study, figure, table and verdict, and the study's numbers alone.

usage: pages_test.py SOURCE_DIR

A table between <!-- table: FILE --> and <!-- end of table --> equals the CSV file cell by cell. A
number in the text of "What comes out" is a cell of one of the page's CSV files or stands in
"Setup"; one of "Verdict" may also stand in "What is published".
"""

import csv
import os
import re
import sys
import unittest
import xml.etree.ElementTree

SOURCE = os.path.abspath(sys.argv.pop() if len(sys.argv) > 1 else ".")
FOLDER = os.path.join(SOURCE, "docs/studies")
SECTIONS = ["Setup", "What comes out", "What is published", "Verdict", "Limits"]
VERDICTS = ("Agrees.", "Agrees in part.", "Does not agree.")
NUMBER = re.compile(r"(?<![\w.,-])\d(?:[\d,]*\d)?(?:\.\d+)?(?:e[-+]?\d+)?(?![\w]|\.\d)")
FIGURE_BYTES_MAX = 200_000


def read(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()


def pages():
    return sorted(name[:-3] for name in os.listdir(FOLDER)
                  if name.endswith(".md") and name != "README.md")


def sections(text):
    """{heading: text below it}"""
    parts = re.split(r"^## (.+)\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def tables(text):
    """[(CSV file, rows of cells)]"""
    found = []
    for name, body in re.findall(r"<!-- table: (\S+) -->\n(.*?)<!-- end of table -->", text,
                                 flags=re.S):
        rows = [[cell.strip() for cell in line.strip("|").split("|")]
                for line in body.split("\n") if line.startswith("|")]
        found.append((name, rows[:1] + rows[2:]))
    return found


def cells(name):
    with open(os.path.join(FOLDER, name), newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def numbers(text):
    """Numbers in sentences: what is a link's target, code or a comment counts as none."""
    text = re.sub(r"```.*?```|<!--.*?-->|`[^`]*`|^\|[^\n]*$", " ", text, flags=re.S | re.M)
    text = re.sub(r"!?\[([^]]*)\]\([^)]*\)", " ", text)
    return set(NUMBER.findall(text))


class Pages(unittest.TestCase):
    def test_there_are_ten_at_least(self):
        self.assertGreaterEqual(len(pages()), 10)

    def test_sections_and_length(self):
        for page in pages():
            text = read(page + ".md")
            self.assertEqual(list(sections(text)), SECTIONS, page)
            self.assertTrue(text.startswith("# "), page)
            self.assertTrue(30 <= text.count("\n") <= 110, f"{page}: {text.count(chr(10))} lines")

    def test_study_and_script_exist(self):
        for page in pages():
            setup = sections(read(page + ".md"))["Setup"]
            self.assertIn(f"\nscripts/studies {page}\n", setup, page)
            inputs = re.findall(r"\]\(([^)]+\.textproto)\)", setup)
            self.assertTrue(inputs, f"{page}: no link to a scenario, study or plan")
            for target in inputs:
                self.assertTrue(os.path.isfile(os.path.join(FOLDER, target)), f"{page}: {target}")
            script = os.path.join(SOURCE, "analysis/studies/findings", page.replace("-", "_")
                                  + ".py")
            self.assertTrue(os.path.isfile(script), script)

    def test_figure_is_a_small_picture_with_text(self):
        for page in pages():
            self.assertRegex(read(page + ".md"), rf"!\[[^]]+\]\(figures/{page}\.svg\)", page)
            path = os.path.join(FOLDER, "figures", page + ".svg")
            self.assertLess(os.path.getsize(path), FIGURE_BYTES_MAX, path)
            texts = [each for each in xml.etree.ElementTree.parse(path).iter()
                     if each.tag.endswith("}text")]
            self.assertGreater(len(texts), 5, path)

    def test_tables_equal_the_files(self):
        for page in pages():
            found = tables(read(page + ".md"))
            self.assertTrue(found, f"{page}: no table")
            for name, rows in found:
                self.assertTrue(name.startswith(f"figures/{page}"), f"{page}: {name}")
                self.assertEqual(rows, cells(name), f"{page}: {name}")
                self.assertGreater(len(rows), 1, f"{page}: {name}")

    def test_no_file_is_left_over(self):
        used = {f"{page}.svg" for page in pages()}
        for page in pages():
            used |= {os.path.basename(name) for name, _ in tables(read(page + ".md"))}
        self.assertEqual(set(os.listdir(os.path.join(FOLDER, "figures"))), used)

    def test_numbers_of_the_text_are_the_studies(self):
        for page in pages():
            text = read(page + ".md")
            parts = sections(text)
            known = numbers(parts["Setup"])
            for name, _ in tables(text):
                for row in cells(name):
                    for cell in row:
                        known |= set(NUMBER.findall(cell.lstrip("-")))
            self.assertEqual(numbers(parts["What comes out"]) - known, set(), page)
            published = numbers(parts["What is published"])
            self.assertEqual(numbers(parts["Verdict"]) - known - published, set(), page)

    def test_index_has_every_verdict(self):
        index = read("README.md")
        for page in pages():
            verdict = re.match(r"\n\*\*([^*]+)\*\*", sections(read(page + ".md"))["Verdict"])
            self.assertIsNotNone(verdict, f"{page}: the verdict begins with none of {VERDICTS}")
            self.assertIn(verdict.group(1), VERDICTS, page)
            title = read(page + ".md").split("\n")[0][2:]
            self.assertRegex(index, rf"\| \[{re.escape(title)}\]\({page}\.md\) \|.*\| "
                             rf"{re.escape(verdict.group(1).rstrip('.').lower())} \|", page)


class Rules(unittest.TestCase):
    def test_numbers_are_found_in_sentences_only(self):
        self.assertEqual(numbers("3,328 of 14.0 KiB (58.6 us), [arXiv 1](x/2.md), `9`, H100, 1e-4."),
                         {"3,328", "14.0", "58.6", "1e-4"})
        self.assertEqual(numbers("| 7 | 8 |\n\nOf 365, 12 lie behind a table.\n"), {"365", "12"})


if __name__ == "__main__":
    unittest.main()
