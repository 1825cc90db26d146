#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Studies on a Slurm cluster have the rows of studies on this machine.

usage: slurm_cluster slurm_test.py RAILYARD
"""

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

RAILYARD = os.path.abspath(sys.argv.pop())
SCENARIO = """
fabric { rail_optimized { servers: 2 } }
workload { program { collectives { kind: ALL_REDUCE bytes: "1MiB" } } algorithm: RING protocol: SIMPLE }
faults { name: "f" kind: LOSS link: "server*/nic*--leaf*" at: "0s" loss { probability: 0.001 } }
"""
STUDY = """
scenario: "base.textproto"
axes { name: "loss" fields: "faults[0].loss.probability" log_uniform { low: 1e-4 high: 1e-2 } }
axes { name: "size" fields: "workload.program.collectives[0].bytes" values: [SIZES] unit: "MiB" }
sample { points: 4 }
seeds: 3
figures: ["simulated_time_ps", "transport.retransmitted_packets"]
"""


def ask(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout


class Slurm(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def words(self, out, *more, sizes='"1", "2"'):
        with open(self.path("base.textproto"), "w", encoding="utf-8") as file:
            file.write(SCENARIO)
        with open(self.path("s.textproto"), "w", encoding="utf-8") as file:
            file.write(STUDY.replace("SIZES", sizes))
        return [RAILYARD, "study", self.path("s.textproto"), "--out", self.path(out), *more]

    def study(self, out, *more, status=0, **sizes):
        done = subprocess.run(self.words(out, *more, **sizes), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def read(self, out, name):
        with open(os.path.join(self.path(out), name), encoding="utf-8") as file:
            return file.read()

    def assert_same_rows(self, out, other):
        for name in ("points.csv", "statistics.csv"):
            self.assertEqual(self.read(out, name), self.read(other, name))

    def test_rows_are_those_of_the_local_executor(self):
        self.study("local")
        self.study("slurm", "--executor", "slurm", "--runs-per-task", "5",
                   "--sbatch=--comment=railyard", "--sbatch=--time=10")
        self.assert_same_rows("slurm", "local")

        def rows(out, table):
            database = sqlite3.connect(os.path.join(self.path(out), "study.sqlite"))
            cursor = database.execute(f"SELECT * FROM {table}")
            timings = ("seconds", "peak_memory_bytes")
            keep = [i for i, column in enumerate(cursor.description) if column[0] not in timings]
            return [[row[i] for i in keep] for row in cursor]

        for table in ("points", "statistics", "means", "differences", "failed"):
            self.assertEqual(rows("slurm", table), rows("local", table), table)
        # 24 runs, five per task.
        tasks = [name for name in os.listdir(self.path("slurm/slurm")) if name.startswith("1-")]
        self.assertEqual(len(tasks), 5)
        self.assertEqual(ask("squeue", "--noheader"), "")

    def test_options_go_to_sbatch_and_a_refusal_is_an_error(self):
        done = self.study("out", "--executor", "slurm", "--sbatch=--partition=none", status=1)
        self.assertIn("invalid partition", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.study("out", "--resume")  # nothing is left to cancel

    def running(self, out, sizes):
        """A driver whose first tasks run."""
        driver = subprocess.Popen(
            self.words(out, "--executor", "slurm", "--runs-per-task", "1", sizes=sizes),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while ask("squeue", "--noheader", "--states=RUNNING") == "":
            self.assertIsNone(driver.poll())
            time.sleep(0.1)
        return driver

    def test_a_killed_driver_resumes_and_a_signal_cancels_the_jobs(self):
        sizes = '"1", "2", "64"'
        self.study("local", sizes=sizes)
        driver = self.running("cut", sizes)
        driver.kill()
        driver.wait()
        self.assertNotEqual(ask("squeue", "--noheader"), "")
        driver = subprocess.Popen(
            self.words("cut", "--executor", "slurm", "--resume", sizes=sizes),
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(2)
        driver.send_signal(signal.SIGTERM)
        errors = driver.communicate()[1]
        self.assertIn(driver.returncode, (0, 4), errors)
        deadline = time.time() + 30
        while ask("squeue", "--noheader") and time.time() < deadline:
            time.sleep(0.2)
        self.assertEqual(ask("squeue", "--noheader"), "")
        self.study("cut", "--executor", "slurm", "--resume", sizes=sizes)
        self.assert_same_rows("cut", "local")

    def test_a_study_that_is_detached_is_collected_by_a_job(self):
        sizes = '"1", "64"'
        self.study("local", sizes=sizes)
        done = self.study("left", "--executor", "slurm", "--detach", "--runs-per-task", "4",
                          sizes=sizes)
        self.assertIn("24 runs of", done.stdout)
        self.assertNotEqual(ask("squeue", "--noheader"), "", "it has waited")
        self.assertFalse(os.path.exists(self.path("left/points.csv")))
        # One task is lost; the job that collects makes its runs again.
        task = ask("squeue", "--noheader", "--array", "--format=%i").split()[0]
        subprocess.run(["scancel", task], check=True)
        deadline = time.time() + 240
        while ask("squeue", "--noheader") and time.time() < deadline:
            time.sleep(0.5)
        self.assertEqual(ask("squeue", "--noheader"), "")
        self.assert_same_rows("left", "local")
        self.assertIn("results: ", self.read("left", "collect.log"))

    def test_warnings_of_slurm_are_no_answers(self):
        """sbatch and squeue print their warnings on standard error."""
        folder = self.path("bin")
        os.mkdir(folder)
        for name in ("sbatch", "squeue"):
            real = ask("sh", "-c", f"command -v {name}").strip()
            script = os.path.join(folder, name)
            with open(script, "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\necho "{name}: warning: x" >&2\nexec {real} "$@"\n')
            os.chmod(script, 0o755)
        words = self.words("warned", "--executor", "slurm")
        environment = dict(os.environ, PATH=folder + ":" + os.environ["PATH"])
        done = subprocess.run(words, env=environment, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, check=False, timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.study("local")
        self.assert_same_rows("warned", "local")

    def test_a_task_that_begins_again_makes_the_interrupted_run_again(self):
        sizes = '"1", "2"'
        done = self.study("out", "--executor", "slurm", "--runs-per-task", "1", sizes=sizes)
        folder = self.path("out/slurm")
        script = os.path.join(folder, "1-0.sh")
        run = os.path.join(self.path("out"), "runs")
        first = sorted(os.listdir(run))[0]
        summary = os.path.join(run, first, "summary.json")
        text = self.read("out", os.path.relpath(summary, self.path("out")))
        with open(script, encoding="utf-8") as file:
            self.assertIn(first, file.read())

        def begin_again():
            subprocess.run(["sh", script], check=True, stdout=subprocess.DEVNULL)
            with open(summary, encoding="utf-8") as file:
                return file.read()

        # As a run that the cluster interrupted leaves it: no exit status, and a result so far.
        os.remove(os.path.join(folder, "exit-0"))
        with open(summary, "w", encoding="utf-8") as file:
            file.write(text.replace('"COMPLETED"', '"INTERRUPTED"'))
        self.assertIn('"COMPLETED"', begin_again())
        # Runs that have ended are left out.
        with open(summary, "w", encoding="utf-8") as file:
            file.write("kept")
        self.assertEqual(begin_again(), "kept")
        self.assertEqual(done.returncode, 0)

    def test_what_a_task_leaves_undone_is_submitted_again(self):
        sizes = '"1", "64"'
        self.study("local", sizes=sizes)
        driver = self.running("again", sizes)
        for job in ask("squeue", "--noheader", "--array", "--format=%i").split()[:3]:
            subprocess.run(["scancel", job], check=True)
        self.assertEqual(driver.wait(), 0)
        self.assert_same_rows("again", "local")
        names = os.listdir(self.path("again/slurm"))
        self.assertTrue(any(name.startswith("2-") for name in names), names)


if __name__ == "__main__":
    unittest.main()
