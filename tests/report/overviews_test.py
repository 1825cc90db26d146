#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Pages of studies and of compared fabrics: what they hold is what the commands write otherwise.

usage: overviews_test.py RAILYARD SOURCE_DIR
"""

import csv
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
SCENARIO = """
fabric { rail_optimized { servers: 2 } }
workload { program { collectives { kind: ALL_REDUCE bytes: "1MiB" repeat: 2 } } }
faults { name: "loss" kind: LOSS link: "server0/nic0--leaf0" at: "0s" loss { probability: 0.01 } }
"""
STUDY = """
scenario: "base.textproto"
axes { name: "size" fields: "workload.program.collectives[0].bytes" values: ["1MiB", "4MiB"] }
axes { name: "loss" fields: "faults[0].loss.probability" values: ["0.001", "0.01", "0.1"] }
axes { name: "<b>time-out" fields: "nccl.IB_TIMEOUT" values: ["4", "8"] }
seeds: 3
figures: ["collectives.duration_ps.max", "faults.0.dropped_packets"]
no_baseline: true
"""
PANELS = """
(() => Object.fromEntries([...document.querySelectorAll('#charts section')].map((section) => {
  const option = echarts.getInstanceByDom(section.querySelector('.plot')).getOption();
  const points = (type) => option.series.filter((one) => one.type === type)
    .reduce((sum, one) => sum + (one.data ?? []).length, 0);
  return [section.id, {panels: option.grid.length, lines: points('line'), bands: points('custom'),
                       cells: points('heatmap'), bars: points('bar'), points: points('scatter')}];
})))()
"""


class Overviews(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        (self.scratch / "base.textproto").write_text(SCENARIO)

    def railyard(self, *arguments):
        done = subprocess.run([RAILYARD, *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def chart(self, page, name):
        held = result.Result.__new__(result.Result)
        held.page = page
        return held.chart(name)[name]

    def drawn(self, page):
        if shutil.which("chromium") is None and os.environ.get("CI") != "true":
            self.skipTest("chromium is not installed")
        with Browser() as browser:
            browser.open(page, width=390, theme="dark")
            narrow = browser.evaluate(PANELS)
            browser.open(page)
            self.assertEqual(browser.problems, [])
            self.assertEqual(browser.evaluate("document.querySelectorAll('b').length"), 0)
            drawn = browser.evaluate(PANELS)
            self.assertEqual(drawn, narrow)
            return drawn

    def test_a_study(self):
        study, out = self.scratch / "s.textproto", self.scratch / "out"
        study.write_text(STUDY)
        self.railyard("study", study, "--out", out)
        page = out / "report.html"
        with open(out / "statistics.csv", newline="", encoding="utf-8") as file:
            stored = [row for row in csv.DictReader(file) if int(row["runs"]) > 0]
        self.assertEqual(len(stored), 24)
        for name in ("study_lines", "study_heat"):
            rows = self.chart(page, name)
            self.assertEqual(len(rows), len(stored))
            for held, row in zip(rows, stored):
                self.assertEqual(held["figure"], row["figure"])
                for axis in ("size", "loss", "<b>time-out"):
                    self.assertEqual(held[f"axis: {axis}"], row[axis])
                self.assertEqual(held["runs"], int(row["runs"]))
                self.assertAlmostEqual(held["mean"], float(row["mean"]), delta=1e-6 * held["mean"])
                for bound in ("low", "high"):
                    self.assertAlmostEqual(held[bound], float(row[f"mean_{bound}"]),
                                           delta=1e-6 * abs(held["mean"]))
        # The longest axis is across: two sizes are lines, two time-outs panels, each point has bounds.
        drawn = self.drawn(page)
        self.assertEqual((drawn["study_lines"]["panels"], drawn["study_lines"]["lines"],
                          drawn["study_lines"]["bands"]), (2, 12, 12))
        self.assertEqual(drawn["study_heat"]["cells"], 6)
        self.railyard("study", study, "--out", self.scratch / "bare", "--no-report")
        self.assertFalse((self.scratch / "bare/report.html").exists())

    def test_compared_fabrics(self):
        page, table = self.scratch / "fabrics.html", self.scratch / "fabrics.json"
        self.railyard("topo", "compare", "h100-4x8-rail-optimized", "h100-4x8-rail-only",
                      "--workload", self.scratch / "base.textproto", "--set", "faults=",
                      "--html", page, "--json", table)
        runs = json.loads(table.read_text())
        for name in ("fabrics_measures", "fabrics_cost"):
            for held, run in zip(self.chart(page, name), runs, strict=True):
                self.assertEqual(held.pop("bisection_bps"), 8 * run["bisection_bytes_per_s"])
                self.assertEqual(held, {key: run[key] for key in held})
        self.assertEqual(self.chart(page, "compared_tiers"),
                         [{"tier": tier["tier"], "result": run["fabric"],
                           "payload_bytes": tier["payload_bytes"]}
                          for run in runs for tier in run["tiers"]])
        drawn = self.drawn(page)
        measures = drawn["fabrics_measures"]
        self.assertGreaterEqual(measures["panels"], 8)
        self.assertEqual(measures["bars"], 2 * measures["panels"])
        self.assertEqual(drawn["fabrics_cost"]["points"], 2)

    def test_fidelity(self):
        columns = ("source_id,collective,nodes,gpus_per_node,gpu,nic_gbps,nccl_version,algo_hint,bytes,"
                   "time_us,algbw_GBps,busbw_GBps,notes\n")
        row = "{},all_gather,1,8,H100-SXM5-80GB,8x400 IB,2.27.5,,{},{},,,\n"
        table, times = self.scratch / "measured.csv", self.scratch / "times.csv"
        table.write_text(columns + row.format("one", 65536, 30) + row.format("<b>two", 65536, 33)
                         + row.format("one", 131072, 40))
        times.write_text("simulator,source_id,collective,nodes,gpus_per_node,bytes,time_us\n"
                         "other,one,all_gather,1,8,131072,60\n")
        page, out = self.scratch / "fidelity.html", self.scratch / "fidelity.json"
        self.railyard("fidelity", table, "--html", page, "--times", times, "--json", out)
        rows = json.loads(out.read_text())["rows"]
        held = self.chart(page, "fidelity_sizes")
        ours = [one for one in held if one["simulator"] == "railyard"]
        self.assertEqual(sorted(one["error"] for one in ours), sorted(one["error"] for one in rows))
        for one in ours:
            # 30 and 33 us of one kind of machine.
            self.assertEqual(one["spread"] is None, one["bytes"] == 131072)
            if one["spread"] is not None:
                self.assertAlmostEqual(one["spread"], 0.1, delta=1e-9)
        others = [one for one in held if one["simulator"] == "other"]
        self.assertEqual([(one["bytes"], one["error"]) for one in others], [(131072, 0.5)])
        cells = self.chart(page, "fidelity_machines")
        self.assertEqual(sum(cell["rows"] for cell in cells), 4)
        drawn = self.drawn(page)
        self.assertEqual(drawn["fidelity_machines"]["cells"], 1)
        self.assertEqual(drawn["fidelity_sizes"]["points"], 4)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
