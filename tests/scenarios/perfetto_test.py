#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Traces that `railyard run --perfetto` writes, read by another reader and held to the result."""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import unittest

from perfetto_reader import Trace

RAILYARD = sys.argv.pop(1)
FABRIC = "fabric { rail_optimized { servers: 2 gpus_per_server: 8 nic_rate: \"400Gbps\" } }\n"


def program(kind, size, more=""):
    return f'workload {{ program {{ collectives {{ kind: {kind} bytes: "{size}" {more} }} }} }}\n'


class Result:
    def __init__(self, scenario, *options):
        with tempfile.TemporaryDirectory() as scratch:
            path, out = os.path.join(scratch, "s.textproto"), os.path.join(scratch, "out")
            with open(path, "w", encoding="utf-8") as file:
                file.write(scenario)
            subprocess.run([RAILYARD, "run", path, "--out", out, "--quiet", "--perfetto", *options],
                           check=True)
            trace = os.path.join(out, "trace.perfetto-trace")
            self.size = os.path.getsize(trace)
            self.trace = Trace(trace)
            with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
                self.summary = json.load(file)
            self.database = sqlite3.connect(":memory:")
            with sqlite3.connect(os.path.join(out, "results.sqlite")) as database:
                database.backup(self.database)

    def query(self, sql):
        return self.database.execute(sql).fetchall()

    def track_of(self, of):
        return self.trace.tracks[of["track"]]

    def process_of(self, of):
        return self.trace.tracks[self.track_of(of)["parent"]]

    def calls(self):
        return [slice_ for slice_ in self.trace.slices
                if self.track_of(slice_)["name"].startswith("stream")]

    def slices(self):
        return [slice_ for slice_ in self.trace.slices if "channel" in self.track_of(slice_)["name"]]

    def messages(self):
        return [slice_ for slice_ in self.trace.slices
                if self.track_of(slice_)["name"].startswith("proxy")]


class Traces(unittest.TestCase):
    def expect_calls(self, result):
        """Each rank's call of each collective, its begin and end to the picosecond."""
        collectives = {}
        for call in result.calls():
            self.assertEqual(call["begin_ns"], call["args"]["begin_ps"] // 1000)
            end_ps = call["args"]["begin_ps"] + call["args"]["duration_ps"]
            self.assertEqual(call["end_ns"], end_ps // 1000)
            self.assertEqual(call["depth"], 0)
            collectives.setdefault(call["args"]["collective"], []).append(call)
        rows = result.query("SELECT rowid - 1, kind, communicator, ranks, bytes, start_ps, "
                            "last_start_ps, end_ps FROM collectives")
        self.assertEqual(len(rows), len(collectives))
        for index, kind, communicator, ranks, size, start_ps, last_start_ps, end_ps in rows:
            calls = collectives[index]
            self.assertEqual(len(calls), ranks)
            begins = [call["args"]["begin_ps"] for call in calls]
            ends = [call["args"]["begin_ps"] + call["args"]["duration_ps"] for call in calls]
            self.assertEqual((min(begins), max(begins), max(ends)),
                             (start_ps, last_start_ps, end_ps))
            for call in calls:
                self.assertEqual((call["name"], call["args"]["bytes"],
                                  call["args"]["communicator"]), (kind, size, communicator))
            self.assertEqual(len({result.process_of(call)["pid"] for call in calls}), ranks)
        replayed = [index for index, calls in collectives.items() if calls[0]["args"]["replayed"]]
        self.assertEqual(len(replayed), result.summary["collectives"]["replayed"])

    # A ring of n ranks has 2 (n - 1) steps of receiving and sending, each channel its share of the
    # bytes: what all slices that send carry is 2 (n - 1) times the size.
    def test_a_ring(self):
        result = Result(FABRIC + program("ALL_REDUCE", "16MiB") +
                        'nccl { ALGO: "Ring" PROTO: "Simple" }\n')
        self.expect_calls(result)
        slices = result.slices()
        sent = sum(slice_["args"]["bytes"] for slice_ in slices if "send" in slice_["name"])
        self.assertEqual(sent, 2 * 15 * (16 << 20))
        received = sum(slice_["args"]["bytes"] for slice_ in slices if "receive" in slice_["name"])
        self.assertEqual(received, sent)
        self.assertFalse([note for note, in result.query("SELECT note FROM notes")
                          if "perfetto" in note])
        (start_ps, end_ps), = result.query("SELECT start_ps, end_ps FROM collectives")
        for slice_ in slices:
            self.assertEqual(slice_["begin_ns"], slice_["args"]["begin_ps"] // 1000)
            self.assertGreaterEqual(slice_["args"]["begin_ps"], start_ps)
            self.assertLessEqual(slice_["args"]["begin_ps"] + slice_["args"]["duration_ps"], end_ps)
            self.assertEqual(slice_["depth"], 0, "slices of a lane follow one another")
        for sender, receiver in self.expect_arrows(result):
            self.assertNotEqual(result.process_of(sender), result.process_of(receiver))
        # Messages leave servers through proxies, whose slices do not overlap.
        messages = result.messages()
        self.assertTrue(messages)
        for message in messages:
            self.assertEqual(message["depth"], 0)
        posts = sum(message["name"] == "post" for message in messages)
        self.assertEqual(posts, sum(message["name"] == "in flight" for message in messages))

    # An arrow ends in what waited, and comes from what was sent before.
    def expect_arrows(self, result):
        slices = result.slices()
        begins = {flow: slice_ for slice_ in slices for flow in slice_["begins"]}
        arrows = [(begins[flow], slice_) for slice_ in slices for flow in slice_["ends"]]
        self.assertGreater(len(arrows), 100)
        for sender, receiver in arrows:
            end_ps = sender["args"]["begin_ps"] + sender["args"]["duration_ps"]
            self.assertLessEqual(end_ps, receiver["args"]["begin_ps"])
            self.assertEqual(sender["args"]["collective"], receiver["args"]["collective"])
        return arrows

    # The slices of a round wait together for the messages of all of them.
    def test_rounds(self):
        for algorithm, servers in (("NVLS", 1), ("NVLS_TREE", 2), ("TREE", 2)):
            self.expect_arrows(Result(
                FABRIC.replace("servers: 2", f"servers: {servers}") +
                program("ALL_REDUCE", "16MiB").replace("workload {",
                                                       f"workload {{ algorithm: {algorithm}", 1)))

    def test_counters_are_the_series(self):
        result = Result(FABRIC + program("ALL_REDUCE", "16MiB"))
        values = {}
        for track, time_ns, value in result.trace.values:
            values[result.trace.tracks[track]["name"], time_ns] = value
            self.assertTrue(result.trace.tracks[track]["is_counter"])
        rows = result.query("SELECT link, begin_ps, utilization FROM link_series")
        self.assertTrue(rows)
        changes = 0
        last = {}
        for link, begin_ps, utilization in rows:
            given = values.get((link + " utilization", begin_ps // 1000))
            if given is None:  # as in the bin before
                self.assertAlmostEqual(last[link], 100 * utilization)
            else:
                changes += 1
                self.assertAlmostEqual(given, 100 * utilization)
            last[link] = 100 * utilization
        self.assertGreater(changes, 100)

    def test_what_is_replayed(self):
        result = Result(FABRIC.replace("servers: 2", "servers: 1") +
                        program("ALL_REDUCE", "1MiB", "repeat: 30"))
        self.expect_calls(result)
        self.assertGreater(result.summary["collectives"]["replayed"], 5)

    def test_faults(self):
        result = Result(FABRIC + program("ALL_REDUCE", "1MiB", "repeat: 5") +
                        'faults { name: "flap" kind: LINK_DOWN link: "server0/nic0--leaf0" '
                        'at: "100us" until: "200us" }\n')
        self.expect_calls(result)
        instants = {instant["name"]: instant for instant in result.trace.instants}
        (from_ps, until_ps, dropped), = result.query(
            "SELECT from_ps, until_ps, dropped_packets FROM faults")
        self.assertEqual(instants["begins"]["time_ns"], from_ps // 1000)
        self.assertEqual(instants["ends"]["time_ns"], until_ps // 1000)
        self.assertEqual(instants["begins"]["args"]["target"], "server0/nic0--leaf0")
        self.assertEqual(instants["begins"]["args"]["dropped_packets"], dropped)
        self.assertEqual(result.trace.tracks[instants["begins"]["track"]]["name"], "flap")

    # The option changes nothing else.
    def test_the_result_is_the_same(self):
        scenario = FABRIC + program("ALL_GATHER", "8MiB", "repeat: 3")
        result = Result(scenario)
        with tempfile.TemporaryDirectory() as scratch:
            path, out = os.path.join(scratch, "s.textproto"), os.path.join(scratch, "out")
            with open(path, "w", encoding="utf-8") as file:
                file.write(scenario)
            subprocess.run([RAILYARD, "run", path, "--out", out, "--quiet"], check=True)
            self.assertFalse(os.path.exists(os.path.join(out, "trace.perfetto-trace")))
            with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
                summary = json.load(file)
        for figure in ("fingerprint", "collectives", "events", "simulated_time_ps", "tiers"):
            self.assertEqual(summary[figure], result.summary[figure])

    # More slices than the budget allows: whole channels are shown, and a note counts them.
    def test_the_budget(self):
        result = Result(FABRIC.replace("servers: 2", "servers: 4") +
                        program("ALL_REDUCE", "64MiB", "repeat: 4"), "--no-replay-cache")
        self.expect_calls(result)
        self.assertLess(result.size, 64 << 20)
        note, = [note for note, in result.query("SELECT note FROM notes") if "perfetto" in note]
        shown, _, of = note.removeprefix("trace.perfetto-trace has ").partition(" slices of ")
        self.assertEqual(int(shown.replace(",", "")), len(result.slices()))
        self.assertGreater(int(of.split()[0].replace(",", "")), len(result.slices()))
        # The budget is not used up by the first half of the run.
        shown = {slice_["args"]["collective"] for slice_ in result.slices()}
        self.assertIn(0, shown)
        self.assertTrue(shown & {2, 3}, shown)


if __name__ == "__main__":
    unittest.main()
