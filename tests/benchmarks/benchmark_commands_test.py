#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The commands of docs/performance.md that measure imports run, with smaller files and fewer repetitions.

usage: benchmark_commands_test.py RAILYARD BENCHMARK

BENCHMARK is the program traces_benchmark. The profile that is repeated is in RAILYARD_REFERENCE_DIR
(../shared/reference).
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from lacking import lack

RAILYARD, BENCHMARK = (os.path.abspath(path) for path in sys.argv[1:])
HERE = pathlib.Path(__file__).resolve().parent
REFERENCE = pathlib.Path(os.environ.get("RAILYARD_REFERENCE_DIR", HERE / "../../../shared/reference"))
PROFILE = REFERENCE / "traces/kineto-ddp-2ranks-rank0-ncclargs.json.gz"


class Commands(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)

    def measured(self, *options, **environment):
        """The benchmarks that ran, by name."""
        done = subprocess.run([BENCHMARK, "--benchmark_format=json", *options], cwd=self.folder, check=True,
                              env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True)
        return {benchmark["name"]: benchmark for benchmark in json.loads(done.stdout)["benchmarks"]}

    def test_imports(self):
        measured = self.measured("--benchmark_filter=Import", "--benchmark_min_time=0.001")
        self.assertEqual(set(measured), {"ImportKineto", "ImportNcclLog", "ImportChakra"})
        self.assertTrue(all(benchmark["real_time"] > 0 for benchmark in measured.values()))

    def test_peak_memory(self):
        (benchmark,) = self.measured("--benchmark_filter=PeakMemory", RAILYARD_KINETO_GIB="1").values()
        self.assertGreaterEqual(benchmark["file_MiB"], 1024)
        self.assertLess(benchmark["peak_rss_MiB"], benchmark["file_MiB"] / 2)

    def test_a_repeated_profile_has_the_calls_of_all_repetitions(self):
        if not PROFILE.exists():
            lack(self, f"{PROFILE} is absent")
        once, many = self.calls_and_bytes("1e-9"), self.calls_and_bytes("0.1")
        self.assertGreater(once[0], 0)
        self.assertEqual(many[0], once[0] * round(many[1] / once[1]))

    def calls_and_bytes(self, gibibytes):
        large = self.folder / "large.json"
        with open(large, "wb") as file:
            subprocess.run([HERE / "repeat_profile.py", PROFILE, gibibytes], stdout=file, check=True)
        done = subprocess.run([RAILYARD, "import", large, "-o", self.folder / "large.trace"], check=True,
                              stdout=subprocess.PIPE, text=True)
        return int(re.search(r"(\d+) calls seen", done.stdout).group(1)), large.stat().st_size


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
