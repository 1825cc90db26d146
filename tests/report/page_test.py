#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""report.html in a headless Chromium: what it draws is what the store holds.

usage: page_test.py RAILYARD SOURCE_DIR
"""

import os
import pathlib
import shutil
import sys
import tempfile
import unittest

import result
from browser import Browser

RAILYARD, SOURCE = sys.argv[1:]
SCENARIOS = pathlib.Path(SOURCE, "simulator/scenarios")

# The drawn series of a chart: how many points each has; and whether its legend, on top, leaves room
# (ECharts' legend is 26 pixels high) before what is drawn.
POINTS = """
(() => Object.fromEntries([...document.querySelectorAll('#charts section')].map((section) => {
  const plot = section.querySelector('.plot');
  const chart = echarts.getInstanceByDom(plot);
  const {series, legend, grid} = chart.getOption();
  return [section.id, {points: series.map((one) => (one.data ?? []).length),
                       legendFits: !legend?.length || (grid?.[0]?.top ?? 60) >= 26,
                       width: plot.clientWidth, height: plot.clientHeight}];
})))()
"""

# Markup where a name may be: in a job's name and in a fault's.
HOSTILE = """
name: "hostile"
fabric { rail_optimized { servers: 2 } }
workload { program { collectives { kind: ALL_REDUCE bytes: "4MiB" repeat: 3 } } }
faults {
  name: "</script><script>window.hostile = 1</script><img src=x onerror='window.hostile = 2'>"
  kind: DEGRADE
  link: "server0/nic0--leaf0"
  at: "10us"
  rate_share: 0.5
}
"""


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.directory.cleanup()

    def run_of(self, name):
        directory = pathlib.Path(self.directory.name, name)
        if directory.exists():
            return result.Result(directory)
        return result.run(RAILYARD, SCENARIOS / f"{name}.textproto", directory)

    def open(self, page, **how):
        self.browser.problems.clear()
        self.browser.requests.clear()
        seconds = self.browser.open(page, **how)
        self.assertEqual(self.browser.problems, [])
        self.assertEqual([url for url in self.browser.requests
                          if not url.startswith(("file:", "data:", "blob:"))], [])
        return seconds

    def test_each_chart_is_drawn_with_the_points_of_the_store(self):
        for name in ("fault_flap", "jobs_sharing_spine"):
            run = self.run_of(name)
            for width, theme in ((1280, "light"), (390, "dark")):
                with self.subTest(name, width=width, theme=theme):
                    self.open(run.page, width=width, theme=theme)
                    drawn = self.browser.evaluate(POINTS)
                    charts = {chart["id"] for chart in run.report()["charts"]}
                    self.assertEqual(set(drawn), charts)
                    for chart, seen in drawn.items():
                        self.assertGreater(sum(seen["points"]), 0, chart)
                        self.assertGreater(seen["height"], 50, chart)
                        self.assertTrue(seen["legendFits"], chart)
                    self.assertEqual(sum(drawn["pairs"]["points"]),
                                     run.summary["pairs"]["active"])
                    wider = self.browser.evaluate(
                        "document.documentElement.scrollWidth - document.documentElement.clientWidth")
                    self.assertEqual(wider, 0)

    def test_stretches_are_drawn_where_they_are_stored(self):
        run = self.run_of("fault_flap")
        self.open(run.page)
        drawn = self.browser.evaluate(
            "echarts.getInstanceByDom(document.querySelector('#stretch_over_time .plot'))"
            ".getOption().series.flatMap((one) => one.data.map((point) => point.value))")
        stored = run.query("SELECT start_ps, stretch FROM collectives WHERE stretch IS NOT NULL")
        self.assertEqual(sorted(map(tuple, drawn)), sorted(stored))

    def test_the_verdict_is_the_heading(self):
        run = self.run_of("fault_flap")
        self.open(run.page)
        verdict = "".join(phrase["text"] for phrase in run.report()["verdict"])
        seen = self.browser.evaluate("document.getElementById('verdict').textContent")
        self.assertEqual(" ".join(seen.split()), " ".join(verdict.split()))

    def test_the_switch_changes_the_theme_of_page_and_charts(self):
        self.open(self.run_of("fault_flap").page)
        ground = "getComputedStyle(document.body).backgroundColor"
        before = self.browser.evaluate(ground)
        self.browser.evaluate("document.getElementById('theme').click()")
        self.assertNotEqual(self.browser.evaluate(ground), before)
        self.assertEqual(self.browser.problems, [])
        self.browser.evaluate("document.getElementById('theme').click()")

    def test_arrow_keys_go_from_point_to_point(self):
        self.open(self.run_of("fault_flap").page)
        shown = self.browser.evaluate("""
          (async () => {
            const plot = document.querySelector('#durations .plot');
            plot.focus();
            plot.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}));
            await new Promise((resolve) => setTimeout(resolve, 300));
            return plot.innerText;
          })()""")
        self.assertIn("median", shown)

    def test_names_with_markup_are_text(self):
        run = result.run(RAILYARD, HOSTILE, f"{self.directory.name}/hostile")
        self.open(run.page)
        self.assertIsNone(self.browser.evaluate("window.hostile ?? null"))
        self.assertIn("</script><script>", self.browser.evaluate("document.body.innerText"))
        self.assertEqual(self.browser.evaluate("document.images.length"), 0)


if __name__ == "__main__":
    if shutil.which("chromium") is None:
        print("chromium is not installed: the page is not looked at")
        sys.exit(1 if os.environ.get("CI") == "true" else 77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
