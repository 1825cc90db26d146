#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes the fingerprint of every shipped scenario, with and without the replay cache, and compares two such lists.

    fingerprints.py write PROGRAM LIST [--jobs N] [--only REGEX] [--time-limit SECONDS]
    fingerprints.py compare LIST LIST

A line of a list is `SCENARIO CACHE FINGERPRINT CPU-SECONDS MIB`, where CACHE is `cache` or `no-cache`. A run that exceeds
the time limit has the fingerprint `-`: it is not compared. Exit status 1 where a fingerprint differs or is missing.
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile

SCENARIOS = pathlib.Path(__file__).resolve().parents[2] / "simulator" / "scenarios"


def fingerprint(program, scenario, uses_cache, time_limit_s):
    """Runs one scenario. Returns (fingerprint, CPU seconds, peak MiB)."""
    with tempfile.TemporaryDirectory() as directory:
        command = [program, "run", str(scenario), "--out", directory + "/out", "--no-baseline", "--quiet"]
        if not uses_cache:
            command.append("--no-replay-cache")
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=time_limit_s)
        except subprocess.TimeoutExpired:
            return "-", time_limit_s, 0
        summary = pathlib.Path(directory, "out", "summary.json")
        if not summary.exists():
            last = (run.stderr.strip().splitlines() or [""])[-1]
            return f"exit-{run.returncode}:{last.replace(' ', '_')[:60]}", 0, 0
        result = json.loads(summary.read_text())
        return result["fingerprint"], result["cpu_seconds"], result["peak_rss_bytes"] / 2**20


def write(arguments):
    scenarios = sorted(s for s in SCENARIOS.glob("*.textproto") if re.search(arguments.only, s.stem))
    runs = [(scenario, uses_cache) for scenario in scenarios for uses_cache in (True, False)]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool, open(arguments.list, "w") as out:
        results = pool.map(lambda run: fingerprint(arguments.program, *run, arguments.time_limit), runs)
        for (scenario, uses_cache), (value, cpu_s, mib) in zip(runs, results):
            cache = "cache" if uses_cache else "no-cache"
            print(scenario.stem, cache, value, f"{cpu_s:.2f}", f"{mib:.0f}", file=out, flush=True)


def compare(arguments):
    def read(path):
        lines = (line.split() for line in open(path))
        return {(name, cache): value for name, cache, value, *_ in lines}

    old, new = read(arguments.old), read(arguments.new)
    differences = 0
    for key in sorted(old.keys() & new.keys()):
        if "-" not in (old[key], new[key]) and old[key] != new[key]:
            differences += 1
            print(*key, old[key], "became", new[key])
    missing = sorted(old.keys() - new.keys())
    for key in missing:
        print(*key, "is missing from", arguments.new)
    left_out = sum("-" in (old[key], new[key]) for key in old.keys() & new.keys())
    print(f"{len(old.keys() & new.keys()) - left_out} compared, {differences} differ, {left_out} exceeded the time limit")
    sys.exit(1 if differences or missing else 0)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
commands = parser.add_subparsers(required=True)
writer = commands.add_parser("write")
writer.add_argument("program")
writer.add_argument("list")
writer.add_argument("--jobs", type=int, default=1)
writer.add_argument("--only", default="")
writer.add_argument("--time-limit", type=float, default=60)
writer.set_defaults(run=write)
comparer = commands.add_parser("compare")
comparer.add_argument("old")
comparer.add_argument("new")
comparer.set_defaults(run=compare)
arguments = parser.parse_args()
arguments.run(arguments)
