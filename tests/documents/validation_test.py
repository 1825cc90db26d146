#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The figures of docs/validation.md that compare tables with simulations are those of the program.

usage: validation_test.py RAILYARD [JSON]

JSON is what `railyard fidelity` has printed over all tables; without it the command runs, for about
9 minutes on two cores. The tables are in RAILYARD_REFERENCE_DIR (../shared/reference).
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

RAILYARD = os.path.abspath(sys.argv[1])
GIVEN = sys.argv[2] if len(sys.argv) > 2 else None
HERE = pathlib.Path(__file__).resolve().parent
TABLES = pathlib.Path(os.environ.get("RAILYARD_REFERENCE_DIR", HERE / "../../../shared/reference")) / "measured"
PAGE = (HERE / "../../docs/validation.md").read_text()

MIB = 1 << 20
# As the page writes them in its text.
COLLECTIVES = {"AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter",
               "AllToAll": "alltoall", "SendRecv": "sendrecv"}


def percentile(errors, share):
    """The smallest |error| that more than a share of the rows does not exceed, in percent; None without errors."""
    ordered = sorted(abs(error) for error in errors)
    return 100 * ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else None


def percent(value):
    return "" if value is None else f"{value:.1f} %"


def fidelity(*arguments):
    """Rows of tables that were simulated."""
    run = subprocess.run([RAILYARD, "fidelity", *arguments, "--json", "-"], stdout=subprocess.PIPE, check=True)
    return [row for row in json.loads(run.stdout)["rows"] if row.get("error") is not None]


class Rows:
    def __init__(self, rows):
        self.rows = rows

    def where(self, keep):
        return Rows([row for row in self.rows if keep(row)])

    def errors(self, is_large=True):
        return [row["error"] for row in self.rows if (row["bytes"] >= MIB) == is_large]

    def median(self, is_large=True):
        return percentile(self.errors(is_large), 0.5)

    def p90(self):
        return percentile(self.errors(), 0.9)


def table_under(header):
    """The rows of the page's table with this first cell, as lists of cells."""
    lines = PAGE.split(f"\n| {header} |", 1)[1].split("\n")[2:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


class Validation(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        if GIVEN:
            rows = [row for row in json.loads(pathlib.Path(GIVEN).read_text())["rows"] if row.get("error") is not None]
        else:
            rows = fidelity(*sorted(TABLES.glob("*.csv")))
        cls.all = Rows(rows)
        # The page has these with their 4 GiB, too, for they have no smaller rows.
        larger = fidelity(TABLES / "h100-cluster01-2node-a2a-sendrecv.csv", "--max-bytes", "4G")
        cls.of_4_gib = Rows([row for row in larger if row["bytes"] > 1 << 30])
        cls.core_tables = {row[0].strip("*") for row in table_under("Table") if row[0].startswith("**")}
        cls.core = cls.all.where(lambda row: row["source_id"] in cls.core_tables)

    def test_every_table(self):
        groups = {}
        for row in self.all.rows + self.of_4_gib.rows:
            key = (row["source_id"], row["collective"], f"{row['nodes']} x {row['gpus_per_node']}")
            groups.setdefault(key, []).append(row)
        expected = {}
        for key, rows in groups.items():
            group = Rows(rows)
            expected[key] = [str(len(rows)), percent(group.median()), percent(group.p90()),
                             percent(group.median(False))]
        shown = {(cells[0].strip("*"), cells[1], cells[2]): cells[3:] for cells in table_under("Table")}
        self.assertEqual(shown, expected)

    def test_the_core_set(self):
        errors = self.core.errors()
        self.assertIn(f"Core set: {len(errors)} rows from 1 MiB up to 1 GiB, median |error| {percent(self.core.median())}, "
                      f"p90 {percent(self.core.p90())}, {sum(abs(error) > 0.15 for error in errors)} rows above 15 %; "
                      f"{len(self.core.errors(False))} rows below 1 MiB, median {percent(self.core.median(False))}.", PAGE)

    def test_the_core_set_with_rows_of_4_gib(self):
        self.assertTrue(self.of_4_gib.rows)
        both = Rows(self.core.rows + self.of_4_gib.rows)
        self.assertIn(f"at 4 GiB: median {percent(both.median())}, p90 {percent(both.p90())}.", PAGE)

    def test_tables_left_out(self):
        left_out = set()
        for cells in table_under("Left out"):
            names = re.findall(r"`([^`]+)`", cells[0])
            if not cells[0].startswith("those"):
                left_out = set()
            left_out |= {name if name in self.core_tables else names[0].rsplit("-", 1)[0] + name for name in names}
            self.assertLessEqual(left_out, self.core_tables)
            rest = self.core.where(lambda row: row["source_id"] not in left_out)
            self.assertEqual(cells[1:], [percent(rest.median()), percent(rest.p90())], cells[0])

    def test_a_single_table_left_out(self):
        rests = [self.core.where(lambda row, name=name: row["source_id"] != name) for name in self.core_tables]
        medians = [percent(rest.median())[:-2] for rest in rests]
        p90s = [percent(rest.p90())[:-2] for rest in rests]
        text = " ".join(PAGE.split())
        said = re.search(r"changes the median to between ([\d.]+) and ([\d.]+) % and the p90 to between ([\d.]+) "
                         r"\([^)]*\) and ([\d.]+) %", text).groups()
        self.assertEqual(said, (min(medians, key=float), max(medians, key=float), min(p90s, key=float),
                                max(p90s, key=float)))

    def test_platforms(self):
        sources = {row["source_id"] for row in self.all.rows}
        for _, looked_at, checked, _, after in table_under("Platform"):
            tables = [name for name in re.findall(r"`([^`]+)`", looked_at + checked) if name in sources]
            if not tables:
                continue
            kinds = [kind for name, kind in COLLECTIVES.items() if name in looked_at + checked]
            rows = self.all.where(lambda row, tables=tables, kinds=kinds: row["source_id"] in tables and
                                  (not kinds or row["collective"] in kinds))
            median, below = re.fullmatch(r"([\d.]+)(?: \(([\d.]+)\))? %", after).groups()
            self.assertEqual(f"{float(median):.1f}", f"{rows.median():.1f}", tables)
            if below:
                digits = len(below.partition(".")[2])
                self.assertEqual(below, f"{rows.median(False):.{digits}f}", tables)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
