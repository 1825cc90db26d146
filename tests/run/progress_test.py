#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The progress of runs as a user sees it: on a terminal, in a log, quietly, and on request."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

RAILYARD = sys.argv.pop(1)
# Minutes of simulation; the fault comes at once, so the fault-free run is a process of its own.
LONG = ('fabric { rail_optimized { servers: 4 } }\n'
        'workload { program { collectives { kind: ALL_REDUCE bytes: "8GiB" repeat: 2 } } }\n')
FAULT = 'faults { kind: LINK_DOWN link: "leaf0--spine0" at: "1us" until: "2us" }\n'
CACHED = ('fabric { rail_optimized { servers: 1 } }\n'
          'workload { program { collectives { kind: ALL_REDUCE bytes: "1MiB" repeat: 2000000 } } }\n')
SIMULATED = r"simulated [0-9.]+ [mun]?s in [0-9.]+ m?s"
DONE = r", ([0-9.]+) % done"
LEFT = r", about [0-9.]+ (ms|s|min|h|d)[^,;]* left"
RATES = r"; [0-9.]+ [kM]? ?hops/s, [0-9.]+ [kM]? ?collectives/s"
PAIRED = r"; the fault-free run: [0-9.]+ [mun]?s, [0-9.]+ % done"
MEMORY = r", [0-9.]+ [KMG]iB"


class Progress(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name
        self.out = os.path.join(self.scratch, "out")
        self.running = []
        self.addCleanup(self.end_all)

    def end_all(self):
        for process in self.running:
            process.kill()
            process.wait()

    def start(self, text, errors, *options):
        path = os.path.join(self.scratch, "long.textproto")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        process = subprocess.Popen([RAILYARD, "run", path, "--out", self.out, *options],
                                   stdout=subprocess.DEVNULL, stderr=errors)
        self.running.append(process)
        return process

    def start_on_terminal(self, text, columns, *options):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = self.start(text, theirs, *options)
        os.close(theirs)
        return process, ours

    def read_until(self, terminal, is_enough, seconds=60):
        """The text that the terminal got, once it is enough."""
        text = ""
        end = time.monotonic() + seconds
        while not is_enough(text):
            ready, _, _ = select.select([terminal], [], [], max(0, end - time.monotonic()))
            if not ready:
                self.fail(f"after {seconds} s: {text!r}")
            try:
                text += os.read(terminal, 4096).decode()
            except OSError:  # the other end is closed
                break
        return text

    def lines_on(self, text):
        """Texts of the lines that took the place of the one before."""
        return [line[:-3] for line in text.split("\r") if line.endswith("\x1b[K") and len(line) > 3]

    def summary(self):
        with open(os.path.join(self.out, "summary.json"), encoding="utf-8") as file:
            return json.load(file)

    def wait_for_handler(self, process):
        for _ in range(4000):
            with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
                caught = int(re.search(r"SigCgt:\s*(\w+)", file.read())[1], 16)
            if caught >> (signal.SIGUSR1 - 1) & 1:
                return
            time.sleep(0.01)
        self.fail("it does not catch SIGUSR1")

    # One line, about once a second, with everything; the signal ends it, and the line is removed.
    def test_on_a_wide_terminal(self):
        process, terminal = self.start_on_terminal(LONG + FAULT, 250)
        text = self.read_until(terminal, lambda text: len(self.lines_on(text)) >= 3)
        for line in self.lines_on(text)[1:]:
            self.assertRegex(line, f"^{SIMULATED}{DONE}({LEFT})?{PAIRED}{RATES}{MEMORY}$")
        shares = [float(re.search(DONE, line)[1]) for line in self.lines_on(text)]
        self.assertEqual(shares, sorted(shares))
        process.send_signal(signal.SIGINT)
        rest = self.read_until(terminal, lambda text: "is in" in text)
        self.assertRegex(rest, r"\r\x1b\[K\r?\n?railyard: interrupted by SIGINT after [0-9.]+ s")
        self.assertEqual(process.wait(60), 4)
        self.assertEqual(self.summary()["status"], "INTERRUPTED")

    # Parts that do not fit are left out, and no line wraps. Rates and times have different lengths on
    # different machines, so what is required here fits, or does not, with any of them.
    def test_on_narrow_terminals(self):
        for columns, there, not_there in ((70, (SIMULATED, DONE), (PAIRED,)),
                                          (40, (SIMULATED,), (PAIRED, RATES))):
            process, terminal = self.start_on_terminal(LONG + FAULT, columns)
            text = self.read_until(terminal, lambda text: len(self.lines_on(text)) >= 3)
            for line in self.lines_on(text):
                self.assertLess(len(line), columns)
                self.assertNotIn("\n", line)
            for expression in there:
                self.assertRegex(self.lines_on(text)[-1], expression)
            for expression in not_there:
                self.assertNotRegex(self.lines_on(text)[-1], expression)
            process.kill()
            process.wait()

    # A log gets plain lines every ten seconds, and one more for each SIGUSR1.
    def test_in_a_log(self):
        path = os.path.join(self.scratch, "log")
        with open(path, "w", encoding="utf-8") as errors:
            process = self.start(CACHED, errors)
        begin = time.monotonic()

        def log():
            with open(path, encoding="utf-8") as file:
                return file.read()

        while not log() and time.monotonic() - begin < 60 and process.poll() is None:
            time.sleep(0.1)
        self.assertGreater(time.monotonic() - begin, 9)
        self.assertRegex(log(), f"^railyard: {SIMULATED}{DONE}{LEFT}{RATES}, [0-9.]+ % replayed"
                                f"{MEMORY}\n$")
        self.assertNotIn("\x1b", log())
        process.send_signal(signal.SIGUSR1)
        end = time.monotonic() + 8
        while log().count("\n") < 2 and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(log().count("railyard: simulated"), 2)

    # --quiet says nothing by itself, and answers SIGUSR1 with a line.
    def test_quietly(self):
        process, terminal = self.start_on_terminal(LONG, 120, "--quiet")
        self.wait_for_handler(process)
        time.sleep(2.5)
        self.assertEqual(select.select([terminal], [], [], 0)[0], [])
        process.send_signal(signal.SIGUSR1)
        line = self.read_until(terminal, lambda text: text.endswith("\n"))
        self.assertRegex(line, f"^railyard: {SIMULATED}{DONE}")
        process.send_signal(signal.SIGTERM)
        self.read_until(terminal, lambda text: "is in" in text)
        self.assertEqual(process.wait(60), 4)
        self.assertEqual(self.summary()["status"], "INTERRUPTED")


if __name__ == "__main__":
    unittest.main()
