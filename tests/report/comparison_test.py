#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The page of `railyard compare --html`: what it holds is what the results hold, and it draws it.

usage: comparison_test.py RAILYARD SOURCE_DIR
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import result
from browser import Browser

RAILYARD = sys.argv[1]
WORKLOAD = """
workload {
  program {
    collectives { kind: ALL_REDUCE bytes: "4MiB" repeat: 10 }
    collectives { kind: ALL_GATHER bytes: "8MiB" repeat: 10 }
  }
}
"""
FABRIC = 'fabric { rail_optimized { servers: %d gpus_per_server: 8 nic_rate: "%s" } }\n'
NAMES = ("fast", "slow", "same")

DRAWN = """
(() => Object.fromEntries([...document.querySelectorAll('#charts section')].map((section) => {
  const option = echarts.getInstanceByDom(section.querySelector('.plot')).getOption();
  return [section.id, {points: option.series.reduce((sum, one) => sum + (one.data ?? []).length, 0),
                       panels: option.grid.length}];
})))()
"""


class Comparison(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.runs = {name: result.run(RAILYARD, FABRIC % (2, rate) + WORKLOAD, cls.path(name),
                                     "--no-report")
                    for name, rate in zip(NAMES, ("400Gbps", "100Gbps", "400Gbps"))}
        cls.page = pathlib.Path(cls.path("comparison.html"))
        done = subprocess.run([RAILYARD, "compare", *map(cls.path, NAMES), "--html", cls.page,
                               "--json", cls.path("comparison.json")],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 5, done.stderr
        cls.json = json.loads(pathlib.Path(cls.path("comparison.json")).read_text())

    @classmethod
    def path(cls, name):
        return os.path.join(cls.scratch.name, name)

    def chart(self, name):
        held = result.Result.__new__(result.Result)
        held.page = self.page
        tables = held.chart(name)
        self.assertEqual(list(tables), [name])
        return tables[name]

    def test_differences_are_those_of_the_command(self):
        rows = iter(self.chart("compared_differences"))
        for name, comparison in zip(NAMES[1:], self.json["comparisons"]):
            for kind in comparison["kinds"]:
                row = next(rows)
                self.assertEqual(row.pop("result"), name)
                row["difference_low"], row["difference_high"] = row.pop("low"), row.pop("high")
                self.assertEqual(row, kind)
        self.assertEqual(list(rows), [])

    def test_ratios_and_durations_are_those_of_the_results(self):
        rows = self.chart("compared_ratios")
        for name in NAMES[1:]:
            ratios = [row["ratio"] for row in rows if row["result"] == name]
            first, second = (
                [value for value, in self.runs[run].query(
                    "SELECT duration_ps FROM collectives ORDER BY collective_index")]
                for run in (NAMES[0], name))
            self.assertEqual(ratios, [after / before for before, after in zip(first, second)])
        rows = self.chart("compared_durations")
        for name in NAMES:
            stored = self.runs[name].query(
                "SELECT kind, duration_ps FROM collectives ORDER BY kind, duration_ps")
            held = [(row["kind"], row["duration_ps"]) for row in rows if row["result"] == name]
            self.assertEqual(sorted(held), stored)
            for kind in ("AllReduce", "AllGather"):
                shares = [row["share"] for row in rows
                          if row["result"] == name and row["kind"] == kind]
                self.assertEqual(shares, [(i + 1) / 10 for i in range(10)])

    def test_bytes_are_those_of_the_results(self):
        tiers, pairs = self.chart("compared_tiers"), self.chart("compared_pairs")
        for name in NAMES:
            self.assertEqual(
                {row["tier"]: row["payload_bytes"] for row in tiers if row["result"] == name},
                dict(self.runs[name].query(
                    "SELECT tier, SUM(payload_bytes) FROM links GROUP BY tier")))
            self.assertEqual(
                sorted((row["source_gpu"], row["destination_gpu"], row["payload_bytes"])
                       for row in pairs if row["result"] == name),
                self.runs[name].query(
                    "SELECT source_gpu, destination_gpu, payload_bytes FROM pairs "
                    "WHERE payload_bytes > 0 ORDER BY 1, 2"))

    @unittest.skipUnless(shutil.which("chromium") or os.environ.get("CI"),
                         "chromium is not installed")
    def test_each_chart_is_drawn(self):
        with Browser() as browser:
            for width, theme in ((1280, "light"), (390, "dark")):
                browser.open(self.page, width=width, theme=theme)
                self.assertEqual(browser.problems, [])
                self.assertEqual([url for url in browser.requests
                                  if not url.startswith(("file:", "data:", "blob:"))], [])
                drawn = browser.evaluate(DRAWN)
                self.assertEqual(drawn["compared_differences"], {"points": 6, "panels": 1})
                self.assertEqual(drawn["compared_ratios"], {"points": 40, "panels": 2})
                # Each line begins at a share of 0.
                self.assertEqual(drawn["compared_durations"], {"points": 66, "panels": 2})
                self.assertEqual(drawn["compared_tiers"]["panels"], 1)
                self.assertEqual(drawn["compared_pairs"],
                                 {"points": len(self.chart("compared_pairs")), "panels": 3})
                wider = browser.evaluate("document.documentElement.scrollWidth - "
                                         "document.documentElement.clientWidth")
                self.assertEqual(wider, 0)
                heading = browser.evaluate("document.querySelector('h1').textContent")
                self.assertRegex(heading, "^slow is slower than fast: its collectives take ")

    def test_an_output_that_is_an_input_is_refused(self):
        store = self.path("fast/results.sqlite")
        before = pathlib.Path(store).read_bytes()
        done = subprocess.run([RAILYARD, "compare", self.path("fast"), self.path("slow"), "--html",
                               store], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--html: error: ", done.stderr)
        self.assertEqual(pathlib.Path(store).read_bytes(), before)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
