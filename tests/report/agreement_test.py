#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""summary.json, results.sqlite, the CSV files, report.html and the Perfetto trace say the same.

usage: agreement_test.py RAILYARD SOURCE_DIR
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

RAILYARD, SOURCE = sys.argv[1:]
sys.path.append(str(pathlib.Path(__file__).parent.parent / "scenarios"))

import result
from perfetto_reader import Trace

SCENARIOS = pathlib.Path(SOURCE, "simulator/scenarios")


def figures_by_path(value, path=""):
    """Returns what is in no list, with its path: "collectives.stretch.max"."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from figures_by_path(member, f"{path}.{key}" if path else key)
    elif not isinstance(value, list):
        yield path, value


class Agreement(unittest.TestCase):
    """A run with a fault that loses packets, and a run of two jobs."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.runs = [result.run(RAILYARD, SCENARIOS / f"{name}.textproto",
                               f"{cls.directory.name}/{name}", "--perfetto")
                    for name in ("fault_flap", "jobs_sharing_spine")]

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def each(self):
        for run in self.runs:
            with self.subTest(run.directory.name):
                yield run

    def test_every_figure_of_the_verdict_is_what_its_query_gives(self):
        for run in self.each():
            report = run.report()
            phrases = [phrase for phrase in report["verdict"] if "sql" in phrase]
            self.assertGreater(len(phrases), 2)
            phrases += [figure["figure"] for figure in report["figures"]]
            for phrase in phrases:
                self.assertEqual(phrase["value"], run.query(phrase["sql"])[0][0], phrase["sql"])

    def test_words_between_figures_hold_no_figures(self):
        for run in self.each():
            for phrase in run.report()["verdict"]:
                if "sql" not in phrase:
                    self.assertNotRegex(phrase["text"], r"\d")

    def test_the_table_run_is_the_summary(self):
        for run in self.each():
            stored = dict(run.query("SELECT key, value FROM run"))
            self.assertEqual(run.report()["run"], stored)
            for key in ("scenario", "status", "fingerprint", "simulated_time_ps", "packets",
                        "packet_hops", "peak_rss_bytes"):
                self.assertEqual(stored[key], run.summary[key], key)
            for key in ("retransmitted_packets", "timeouts", "ecn_marked", "cnp", "pfc_pause_ps"):
                self.assertEqual(stored[key], run.summary["transport"][key], key)
            self.assertEqual(stored["payload_bytes"], run.summary["payload"]["total_bytes"])
            for path, value in figures_by_path(run.summary):
                self.assertIn(path, stored)
                if path != "seed":  # a text
                    self.assertEqual(stored[path], value, path)
            self.assertEqual(stored["replayed_collectives"], run.summary["collectives"]["replayed"])

    def test_collectives(self):
        for run in self.each():
            count = run.summary["collectives"]["count"]
            self.assertEqual(len(run.csv("collectives.csv")), count)
            self.assertEqual(run.query("SELECT COUNT(*) FROM collectives")[0][0], count)
            durations = run.chart("durations")["durations"]
            self.assertEqual(sum(row["count"] for row in durations), count)
            statistics = run.summary["collectives"]["duration_ps"]
            self.assertEqual(min(row["min_ps"] for row in durations), statistics["min"])
            self.assertEqual(max(row["max_ps"] for row in durations), statistics["max"])
            for kind in run.summary["by_kind"]:
                rows = [row for row in durations if row["kind"] == kind["kind"]]
                self.assertEqual(sum(row["count"] for row in rows), kind["count"])
                self.assertEqual(max(row["max_ps"] for row in rows), kind["duration_ps"]["max"])

    def test_stretches(self):
        run = self.runs[0]
        drawn = run.chart("stretch_over_time")["stretch_over_time"]
        stored = {int(row["collective_index"]): row for row in run.csv("collectives.csv")}
        self.assertEqual(len(drawn), len(stored))
        for row in drawn:
            self.assertEqual(row["stretch"], float(stored[row["collective_index"]]["stretch"]))
        self.assertEqual(max(row["stretch"] for row in drawn),
                         run.summary["collectives"]["stretch"]["max"])
        distribution = run.chart("stretch_distribution")["stretch_distribution"]
        for row in distribution:
            of_kind = [r["stretch"] for r in drawn if r["kind"] == row["kind"]]
            at_most = sum(stretch <= row["stretch"] for stretch in of_kind)
            self.assertLessEqual(row["share"], at_most / len(of_kind) + 1e-12)

    def test_pairs(self):
        for run in self.each():
            pairs = run.chart("pairs")["pairs"]
            self.assertEqual(len(pairs), run.summary["pairs"]["active"])
            stored = run.csv("pairs.csv")
            self.assertEqual(sum(row["payload_bytes"] for row in pairs),
                             sum(int(row["payload_bytes"]) for row in stored))
            cells = {(row["source_gpu"], row["destination_gpu"]): row["payload_bytes"]
                     for row in pairs}
            for row in stored:
                if int(row["payload_bytes"]) > 0:
                    cell = cells[int(row["source_gpu"]), int(row["destination_gpu"])]
                    self.assertEqual(cell, int(row["payload_bytes"]))

    def test_the_timeline(self):
        """The timeline has the collectives with the times of the CSV, the faults, and the links over time."""
        for run in self.each():
            trace = Trace(str(run.directory / "trace.perfetto-trace"))
            calls = {}
            for call in trace.slices:
                if trace.tracks[call["track"]]["name"].startswith("stream"):
                    calls.setdefault(call["args"]["collective"], []).append(call["args"])
            rows = run.csv("collectives.csv")
            self.assertEqual(len(calls), run.summary["collectives"]["count"])
            self.assertEqual(sum(map(len, calls.values())), run.summary["collectives"]["calls"])
            for row in rows:
                of_row = calls[int(row["collective_index"])]
                self.assertEqual(min(call["begin_ps"] for call in of_row), int(row["start_ps"]))
                self.assertEqual(max(call["begin_ps"] + call["duration_ps"] for call in of_row),
                                 int(row["end_ps"]))
            begins = [instant["args"] for instant in trace.instants if instant["name"] == "begins"]
            self.assertEqual(sorted(args["dropped_packets"] for args in begins),
                             sorted(fault["dropped_packets"] for fault in run.summary["faults"]))
            names = {trace.tracks[track]["name"] for track, _, _ in trace.values}
            drawn = {row["link"] + " utilization" for row in run.csv("link_series.csv")}
            self.assertTrue(drawn)
            self.assertLessEqual(drawn, names)

    def test_transfers(self):
        for run in self.each():
            rows = run.csv("transfers.csv")
            self.assertEqual(len(rows), run.query("SELECT COUNT(*) FROM transfers")[0][0])
            stored = dict(run.query("SELECT key, value FROM run"))
            self.assertLessEqual(len(rows), stored["transfers_seen"])
            starts = {int(row["collective_index"]): int(row["start_ps"])
                      for row in run.csv("collectives.csv")}
            for row in rows:
                self.assertGreaterEqual(int(row["ready_ps"]), starts[int(row["collective_index"])])

    def test_the_command_writes_the_same_page_again(self):
        run = self.runs[0]
        again = f"{self.directory.name}/again.html"
        done = subprocess.run([RAILYARD, "report", run.directory, "-o", again],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(pathlib.Path(again).read_text(), run.page.read_text())
        self.assertLess(run.page.stat().st_size, 8 << 20)

    def test_each_chart_is_a_figure_with_its_data(self):
        for run in self.each():
            figures = run.directory / "figures"
            done = subprocess.run([RAILYARD, "report", run.directory, "-o", f"{figures}.html",
                                   "--figures", figures], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            names = [chart["id"] for chart in run.report()["charts"]]
            self.assertGreater(len(names), 8)
            for name in names:
                self.assertIn("<path", (figures / f"{name}.svg").read_text(), name)
                self.assertTrue((figures / f"{name}.pdf").read_bytes().startswith(b"%PDF"), name)
            self.assertTrue(list(figures.glob("*.csv")))

    def test_links_of_a_tier_are_idle_in_bins_without_rows(self):
        for run in self.each():
            bins = run.query("SELECT begin_ps FROM series ORDER BY bin")
            end_ps, = run.query("SELECT MAX(end_ps) FROM series")[0]
            busiest = dict(((tier, begin_ps), share) for tier, begin_ps, share in run.query(
                "SELECT tier, begin_ps, MAX(utilization) FROM link_series JOIN links USING (link) "
                "GROUP BY 1, 2"))
            tiers = {tier for tier, in run.query("SELECT DISTINCT tier FROM links")}
            drawn = {(row["tier"], row["begin_ps"]): row["greatest"]
                     for row in run.chart("utilization")["utilization"]}
            for tier in tiers:
                for begin_ps, in bins:
                    self.assertEqual(drawn[tier, begin_ps], busiest.get((tier, begin_ps), 0))
                self.assertEqual(drawn[tier, end_ps], drawn[tier, bins[-1][0]])

    def test_parallel_cables_join_the_same_devices(self):
        run = result.run(RAILYARD, """
fabric { rail_optimized { servers: 2 gpus_per_server: 2 spines: 2 links_per_leaf_and_spine: 2 } }
workload { program { collectives { kind: ALL_TO_ALL bytes: "1MiB" } } }
faults { kind: LINK_DOWN link: "leaf0--spine0#2" at: "1us" until: "2us" }
""", f"{self.directory.name}/parallel")
        tables = run.chart("fabric")
        rows = [device["row"] for device in tables["fabric_devices"]]
        self.assertEqual(rows.count("spine"), 2)
        cables = [cable for cable in tables["fabric_cables"] if cable["tier"] == "LEAF_SPINE"]
        self.assertEqual(len(cables), 2 * 2 * 2)
        self.assertEqual(sum(cable["has_fault"] for cable in cables), 1)

    def test_a_run_can_do_without(self):
        run = result.run(RAILYARD, SCENARIOS / "fault_flap.textproto",
                         f"{self.directory.name}/without", "--no-report")
        self.assertFalse(run.page.exists())
        self.assertTrue((run.directory / "results.sqlite").exists())


class Refusals(unittest.TestCase):
    def refused(self, directory):
        done = subprocess.run([RAILYARD, "report", directory], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("is no result of a run", done.stderr)
        self.assertFalse(pathlib.Path(directory, "report.html").exists())

    def test_what_is_no_result(self):
        with tempfile.TemporaryDirectory() as directory:
            self.refused(directory)
            database = pathlib.Path(directory, "results.sqlite")
            database.write_text("not a database, but long enough to be taken for one " * 100)
            self.refused(directory)

    def test_a_view_that_never_ends_is_not_read(self):
        with tempfile.TemporaryDirectory() as directory:
            run = result.run(RAILYARD, SCENARIOS / "fault_flap.textproto", f"{directory}/out",
                             "--no-report")
            run.database.executescript(
                "DROP TABLE notes; CREATE VIEW notes AS WITH RECURSIVE n(note) AS "
                "(SELECT 'x' UNION ALL SELECT note FROM n) SELECT note FROM n;")
            run.database.close()
            self.refused(run.directory)
            done = subprocess.run([RAILYARD, "compare", run.directory, run.directory], capture_output=True,
                                  text=True, timeout=60)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("notes is not a plain table", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
