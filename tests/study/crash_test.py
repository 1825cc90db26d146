#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Studies that are killed at random instants, lose a worker or find their disk full, and are resumed.

usage: crash_test.py RAILYARD

What was finished is kept as it was written, nothing of it is run again, and the rows are those of
a study that nothing happened to.
"""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from lacking import lack

RAILYARD = sys.argv.pop(1)
KILLS = 20
RUNS = 24
# Sizes of disks, each of which is full at another place of a result directory or a study's page.
DISK_KIB = (64, 400, 1024, 2200, 3600)
SCENARIO = """
fabric { rail_optimized { servers: 2 gpus_per_server: 2 nic_rate: "400Gbps" } }
workload { program { collectives { kind: ALL_REDUCE bytes: "1MiB" repeat: 10 } } }
"""
STUDY = """
scenario: "base.textproto"
axes { name: "size" fields: "workload.program.collectives[0].bytes" values: ["1MiB", "2MiB", "3MiB", "4MiB"] }
seeds: 6
figures: ["simulated_time_ps"]
"""


def workers_of(driver):
    """The runs that the driver has started and that live."""
    children = pathlib.Path(f"/proc/{driver}/task/{driver}/children")
    workers = []
    try:
        for child in children.read_text().split():
            if b"/runs/" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes():
                workers.append(int(child))
    except OSError:
        pass  # it has ended meanwhile
    return workers


class Crashes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.directory = pathlib.Path(cls.scratch.name)
        (cls.directory / "base.textproto").write_text(SCENARIO)
        cls.study = cls.directory / "s.textproto"
        cls.study.write_text(STUDY)
        begin = time.monotonic()
        whole = cls.directory / "whole"
        subprocess.run(cls.command(whole), check=True, capture_output=True)
        cls.seconds = time.monotonic() - begin
        cls.rows = (whole / "points.csv").read_text()

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def command(cls, out, *more):
        return [RAILYARD, "study", cls.study, "--out", out, "--jobs", "2", "--no-report", *more]

    def finished(self, out):
        """By run that has completed: which file that is, and when it was written."""
        found = {}
        for summary in (out / "runs").glob("[0-9]*/summary.json"):
            # Runs end with their driver, as by a signal; such a result is not one that finished.
            with open(summary) as file:
                stat = os.fstat(file.fileno())
                if json.load(file)["status"] == "COMPLETED":
                    found[summary.parent.name] = (stat.st_ino, stat.st_mtime_ns)
        return found

    def expect_kept(self, before, out):
        after = self.finished(out)
        for run, file in before.items():
            self.assertEqual(after.get(run), file, f"run {run} was lost or made again")

    def resume(self, out):
        before = self.finished(out)
        # A driver that was killed before it had a directory has nothing to go on with.
        more = ["--resume"] if (out / "keys").exists() else []
        done = subprocess.run(self.command(out, *more), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.expect_kept(before, out)
        self.assertEqual((out / "points.csv").read_text(), self.rows)
        self.assertEqual(len(self.finished(out)), RUNS)
        return len(before)

    def test_a_driver_is_killed(self):
        """Each study is killed at an instant of its own, and killed again while it goes on."""
        kept = 0
        instants = random.Random(1)
        out = self.directory / "driver"
        for _ in range(KILLS // 2):
            for resumes in (False, True):
                before = self.finished(out)
                more = ["--resume"] if resumes and (out / "keys").exists() else []
                if not more:
                    shutil.rmtree(out, ignore_errors=True)
                    before = {}
                driver = subprocess.Popen(self.command(out, *more), stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL)
                time.sleep(instants.uniform(0, self.seconds / 2))
                driver.send_signal(signal.SIGKILL)
                driver.wait()
                self.expect_kept(before, out)
            kept += self.resume(out)
            shutil.rmtree(out)
        self.assertGreater(kept, KILLS // 2, "too few had finished anything by then")

    def test_a_worker_is_killed(self):
        """The driver makes its run again: the study ends as if nothing had been."""
        killed = 0
        instants = random.Random(2)
        for number in range(KILLS):
            out = self.directory / f"worker{number}"
            driver = subprocess.Popen(self.command(out), stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
            time.sleep(instants.uniform(0, self.seconds / 2))
            before = self.finished(out)
            for worker in workers_of(driver.pid)[:1]:
                try:
                    os.kill(worker, signal.SIGKILL)
                    killed += 1
                except ProcessLookupError:
                    pass  # it has ended meanwhile
            self.assertEqual(driver.wait(), 0)
            self.expect_kept(before, out)
            self.assertEqual((out / "points.csv").read_text(), self.rows)
            shutil.rmtree(out)
        self.assertGreater(killed, KILLS // 3)

    def test_a_disk_is_full(self):
        disk = self.directory / "disk"
        disk.mkdir()
        for size in DISK_KIB:
            mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "none", disk],
                                     capture_output=True, text=True)
            if mounted.returncode != 0:
                lack(self, f"no file system can be mounted here: {mounted.stderr.strip()}")
            try:
                out = disk / "out"
                full = subprocess.run(self.command(out), capture_output=True, text=True)
                self.assertEqual(full.returncode, 1, full.stderr)
                self.assertRegex(full.stderr, "No space left on device|disk is full")
                subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
                self.resume(out)
            finally:
                subprocess.run(["umount", disk], check=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
