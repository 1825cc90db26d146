#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs random scenarios twice, and with several builds of the program, and compares their results.

    random_campaign.py PROGRAM [PROGRAM...] --scenarios 1000

The first program runs each scenario twice, every further one (a debug build, say) the scenarios whose
number is a multiple of --share, once. All runs of a scenario must end with the same exit status, and
the same summary.json but for the time and memory that the run itself took, its fingerprint included.
Every fourth second run does without the replay cache: its results are the same, but for what it says
about the cache. A scenario that is refused (exit status 2) counts as one that says nothing; so does
one that exceeds --time-limit.

Scenarios draw fabric, job, settings, transport and faults. Equal seeds give equal scenarios; --only N
runs that of one number again, and --show N prints it.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

OWN = ("wall_seconds", "cpu_seconds", "baseline_cpu_seconds", "peak_rss_bytes")
OF_CACHE = ("events", "packet_hops", "control_hops", "short_form_share")
OF_CACHE_IN_COLLECTIVES = ("simulated", "replayed", "replayed_by", "verified_episodes", "never_replayed")


class Generator:
    """Protobuf text of one scenario."""

    def __init__(self, seed, number):
        self.random = random.Random(f"{seed}/{number}")

    def below(self, limit):
        return self.random.randrange(limit)

    def one_of(self, *choices):
        return self.random.choice(choices)

    def chance(self, one_in):
        return self.below(one_in) == 0

    def text(self):
        lines = [self.fabric()]
        self.repeats = True  # every job, so that it has checkpoints
        has_jobs = self.servers * self.gpus >= 4 and self.chance(6)
        lines.append(self.jobs() if has_jobs else f"workload {{ {self.workload(None)} }}")
        lines.append(self.settings())
        if self.repeats and self.chance(4):
            lines.append(f'restart {{ checkpoint_every: 1 save: "{self.below(50)}us" requeue: "{self.below(900)}us" }}')
        lines.append('routing { detection_delay: "%dus" convergence_delay: "%dus" }'
                     % (self.below(300), self.below(300)))
        lines.append('watchdog { no_progress: "%dms" }' % (1 << self.below(7)))
        lines += [self.fault(i) for i in range(self.one_of(0, 0, 1, 1, 2, 3))]
        lines.append(f"seed: {self.random.getrandbits(self.one_of(3, 32, 64))}")
        return "\n".join(lines) + "\n"

    def fabric(self):
        self.servers, self.gpus = self.one_of(2, 2, 3, 4), self.one_of(1, 2, 4, 8)
        servers = f"servers {{ count: {self.servers} gpus: {self.gpus} }}"
        kind = self.below(8)
        if kind < 4:
            self.switches = "leaf*"
            return "fabric { rail_optimized { servers: %d gpus_per_server: %d delay_spread: \"%dns\" } }" % (
                self.servers, self.gpus, self.one_of(0, 0, 20))
        self.switches = "*"
        if kind == 4:
            return f"fabric {{ leaf_spine {{ {servers} nics_per_leaf: {1 + self.below(4)} spines: {1 + self.below(3)} }} }}"
        if kind == 5:
            return f"fabric {{ fat_tree {{ {servers} radix: 8 tiers: {self.one_of(2, 3)} }} }}"
        if kind == 6:
            return f"fabric {{ dual_tor {{ {servers} }} }}"
        return f"fabric {{ hyperx {{ {servers} dimensions: [2, 2] nics_per_switch: 8 }} }}"

    def workload(self, ranks):
        count = ranks or self.servers * self.gpus
        if count & (count - 1) == 0 and self.chance(6):
            self.repeats = False  # of one iteration, perhaps
            tensor = min(self.gpus, self.one_of(1, 2))
            return ('inline_plan { model { preset: "gpt-2" layers: 2 } parallelism { tensor: %d data: %d } '
                    'compute { accelerator: "h100-sxm" utilisation: 0.5 memory_utilisation: 0.8 } '
                    "training { sequence: 64 micro_batch: 1 micro_batches: %d iterations: %d } }" % (
                        tensor, count // tensor, 1 + self.below(2), 1 + self.below(2)))
        collectives = " ".join(self.collective(count) for _ in range(1 + self.below(3)))
        repeat = 1 + self.below(3)
        self.repeats = self.repeats and repeat > 1
        forced = self.one_of("", "", "", "algorithm: RING", "algorithm: RING protocol: SIMPLE")
        skew = f'rank_skew_max: "{self.below(40)}us" ' if self.chance(3) else ""
        return (f"program {{ {f'ranks: {ranks} ' if ranks else ''}repeat: {repeat} {collectives} }} "
                f"{skew}{forced}")

    def collective(self, ranks):
        kind = self.one_of("ALL_REDUCE", "ALL_REDUCE", "ALL_GATHER", "REDUCE_SCATTER", "BROADCAST", "REDUCE",
                           "ALL_TO_ALL", "SEND_RECV", "PERMUTATION")
        size = 4 * ranks * (1 + self.below(1 << (5 + self.below(11))))
        root = f"root: {self.below(ranks)} " if kind in ("BROADCAST", "REDUCE") else ""
        compute = f'compute_before: "{self.below(60)}us" ' if self.chance(3) else ""
        return f'collectives {{ kind: {kind} bytes: "{size}B" {root}{compute}repeat: {1 + self.below(3)} }}'

    def jobs(self):
        total = self.servers * self.gpus
        first = 2 + self.below(total - 3)
        texts = []
        for ranks in (first, total - first):
            texts.append("jobs { workload { %s } placement { policy: %s } start: \"%dus\" }" % (
                self.workload(ranks), self.one_of("PACKED", "STRIPED", "RANDOM"), self.below(50)))
        return "\n".join(texts)

    def settings(self):
        nccl = []
        if self.chance(3):
            nccl.append(f'version: "{self.one_of("2.18.3", "2.21.5", "2.27.5", "2.29.2")}"')
        if self.chance(4):
            nccl.append(f"MAX_NCHANNELS: {1 + self.below(8)}")
        kind = self.below(8)
        if kind == 0:  # TCP
            return "nccl { %s NET: \"Socket\" }" % " ".join(nccl)
        nccl.append(f"IB_TIMEOUT: {6 + self.below(4)} IB_RETRY_CNT: {self.one_of(0, 1, 2, 3, 7)}")
        parts = ["nccl { %s }" % " ".join(nccl)]
        control = self.one_of("", "", "dcqcn {}", "dctcp {}", "timely {}", "hpcc {}", "swift {}")
        nic = ["recovery: SELECTIVE_REPEAT"] if self.chance(3) else []
        nic += [f"congestion_control {{ {control} }}"] if control else []
        nic += [f'window: "{64 << self.below(4)}KiB"'] if self.chance(3) else []
        parts += ["nic { %s }" % " ".join(nic)] if nic else []
        if kind == 1:
            parts.append("network { network_flow_control: CREDITS }")
        if kind == 2:
            parts.append("switch { lossless_data: false buffer: \"%dKiB\" }" % (256 << self.below(4)))
        return "\n".join(parts)

    def fault(self, number):
        server, gpu = self.below(self.servers), self.below(self.gpus)
        link = f'link: "server{server}/nic{gpu}"'
        effect = self.one_of(
            f"kind: LINK_DOWN {link}",
            f"kind: LINK_DOWN {link} direction: {self.one_of('FORWARD', 'BACKWARD')}",
            f"kind: LINK_DOWN {link} unnoticed: true",
            f"kind: LOSS {link} loss {{ probability: 0.0{self.below(10)}1 }}",
            f"kind: LOSS {link} loss {{ gilbert_elliott {{ to_bad: 0.0{1 + self.below(9)} to_good: 0.{1 + self.below(9)} }} }}",
            f"kind: DEGRADE {link} rate_share: 0.{1 + self.below(9)}",
            f'kind: DELAY {link} delay: "{self.below(30)}us" jitter: "{self.below(9)}us"',
            f'kind: PAUSE_STORM device: "server{server}/nic{gpu}"',
            f'kind: STRAGGLER device: "server{server}/gpu{gpu}" speed: 0.{1 + self.below(9)}',
            'kind: LINK_DOWN device: "%s" draw { count: 1 }' % self.switches)
        at = self.below(400)
        end = "" if self.chance(5) else f'until: "{at + 1 + self.below(1 << self.below(13))}us"'
        when = self.below(6)
        if when == 0 and end:
            time = (f'at: "{at}us" until: "{at + 20}us" repeat {{ period: "{100 + self.below(900)}us" '
                    f'count: {1 + self.below(6)} }}')
        elif when == 1:
            time = 'at: "0s" by_chance { mean_between: "%dus" mean_repair: "%dus" }' % (
                50 + self.below(1000), 1 + self.below(200))
        else:
            time = f'at: "{at}us" {end}'
        return f'faults {{ name: "f{number}" {effect} {time} }}'


def run_once(program, path, options, more):
    """(exit status, what it reports or why it reports nothing)"""
    with tempfile.TemporaryDirectory() as directory:
        command = [program, "run", str(path), "--out", f"{directory}/out", "--quiet", "--no-report",
                   "--no-sync", *more]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=options.time_limit,
                                 check=False)
        except subprocess.TimeoutExpired:
            return "late", ""
        summary = pathlib.Path(directory, "out", "summary.json")
        if not summary.exists():
            return run.returncode, run.stderr[:600]
        return run.returncode, json.loads(summary.read_text())


def comparable(summary, without_cache):
    kept = {key: value for key, value in summary.items() if key not in OWN}
    if without_cache:
        kept = {key: value for key, value in kept.items() if key not in OF_CACHE}
        kept["collectives"] = {key: value for key, value in kept["collectives"].items()
                               if key not in OF_CACHE_IN_COLLECTIVES}
    return kept


def difference(first, other, without_cache):
    """The first key in which two results differ; empty if they are the same."""
    if not isinstance(first, dict) or not isinstance(other, dict):
        return "" if first == other else "standard error"
    first, other = comparable(first, without_cache), comparable(other, without_cache)
    return next((f"{key}: {first.get(key)!r} became {other.get(key)!r}"[:300]
                 for key in [*first, *other] if first.get(key) != other.get(key)), "")


def try_scenario(number, options):
    """(what became of it, what is wrong, number of runs)"""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "random.textproto")
        path.write_text(Generator(options.seed, number).text())
        status, result = run_once(options.programs[0], path, options, [])
        if status == "late":
            return "late", "", 1
        if not isinstance(result, dict):
            wrong = "" if status == 2 else f"exit status {status}: {result}"
            return "refused", wrong, 1
        wrong = [] if status in (0, 3, 4) else [f"exit status {status}"]
        if not result["conservation"]["ok"]:
            wrong.append("bytes are missing")
        plain = number % 4 != 3
        again = [(options.programs[0], [] if plain else ["--no-replay-cache"])]
        if number % options.share == 0:
            again += [(program, []) for program in options.programs[1:]]
        runs = 1
        for program, more in again:
            other_status, other = run_once(program, path, options, more)
            if other_status == "late":
                continue
            runs += 1
            if other_status != status:
                wrong.append(f"{program} {more}: exit status {status} became {other_status}")
            elif found := difference(result, other, bool(more)):
                wrong.append(f"{program} {more}: {found}")
        return result["status"], "; ".join(wrong), runs


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--scenarios", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=int, default=10, help="1 in so many for further programs (10)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--time-limit", type=float, default=60, help="seconds for a run (60)")
    parser.add_argument("--only", type=int, help="the number of the one scenario to run")
    parser.add_argument("--show", type=int, help="the number of the scenario to print")
    options = parser.parse_args()
    options.programs = [str(pathlib.Path(program).resolve()) for program in options.programs]
    if options.show is not None:
        sys.stdout.write(Generator(options.seed, options.show).text())
        return 0
    numbers = range(options.scenarios) if options.only is None else [options.only]
    outcomes, runs, failures = collections.Counter(), 0, 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for number, (outcome, wrong, count) in zip(
                numbers, pool.map(lambda number: try_scenario(number, options), numbers)):
            outcomes[outcome] += 1
            runs += count
            if wrong:
                failures += 1
                print(f"scenario {number} of seed {options.seed}: {wrong}", flush=True)
    said = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    print(f"{len(numbers)} scenarios ({said}), {runs} runs, {failures} differ")
    says_nothing = outcomes["refused"] + outcomes["late"]
    if options.only is None and says_nothing > len(numbers) / 4:
        print("too many say nothing")
        return 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
