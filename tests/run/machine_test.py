#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Programs on machines without resources: no memory, no room on the disk, no reader, kills, a second run.

usage: machine_test.py RAILYARD

Whatever it is, the exit status says so, one line says why, and a result is whole or not there.
"""

import contextlib
import csv
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from lacking import lack

RAILYARD = os.path.abspath(sys.argv.pop(1))
SCENARIOS = pathlib.Path(__file__).resolve().parents[2] / "simulator/scenarios"
FABRIC = 'fabric { rail_optimized { servers: %d } }\n'
EXCHANGE = 'workload { program { collectives { kind: ALL_TO_ALL bytes: "%s" repeat: %d } } }\n'
FAULT = 'faults { name: "flap" kind: LINK_DOWN link: "server1/nic3--leaf3" at: "10us" until: "90us" }\n'
PLAN = """model { preset: "gpt-2" }
parallelism { tensor: 4 data: 8 }
compute { accelerator: "h100-sxm" utilisation: 0.5 memory_utilisation: 0.8 }
training { sequence: 1024 micro_batch: 1 micro_batches: 64 iterations: 20 }
"""
STUDY = """scenario: "small.textproto"
seeds: 4
figures: "simulated_time_ps"
"""
MEMORY_STEPS = 24


def mounted(directory, options):
    """Mounts a file system in memory; returns why that is not possible here."""
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", directory],
                          capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


def nearer(status):
    """By what the time within which a process is killed changes, so that about half of them are killed while they
    work, however much faster or slower the machine becomes after the first was timed."""
    return 1.1 if status == -signal.SIGKILL else 0.9


class Cgroup:
    """A control group below our own with so much memory; as a context, its directory or None."""

    def __init__(self, mebibytes):
        self.bytes = mebibytes << 20
        self.path = None

    def __enter__(self):
        for line in pathlib.Path("/proc/self/cgroup").read_text().split():
            _, controllers, place = line.split(":", 2)
            if controllers == "memory":
                parent, limits = f"/sys/fs/cgroup/memory{place}", ("memory.limit_in_bytes",)
            elif controllers == "":
                parent, limits = f"/sys/fs/cgroup{place}", ("memory.max", "memory.swap.max")
            else:
                continue
            path = pathlib.Path(parent, f"railyard-test-{os.getpid()}")
            try:
                path.mkdir()
            except OSError:
                continue
            try:
                for limit in limits:
                    (path / limit).write_text(str(self.bytes if limit != "memory.swap.max" else 0))
                self.path = path
                return path
            except OSError:
                path.rmdir()
        return None

    def __exit__(self, *_):
        for _ in range(100):  # until the kernel has forgotten who was in it
            if self.path is None:
                return
            with contextlib.suppress(OSError):
                self.path.rmdir()
                return
            time.sleep(0.05)


class Machine(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.here = pathlib.Path(scratch.name)
        (self.here / "temporary").mkdir()
        self.environment = dict(os.environ, TMPDIR=str(self.here / "temporary"))
        self.write("small.textproto", FABRIC % 2 + EXCHANGE % ("1MiB", 1))
        self.write("flap.textproto", FABRIC % 16 + EXCHANGE % ("128KiB", 2) + FAULT)
        self.write("plan.textproto", PLAN)
        self.write("study.textproto", STUDY)

    def write(self, name, text):
        (self.here / name).write_text(text)

    def start(self, *words, **more):
        return subprocess.Popen([RAILYARD, *words], cwd=self.here, env=self.environment, text=True,
                                stdout=more.pop("stdout", subprocess.DEVNULL),
                                stderr=more.pop("stderr", subprocess.PIPE), start_new_session=True, **more)

    def end(self, process, seconds=120):
        """(exit status, standard error); nothing of its session lives on."""
        said = process.communicate(timeout=seconds)[1]
        for _ in range(200):
            if not self.lives(process.pid):
                break
            time.sleep(0.02)
        self.assertFalse(self.lives(process.pid), "a process is left")
        return process.returncode, said

    @staticmethod
    def lives(session):
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                state, *numbers = stat.read_text().rpartition(")")[2].split()
                if int(numbers[2]) == session and state not in "ZX":
                    return True
        return False

    def run_to_end(self, *words, **more):
        return self.end(self.start(*words, **more))

    def expect_nothing(self, *besides):
        """Nothing was left in the directory, nor in that of temporary files."""
        left = {path.name for path in self.here.iterdir()}
        given = {"small.textproto", "flap.textproto", "plan.textproto", "study.textproto", "temporary"}
        self.assertEqual(left - given, set(besides))
        self.assertLessEqual({path.name for path in (self.here / "temporary").iterdir()}, {"r"})

    def expect_whole(self, result):
        """All files of a result are of one run. Returns its seed."""
        summary = json.loads((result / "summary.json").read_text())
        with contextlib.closing(sqlite3.connect(result / "results.sqlite")) as database:
            (seed,), = database.execute("SELECT value FROM run WHERE key = 'seed'")
            (rows,), = database.execute("SELECT COUNT(*) FROM collectives")
        with open(result / "collectives.csv", newline="") as file:
            self.assertEqual(len(list(csv.DictReader(file))), rows)
        self.assertEqual(str(seed), str(summary["seed"]))
        self.assertTrue((result / "report.html").read_text().rstrip().endswith("</html>"))
        return summary["seed"]

    # ---- Memory ----------------------------------------------------------------------------------

    def with_memory(self, limit, *words):
        return self.run_to_end(*words, preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_AS, (limit, limit)))

    def expect_no_memory(self, limit, ended, may_leave):
        """A command with too little memory says so, in one line for each of its runs."""
        status, said = ended
        self.assertEqual(status, 1, f"{limit} bytes: {said}")
        self.assertRegex(said, r"^(railyard: error: [^\n]*(not enough memory|Cannot allocate memory)[^\n]*\n)+$",
                         f"{limit} bytes")
        for name in may_leave:
            shutil.rmtree(self.here / name, ignore_errors=True)
        self.expect_nothing()

    def check_memory(self, *words, leaves=(), may_leave=()):
        """Below what a command needs it ends with status 1 and says why, whatever it was doing."""
        low = 16 << 20
        while self.with_memory(low, "--version")[0] != 0:
            low += 4 << 20
        high = low
        while (ended := self.with_memory(high, *words))[0] != 0:
            self.expect_no_memory(high, ended, may_leave)
            high = high * 21 // 20
        for name in leaves:
            subprocess.run(["rm", "-r", self.here / name], check=True)
        failures = 0
        for step in range(MEMORY_STEPS):
            limit = low + (high - low) * step // MEMORY_STEPS
            ended = self.with_memory(limit, *words)
            if ended[0] == 0:
                for name in leaves:
                    subprocess.run(["rm", "-r", self.here / name], check=True)
                continue
            failures += 1
            self.expect_no_memory(limit, ended, may_leave)
        self.assertGreater(failures, 0)

    def test_a_run_without_memory(self):
        self.check_memory("run", "flap.textproto", "--out", "out", "--quiet", leaves=["out"])

    def test_a_divided_run_without_memory(self):
        self.write("flap.textproto", FABRIC % 16 + EXCHANGE % ("128KiB", 2))
        self.check_memory("run", "flap.textproto", "--out", "out", "--quiet", "--threads", "2",
                          leaves=["out"])

    def test_a_plan_without_memory(self):
        self.check_memory("synth", "plan.textproto", "-o", "job.trace", leaves=["job.trace"])

    def test_a_study_without_memory(self):
        self.check_memory("study", "study.textproto", "--out", "s", "--no-report", "--jobs", "1", leaves=["s"],
                          may_leave=["s"])  # a study that can be gone on with

    def test_a_study_that_is_not_run_without_memory(self):
        self.check_memory("study", "study.textproto", "--dry-run", "--measure", "0")

    def test_measurements_without_memory(self):
        for words in (["perf", "--collective", "all_reduce", "--fabric", "dgx-h100", "-b", "1K", "-e", "1K"],
                      ["estimate", "plan.textproto", "--fabric", "dgx-h100", "--nodes", "4"],
                      ["topo", "compare", "h100-1x8", "h100-1x8", "--workload", "small.textproto"]):
            with self.subTest(command=words[0]):
                self.check_memory(*words)

    def test_what_reads_results_without_memory(self):
        self.assertEqual(self.run_to_end("run", "small.textproto", "--out", "temporary/r", "--quiet"), (0, ""))
        for words, leaves in ((["compare", "temporary/r", "temporary/r"], []),
                              (["report", "temporary/r", "-o", "page.html"], ["page.html"])):
            with self.subTest(command=words[0]):
                self.check_memory(*words, leaves=leaves)

    def test_a_run_that_the_kernel_kills_for_its_memory(self):
        with Cgroup(48) as group:
            if group is None:
                lack(self, "no control group can be made here")
            process = self.start("run", "flap.textproto", "--out", "out", "--quiet",
                                 preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid())))
            status, said = self.end(process)
        # The kernel kills the run, or the fault-free run that it is paired with.
        self.assertIn(status, (-signal.SIGKILL, 1), said)
        if status == 1:
            self.assertRegex(said, "^railyard: error: ")
        self.assertFalse((self.here / "out").exists())
        status, said = self.run_to_end("run", "flap.textproto", "--out", "out", "--quiet")
        self.assertEqual((status, said), (0, ""))
        self.expect_whole(self.here / "out")

    def test_a_study_whose_run_the_kernel_kills_says_which(self):
        self.write("small.textproto", FABRIC % 16 + EXCHANGE % ("128KiB", 2))
        with Cgroup(40) as group:
            if group is None:
                lack(self, "no control group can be made here")
            process = self.start("study", "study.textproto", "--out", "s", "--jobs", "1", "--no-report",
                                 preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid())))
            status, said = self.end(process)
        self.assertIn(status, (1, -signal.SIGKILL), said)
        if status == 1:
            self.assertIn("run 0 (; seed 1) left no result, exit status 137", said)

    def test_a_week_of_faults_in_bounded_memory(self):
        """The replay cache takes 256 MiB at most, and the program and its tables as much."""
        scenario = SCENARIOS / "week_of_faults_256.textproto"
        self.assertEqual(self.run_to_end("run", str(scenario), "--out", "out", "--quiet"), (0, ""))
        summary = json.loads((self.here / "out/summary.json").read_text())
        self.assertGreater(summary["simulated_time_ps"], 7 * 86_400 * 10**12)
        self.assertGreater(len(summary["faults"]), 200)
        self.assertLess(summary["peak_rss_bytes"], 512 << 20)

    # ---- Disks -----------------------------------------------------------------------------------

    def test_a_disk_that_is_full(self):
        disk = self.here / "disk"
        disk.mkdir()
        for kibibytes in (4, 16, 64, 256, 700, 1024):
            if refused := mounted(disk, f"size={kibibytes}k"):
                lack(self, f"no file system can be mounted here: {refused}")
            try:
                status, said = self.run_to_end("run", "small.textproto", "--out", "disk/out", "--quiet")
                self.assertEqual(status, 1, f"{kibibytes} KiB")
                self.assertRegex(said, r"^railyard: error: [^\n]*(No space left on device|disk is full)[^\n]*\n$")
                self.assertEqual(list(disk.iterdir()), [])
                subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
                self.assertEqual(self.run_to_end("run", "small.textproto", "--out", "disk/out", "--quiet"),
                                 (0, ""))
                self.expect_whole(disk / "out")
            finally:
                subprocess.run(["umount", disk], check=True)

    def test_figures_on_a_disk_that_is_full(self):
        """All figures are there, or none, and what was in the directory before is left."""
        if shutil.which("gnuplot") is None:
            lack(self, "gnuplot is not installed")
        disk = self.here / "disk"
        disk.mkdir()
        self.assertEqual(self.run_to_end("run", "flap.textproto", "--out", "out", "--quiet"), (0, ""))
        figures = ("report", "out", "-o", "page.html", "--figures", "disk/of/run")
        failures = 0
        for kibibytes in (8, 24, 40, 80, 120):
            if refused := mounted(disk, f"size={kibibytes}k"):
                lack(self, f"no file system can be mounted here: {refused}")
            try:
                status, said = self.run_to_end(*figures)
                if status == 0:
                    continue
                failures += 1
                self.assertEqual(status, 1, f"{kibibytes} KiB")
                self.assertRegex(said, r"^railyard: error: [^\n]*(No space left on device|is the disk full\?)"
                                       r"[^\n]*\n$")
                self.assertEqual(list(disk.iterdir()), [])
                self.assertFalse((self.here / "page.html").exists())
                (disk / "of/run").mkdir(parents=True)
                (disk / "of/run/mine.txt").write_text("mine")
                self.assertEqual(self.run_to_end(*figures)[0], 1)
                self.assertEqual([path.name for path in (disk / "of/run").iterdir()], ["mine.txt"])
            finally:
                subprocess.run(["umount", disk], check=True)
        self.assertGreater(failures, 2)
        self.assertEqual(self.run_to_end(*figures), (0, ""))
        made = {path.suffix for path in (disk / "of/run").iterdir()}
        self.assertEqual(made, {".csv", ".gp", ".svg", ".pdf"})

    def test_a_place_that_can_only_be_read(self):
        place = self.here / "place"
        place.mkdir()
        # A run of minutes: it is refused before it begins.
        self.write("small.textproto", FABRIC % 4 + EXCHANGE % ("64GiB", 1))
        commands = (["run", "small.textproto", "--out", "place/out"],
                    ["topo", "show", "h100-1x8", "--json", "place/f.json"],
                    ["synth", "plan.textproto", "-o", "place/job.trace"],
                    ["study", "study.textproto", "--out", "place/s"])
        is_root = os.geteuid() == 0
        if is_root:  # who may write whatever the permissions say
            if refused := mounted(place, "ro"):
                lack(self, f"no file system can be mounted here: {refused}")
        else:
            place.chmod(0o555)
        try:
            for command in commands:
                status, said = self.end(self.start(*command), 30)
                self.assertEqual(status, 1, command)
                self.assertRegex(said, r"^railyard: error: [^\n]*place[^\n]*(Read-only|Permission denied)"
                                       r"[^\n]*\n$", command)
        finally:
            if is_root:
                subprocess.run(["umount", place], check=True)
            else:
                place.chmod(0o755)
        self.assertEqual(list(place.iterdir()), [])

    # ---- Readers ---------------------------------------------------------------------------------

    def test_a_pipe_that_nobody_reads(self):
        for command in (["help", "models"], ["list", "presets"], ["topo", "show", "h100-4x8-rail-optimized"],
                        ["validate", "small.textproto"], ["estimate", "plan.textproto"],
                        ["run", "small.textproto", "--out", "out"]):
            reader, writer = os.pipe()
            os.close(reader)
            try:
                status, said = self.run_to_end(*command, stdout=writer)
            finally:
                os.close(writer)
            self.assertEqual((status, said), (1, "railyard: error: standard output: Broken pipe\n"), command)
        self.expect_whole(self.here / "out")  # what was asked for in a file is there

    def test_what_never_ends_is_no_baseline(self):
        os.mkfifo(self.here / "pipe")
        for name in ("pipe", "/dev/zero"):
            status, said = self.run_to_end("run", "flap.textproto", "--out", "out", "--baseline-file", name)
            self.assertEqual(status, 2)
            self.assertIn(f'--baseline-file: error: "{name}" is no file of fault-free runs (expected ', said)
        self.expect_nothing("pipe")

    def test_a_signal_ends_the_wait_for_a_reader(self):
        os.mkfifo(self.here / "pipe")
        process = self.start("synth", "plan.textproto", "-o", "pipe")
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        status, _ = self.end(process)
        self.assertEqual(status, -signal.SIGTERM)
        self.expect_nothing("pipe")

    def test_a_pipe_that_is_read_later(self):
        os.mkfifo(self.here / "pipe")
        process = self.start("synth", "plan.textproto", "-o", "pipe")
        time.sleep(0.5)
        with open(self.here / "pipe", "rb") as pipe:
            written = pipe.read()
        self.assertEqual(self.end(process), (0, ""))
        self.assertEqual(self.run_to_end("synth", "plan.textproto", "-o", "plan.trace"), (0, ""))
        self.assertEqual(written, (self.here / "plan.trace").read_bytes())
        self.expect_nothing("pipe", "plan.trace")

    # ---- Two at once, and kills ------------------------------------------------------------------

    def test_runs_into_one_directory_at_once(self):
        for attempt in range(8):
            if attempt % 2:
                shutil.rmtree(self.here / "out")  # all find nothing there, instead of a result
            seeds = range(8 * attempt, 8 * attempt + 8)
            started = [self.start("run", "small.textproto", "--out", "out", "--quiet", "--seed", str(seed))
                       for seed in seeds]
            ended = [self.end(process) for process in started]
            self.assertEqual(ended, [(0, "")] * len(seeds))
            self.assertIn(self.expect_whole(self.here / "out"), seeds)
            self.expect_nothing("out")

    def test_killed_at_any_instant_and_again(self):
        begin = time.monotonic()
        self.assertEqual(self.run_to_end("run", "small.textproto", "--out", "out", "--quiet", "--seed", "0"),
                         (0, ""))
        seconds = time.monotonic() - begin
        instants = random.Random(1)
        killed = 0
        before = 0
        for seed in range(1, 41):
            process = self.start("run", "small.textproto", "--out", "out", "--quiet", "--seed", str(seed))
            time.sleep(instants.uniform(0, 1.2 * seconds))
            process.send_signal(signal.SIGKILL)
            status, _ = self.end(process)
            killed += status == -signal.SIGKILL
            seconds *= nearer(status)
            # The earlier result or the new one, and never a part of either.
            before = self.expect_one_of(before, seed)
        self.assertGreater(killed, 10)
        self.assertEqual(self.run_to_end("run", "small.textproto", "--out", "out", "--quiet"), (0, ""))
        self.expect_whole(self.here / "out")
        self.expect_nothing("out")

    def test_a_file_whose_writer_is_killed(self):
        try:
            os.close(os.open(self.here, os.O_TMPFILE | os.O_WRONLY))
        except OSError as error:
            lack(self, f"the file system has no files without a name: {error}")
        begin = time.monotonic()
        self.assertEqual(self.run_to_end("synth", "plan.textproto", "-o", "plan.trace"), (0, ""))
        seconds = time.monotonic() - begin
        written = (self.here / "plan.trace").read_bytes()
        (self.here / "plan.trace").unlink()
        instants = random.Random(2)
        killed = 0
        for _ in range(40):
            process = self.start("synth", "plan.textproto", "-o", "plan.trace")
            time.sleep(instants.uniform(0, 1.2 * seconds))
            process.send_signal(signal.SIGKILL)
            status, _ = self.end(process)
            killed += status == -signal.SIGKILL
            seconds *= nearer(status)
            if (self.here / "plan.trace").exists():
                self.assertEqual((self.here / "plan.trace").read_bytes(), written)
                (self.here / "plan.trace").unlink()
        self.assertGreater(killed, 10)
        self.expect_nothing()

    def test_no_directory_for_temporary_files(self):
        self.environment["TMPDIR"] = str(self.here / "absent")
        status, said = self.run_to_end("study", "study.textproto", "--dry-run")
        self.assertEqual(status, 1)
        self.assertRegex(said, "^railyard: error: no directory for temporary files: [^\\n]*absent: [^\\n]*\\n$")

    def expect_one_of(self, before, seed):
        found = self.expect_whole(self.here / "out")
        self.assertIn(found, (before, seed))
        return found

    def test_signals(self):
        self.write("small.textproto", FABRIC % 4 + EXCHANGE % ("1GiB", 9))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = self.start("run", "small.textproto", "--out", "out", "--quiet")
            time.sleep(1.5)
            process.send_signal(number)
            status, said = self.end(process)
            self.assertEqual(status, 4)
            self.assertIn(f"interrupted by {number.name}", said)
            self.expect_whole(self.here / "out")
            self.expect_nothing("out")


if __name__ == "__main__":
    unittest.main(verbosity=2)
