#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Damages every kind of file that railyard reads and requires that the program withstands it.

    campaign.py build/release/bin/railyard --edits 2000

Each kind of input gets so many mutants: a small valid file with one to eight random edits, read by
the command that reads it. The command must end without a signal, within 10 s of CPU time, within
1 GiB of memory and with an exit status of 0 to 4. If it ends with 2, it must have said why, each
finding at FILE:LINE:COL, and must have written nothing. Commands that simulate are interrupted after
half a second, as by Ctrl-C, and must then end.

Equal seeds give equal mutants. A mutant that the program does not withstand is kept, with the
command, in the directory that --keep names; --only KIND --index N tries one mutant again.
With RAILYARD_REFERENCE_DIR set, the captured logs and published tables there are damaged, too.
"""

import argparse
import contextlib
import dataclasses
import multiprocessing
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
SEED_BYTES_MAX = 64 << 10
MUTANT_BYTES_MAX = 2 << 20
STDERR_BYTES_MAX = 256 << 10
INTERRUPT_SECONDS = 0.5
WALL_SECONDS = 60.0  # for a command that waits instead of computing
ORPHAN_SECONDS = 5.0  # until what was killed with its parent is gone


def has_members(group):
    """True if a process of the group lives; one that has ended and was not waited for does not."""
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            state, _, of = stat.read_text().rpartition(")")[2].split()[:3]
            if int(of) == group and state not in "ZX":
                return True
    return False


def outlives(group, seconds):
    """True if a process of the group still lives after so long."""
    end = time.monotonic() + seconds
    while has_members(group):
        if time.monotonic() > end:
            return True
        time.sleep(0.02)
    return False


# ---- Mutants -------------------------------------------------------------------------------------

TOKEN = re.compile(rb"[A-Za-z_][A-Za-z0-9_./-]*|[0-9][0-9A-Za-z.+]*")
NUMBER = re.compile(rb"[0-9]+(?:\.[0-9]+)?")
NUMBERS = [
    b"0", b"-1", b"1", b"2", b"3", b"0.1", b"007", b"0x10", b"63", b"64", b"255", b"256", b"1000",
    b"65535", b"65536", b"1000000", b"2147483647", b"2147483648", b"4294967295", b"4294967296",
    b"9223372036854775807", b"9223372036854775808", b"18446744073709551615",
    b"18446744073709551616", b"99999999999999999999999999", b"1e308", b"1e309", b"-1e309", b"1e-400",
    b"5e-324", b"nan", b"inf", b"-inf",
]
BRACKETS = [b"{", b"[", b"(", b"<", b"}", b"]", b")", b">", b"a { ", b"<a>", b"[[", b"subgraph {",
            b"\"", b"<!--", b"-->", b"&amp;", b"#", b"\\"]


def piece(rng, data, longest=64):
    """A random range of `data`: usually short, now and then whatever is left."""
    at = rng.randrange(len(data) + 1)
    length = rng.randrange(longest) if rng.random() < 0.9 else rng.randrange(len(data) - at + 1)
    return at, min(at + length, len(data))


def line_at(rng, data):
    at = rng.randrange(len(data) + 1)
    begin = data.rfind(b"\n", 0, at) + 1
    end = data.find(b"\n", at)
    return begin, len(data) if end < 0 else end + 1


def found(rng, data, pattern):
    """The first match after a random place, or else the first of all; None without any."""
    return pattern.search(data, rng.randrange(len(data) + 1)) or pattern.search(data)


def flip_bit(rng, data, _):
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1:]


def set_byte(rng, data, _):
    at = rng.randrange(len(data))
    byte = rng.choice(b"{}[]<>()\"':;,=#\\-+.09 \n\t\0\xff\x80") if rng.random() < 0.7 else rng.randrange(256)
    return data[:at] + bytes([byte]) + data[at + 1:]


def delete(rng, data, _):
    begin, end = piece(rng, data)
    return data[:begin] + data[end:]


def duplicate(rng, data, _):
    begin, end = piece(rng, data)
    return data[:end] + data[begin:end] * rng.choice([1, 1, 1, 2, 10]) + data[end:]


def move_copy(rng, data, _):
    begin, end = piece(rng, data)
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[begin:end] + data[at:]


def truncate(rng, data, _):
    return data[:rng.randrange(len(data))]


def extreme_number(rng, data, _):
    match = found(rng, data, NUMBER)
    if not match:
        return data
    return data[:match.start()] + rng.choice(NUMBERS) + data[match.end():]


def swap_tokens(rng, data, _):
    one, other = found(rng, data, TOKEN), found(rng, data, TOKEN)
    if not one or not other or one.end() > other.start():
        return data
    return (data[:one.start()] + other.group() + data[one.end():other.start()] + one.group() +
            data[other.end():])


def foreign_token(rng, data, tokens):
    match = found(rng, data, TOKEN)
    if not match:
        return data
    return data[:match.start()] + rng.choice(tokens) + data[match.end():]


def delete_line(rng, data, _):
    begin, end = line_at(rng, data)
    return data[:begin] + data[end:]


def repeat_line(rng, data, _):
    begin, end = line_at(rng, data)
    times = min(rng.choice([1, 1, 1, 3, 300]), MUTANT_BYTES_MAX // (end - begin + 1))
    return data[:end] + data[begin:end] * times + data[end:]


def move_line(rng, data, _):
    begin, end = line_at(rng, data)
    line, rest = data[begin:end], data[:begin] + data[end:]
    at = line_at(rng, rest)[0]
    return rest[:at] + line + rest[at:]


def long_line(rng, data, _):
    match = found(rng, data, TOKEN)
    token = match.group() if match else b"a"
    at = match.end() if match else rng.randrange(len(data) + 1)
    length = rng.choice([300, 5_000, 70_000, 1_000_000])
    return data[:at] + (token * (length // len(token) + 1))[:length] + data[at:]


def nest(rng, data, _):
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(BRACKETS) * rng.choice([1, 2, 99, 10_000]) + data[at:]


EDITS = [flip_bit, set_byte, delete, duplicate, move_copy, extreme_number, extreme_number,
         extreme_number, swap_tokens, foreign_token, foreign_token, delete_line, repeat_line,
         move_line, truncate, long_line, nest]
WEIGHTS = [4, 8, 6, 6, 6, 6, 6, 6, 8, 6, 6, 4, 4, 4, 2, 1, 2]


def mutant(kind, seed, index):
    rng = random.Random(f"{seed}/{kind.name}/{index}")
    data = kind.seeds[index % len(kind.seeds)]
    for _ in range(rng.choice([1, 1, 1, 1, 2, 2, 3, 8])):
        if data:
            data = rng.choices(EDITS, WEIGHTS)[0](rng, data, kind.tokens)[:MUTANT_BYTES_MAX]
    return data


# ---- Kinds of input ------------------------------------------------------------------------------

@dataclasses.dataclass
class Kind:
    name: str
    path: str        # where commands expect the mutant
    seeds: list      # valid contents
    commands: list   # used in turn
    explains: str = ""  # written even if the input is refused
    simulates: bool = False  # takes as long as its input asks for, and is interrupted
    captured: list = dataclasses.field(default_factory=list)  # more seeds, if they are valid
    tokens: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        words = {word for seed in self.seeds for word in TOKEN.findall(seed) if len(word) < 40}
        self.tokens = sorted(words) or [b"x"]


SMALL_FABRIC = "rail_optimized { servers: 2 gpus_per_server: 2 }\n"
ALL_REDUCE = "program { collectives { kind: ALL_REDUCE bytes: \"64KiB\" } }"
FABRICS = {
    "rail": SMALL_FABRIC,
    "torus": "torus { servers { count: 4 gpus: 1 nics: 1 } dimensions: [2, 2] }\n",
    "fat_tree": "fat_tree { servers { count: 2 gpus: 2 nics: 1 } }\n",
    "optical": "preset: \"h100-8x8-optical\"\n",
}
CAPTURED_PLAN = """\
model { layers: 2 hidden: 64 heads: 4 vocabulary: 128
  experts { count: 4 per_token: 2 feed_forward: 64 } }
parallelism { data: 4 expert: 4 }
compute { accelerator: "h100-sxm" utilisation: 0.4 memory_utilisation: 0.8 }
training { sequence: 64 micro_batch: 1 micro_batches: 1 iterations: 2 }
expert_routing { gate: CAPTURED captured: "mutant.csv" }
"""
SERVING_PLAN = """\
model { preset: "gpt-2" }
parallelism { tensor: 2 }
compute { accelerator: "h100-sxm" utilisation: 0.4 memory_utilisation: 0.8 }
inference { batch: 4 arrivals { requests: "mutant.csv" } }
"""
ALGORITHM = """\
collective: ALL_REDUCE ranks: 2 chunks: 2
lanes { rank: 0
  steps { chunk: 1 send_to: 1 load_local: true }
  steps { chunk: 0 recv_from: 1 load_local: true reduce: true keep: true store: true }
  steps { chunk: 0 send_to: 1 load_kept: true }
  steps { chunk: 1 recv_from: 1 store: true }
}
lanes { rank: 1
  steps { chunk: 0 send_to: 0 load_local: true }
  steps { chunk: 1 recv_from: 0 load_local: true reduce: true keep: true store: true }
  steps { chunk: 1 send_to: 0 load_kept: true }
  steps { chunk: 0 recv_from: 0 store: true }
}
"""
MEASURED = '''\
source_id,collective,nodes,gpus_per_node,gpu,nic_gbps,nccl_version,algo_hint,bytes,time_us,algbw_GBps,busbw_GBps,notes
a,all_reduce,1,8,H100-SXM5-80GB,8x400 IB,2.23.4,auto,1024,12.5,0.08,0.14,"out-of-place; ""float"""
a,all_gather,2,8,A100-SXM4-80GB,8x200 RoCE,2.18.3,Ring,4096,35.1,0.11,0.10,in-place
b,sendrecv,1,4,H100-SXM5-80GB,,unknown,,2048,9.1,0.22,0.22,
'''
NCCL_TESTS = """\
# nThread 1 nGpus 8 minBytes 1024 maxBytes 4096 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
        1024           256     float     sum      -1    20.93    0.05    0.09      0    20.55    0.05    0.09      0
        2048           512     float     sum      -1    21.75    0.09    0.16      0    21.60    0.09    0.17      0
        4096          1024     float     sum      -1    22.14    0.19    0.32      0    22.01    0.19    0.33      0
# Out of bounds values : 0 OK
"""
STUDY = """\
scenario: "simulated.textproto"
axes { name: "protocol" fields: "workload.protocol" values: ["LL", "SIMPLE"] }
axes { name: "size" fields: "workload.program.collectives[0].bytes" values: ["4KiB", "8KiB"] }
seeds: 2
figures: ["collectives.duration_ps.max", "simulated_time_ps"]
"""
# With all that a study may have.
STUDY_OF_ALL = """\
name: "all"
scenarios: ["simulated.textproto", "simulated_too.textproto"]
sets: ["nccl.IB_RETRY_CNT=6", "faults[0].until=200us", "watchdog={ no_progress: \\"5s\\" }"]
axes { name: "protocol" fields: "workload.protocol" values: ["LL", "SIMPLE"] }
axes { name: "algorithm" fields: "workload.algorithm" values: ["RING", "TREE"] }
zips { axes: "protocol" axes: "algorithm" }
axes { name: "time_out" fields: "nccl.IB_TIMEOUT" range { first: 10 last: 14 step: 4 } integer: true }
axes { name: "size" fields: "workload.program.collectives[0].bytes" log_range { first: 4 last: 16 count: 2 } unit: "KiB" integer: true }
axes { name: "window" fields: "nic.window" uniform { low: 64 high: 512 } unit: "KiB" integer: true }
axes { name: "rest" fields: "workload.program.collectives[0].compute_before" log_uniform { low: 1000 high: 100000 } unit: "ns" integer: true }
axes { name: "control" fields: "nic.congestion_control" choice: ["{ dcqcn {} }", "{ timely {} }"] }
axes { name: "repeat" fields: "workload.program.collectives[0].repeat" expression: "min(3, max(1, size / 16))" integer: true }
sample { points: 2 seed: 7 latin_hypercube: true }
conditions: "size * time_out < 200"
conditions: "window > 32"
points { name: "usual" values: ["scenario=simulated", "protocol=LL", "algorithm=RING", "time_out=14", "size=16",
  "window=128", "rest=10000", "control={ dcqcn {} }"] }
seeds: 1
first_seed: 5
no_baseline: true
figures: ["collectives.duration_ps.max", "transport.timeouts"]
"""
SIMULATED = f"""\
fabric {{ {SMALL_FABRIC} }}
workload {{ algorithm: RING protocol: SIMPLE
  program {{ collectives {{ kind: ALL_REDUCE bytes: "64KiB" repeat: 3 compute_before: "10us" }} }} }}
nccl {{ IB_TIMEOUT: 12 IB_RETRY_CNT: 7 }}
faults {{ name: "flap" kind: LINK_DOWN link: "server1/nic1--leaf1" at: "20us" until: "300us" }}
"""
SIMULATED_PLAN = f"""\
fabric {{ {SMALL_FABRIC} }}
workload {{ inline_plan {{
  model {{ preset: "gpt-2" }}
  parallelism {{ tensor: 2 data: 2 }}
  compute {{ accelerator: "h100-sxm" utilisation: 0.4 memory_utilisation: 0.8 }}
  training {{ sequence: 128 micro_batch: 1 micro_batches: 1 iterations: 2 }}
}} }}
watchdog {{ no_progress: "10s" }}
faults {{ name: "slow" kind: STRAGGLER device: "server1/gpu1" at: "1us" speed: 0.5 }}
"""
SIMULATED_JOBS = """\
fabric { leaf_spine { servers { count: 4 gpus: 2 nics: 2 } } }
jobs { name: "a" workload { program { ranks: 4 collectives { kind: ALL_TO_ALL bytes: "64KiB" repeat: 2 } } }
  placement { policy: PACKED } }
jobs { name: "b" workload { program { ranks: 4 collectives { kind: ALL_GATHER bytes: "32KiB" } } } }
faults { name: "loss" kind: LOSS link: "server0/nic0--leaf0" at: "1us" loss { probability: 0.01 } }
"""
# Wrappers name the mutant, which stands beside them.
WRAPPERS = {
    "file_fabric.textproto": f"fabric {{ file: \"mutant.net\" }}\nworkload {{ {ALL_REDUCE} }}\n",
    "platform_fabric.textproto":
        "fabric { rail_optimized { mixed_servers { count: 2 platform: \"./mutant.textproto\" } } }\n"
        f"workload {{ {ALL_REDUCE} }}\n",
    "nccl_fabric.textproto":
        "fabric { leaf_spine { servers { count: 2 nccl_topology: \"mutant.net\" } } }\n"
        f"workload {{ {ALL_REDUCE} }}\n",
    "traced.textproto": f"fabric {{ {SMALL_FABRIC} }}\nworkload {{ trace: \"mutant.trace\" }}\n",
    "traced_32.textproto":
        "fabric { preset: \"h100-4x8-rail-optimized\" }\nworkload { trace: \"mutant.trace\" }\n",
    "logged.textproto":
        "fabric { preset: \"h100-4x8-rail-optimized\" }\n"
        "workload { nccl_log { files: \"mutant.log\" missing_ranks: RECONSTRUCT } }\n",
    "pair_bytes.textproto":
        f"fabric {{ {SMALL_FABRIC} }}\nworkload {{ program {{ collectives {{\n"
        "  kind: ALL_TO_ALL_V pair_bytes: \"mutant.csv\" } } }\n",
    "traffic.textproto":
        "direct_connect { servers { count: 4 gpus: 1 nics: 1 } degree: 2 traffic: \"mutant.csv\" }\n",
    "fault_log.textproto":
        f"fabric {{ {SMALL_FABRIC} }}\nworkload {{ {ALL_REDUCE} }}\n"
        "faults { name: \"logged\" kind: LINK_DOWN log: \"mutant.csv\" }\n",
    "algorithm.textproto":
        f"fabric {{ {SMALL_FABRIC} }}\nworkload {{\n"
        "  program { ranks: 2 collectives { kind: ALL_REDUCE bytes: \"64KiB\" } }\n"
        "  schedule: \"mutant.textproto\" }\n",
    "captured.textproto": CAPTURED_PLAN,
    "serving.textproto": SERVING_PLAN,
    "simulated.textproto": SIMULATED,
    "simulated_too.textproto": SIMULATED,
    "small.textproto": SMALL_FABRIC,
}
PAIRS = "source_gpu,destination_gpu,tiers_crossed,payload_bytes\n" + "".join(
    f"{a},{b},NVLINK,{1000 * (a + 1) + b}\n" for a in range(4) for b in range(4) if a != b)
CAPTURED = "iteration,layer,expert,tokens\n" + "".join(
    f"{i},{layer},{expert},{64 + 16 * expert}\n" for i in range(2) for layer in range(2)
    for expert in range(4))
REQUESTS = "arrival_us,prompt_tokens,output_tokens\n0,16,4\n1500,32,8\n2500,8,2\n9000,64,4\n"
# Scenarios and plans that take longer than a tenth of a second to read.
SLOW = {"deepseek_v3_64", "mixtral_8x7b_32", "qwen_3_30b_32", "llama_3_405b_16384",
        "deepseek_v3_inference_600k", "permutation_8192_64kib", "plan_qwen_3", "plan_mixtral",
        "plan_deepseek_v3", "nccl_log_16ranks", "ring_1024_256mib", "permutation_1024_2mib",
        "topology_nvl72", "gpt_3_175b_1024"}
LEAVES_NUMBERS_OPEN = {"generic"}  # a platform that only a scenario completes


def write_tree(tree):
    """Writes the files beside a mutant: the shipped scenarios and plans, and the wrappers."""
    for folder in ["simulator/scenarios", "workloads/examples", "traces/samples"]:
        shutil.copytree(SOURCE / folder, tree / folder)
    for name, text in WRAPPERS.items():
        (tree / name).write_text(text)


def shipped(folder, suffix=".textproto"):
    return [path.read_bytes() for path in sorted((SOURCE / folder).glob("*" + suffix))
            if path.stem not in SLOW | LEAVES_NUMBERS_OPEN]


class Maker:
    """Seeds that the program writes itself."""

    def __init__(self, program, directory):
        self.program = program
        self.directory = directory

    def __call__(self, *arguments):
        output = self.directory / "made"
        output.unlink(missing_ok=True)
        command = [self.program, *[str(output) if a == "OUT" else a for a in arguments]]
        done = subprocess.run(command, cwd=self.directory, capture_output=True, check=False)
        if done.returncode != 0 or not output.exists():
            sys.exit(f"campaign: {' '.join(command)}: {done.stderr.decode()}")
        return output.read_bytes()


def reference_files(pattern):
    root = os.environ.get("RAILYARD_REFERENCE_DIR")
    paths = sorted(pathlib.Path(root).glob(pattern)) if root else []
    return [path.read_bytes()[:SEED_BYTES_MAX] for path in paths]


def sample_logs():
    """Parts of the sample log: one process of 32, and how all 32 begin."""
    lines = (SOURCE / "traces/samples/h100_4x8_sample.log").read_bytes().splitlines(keepends=True)
    process = next(line.split(b" ")[0] for line in lines if line.startswith(b"node0:"))
    next_call = next(i for i, line in enumerate(lines) if b"opCount" in line)
    return [b"".join(line for line in lines if line.startswith(process)), b"".join(lines[:next_call + 20])]


def all_kinds(make):
    (make.directory / "sample.log").write_bytes(sample_logs()[0])
    for name, text in FABRICS.items():
        (make.directory / f"{name}.net").write_text(text)
    nets = [f"{name}.net" for name in FABRICS if name != "optical"]

    def shown(option, *fabrics):
        return [make("topo", "show", fabric, option, "OUT") for fabric in fabrics]

    show = ["topo", "show", "mutant.net"]
    show_and_use = [show, ["validate", "file_fabric.textproto"]]
    texts = shown("--text", *nets, "dgx-1-v100")
    traces = [make("import", "--format", "nccl-log", "sample.log", "-o", "OUT"),
              make("synth", str(SOURCE / "workloads/examples/gpt_2_32.textproto"), "-o", "OUT"),
              make("synth", str(SOURCE / "workloads/examples/dlrm_criteo_32.textproto"), "-o", "OUT")]
    tables = [b"".join(table.splitlines(keepends=True)[:6])
              for table in reference_files("measured/*.csv")]
    simulated = [text.encode() for text in (SIMULATED, SIMULATED_PLAN, SIMULATED_JOBS)]
    platforms = shipped("topologies/platforms")
    return [
        Kind("scenario", "simulator/scenarios/mutant.textproto", shipped("simulator/scenarios"),
             [["validate", "simulator/scenarios/mutant.textproto"]]),
        Kind("scenario, run", "mutant.textproto", simulated,
             [["run", "mutant.textproto", "--quiet", "--out", "out/result"]], simulates=True),
        Kind("study", "mutant.textproto", [STUDY.encode(), STUDY_OF_ALL.encode()],
             [["study", "mutant.textproto", "--jobs", "1", "--out", "out/result"]], simulates=True),
        Kind("plan", "mutant.textproto", shipped("workloads/examples"),
             [["estimate", "mutant.textproto", "--pairs", "out/pairs.csv"],
              ["synth", "mutant.textproto", "-o", "out/job.trace"]]),
        Kind("nccl log", "mutant.log", sample_logs(),
             [["import", "--format", "nccl-log", "mutant.log", "-o", "out/job.trace"],
              ["import", "--format", "nccl-log", "--missing-ranks", "refuse", "mutant.log", "-o",
               "out/job.trace"],
              ["validate", "logged.textproto"]], explains="job.trace.report.txt",
             captured=reference_files("nccl-logs/*.log")),
        Kind("trace", "mutant.trace", traces,
             [["validate", "traced_32.textproto"], ["validate", "traced.textproto"]]),
        Kind("measured table", "mutant.csv", [MEASURED.encode()],
             [["fidelity", "mutant.csv", "--max-bytes", "16K", "--json", "out/fidelity.json"]],
             simulates=True, captured=tables),
        Kind("nccl-tests output", "mutant.txt", [NCCL_TESTS.encode()],
             [["fidelity", "--calibrate", "out/mine.textproto", "--collective", "all_reduce",
               "--fabric", "dgx-h100", "--max-bytes", "8K", "mutant.txt"]], simulates=True),
        Kind("fabric", "mutant.net", [text.encode() for text in FABRICS.values()] +
             [b"dragonfly { servers { count: 4 gpus: 1 nics: 1 } }\n",
              b"preset: \"h100-2x8-rail-optimized\"\n"],
             [show + ["--text", "out/topology.textproto"]]),
        Kind("topology", "mutant.net", texts, show_and_use),
        Kind("graphml", "mutant.net", shown("--graphml", *nets), show_and_use),
        Kind("graphviz", "mutant.net", shown("--dot", *nets, "dgx-1-v100"), show_and_use),
        Kind("topology.txt", "mutant.net", shown("--ns3", "rail.net", "torus.net"), show_and_use),
        Kind("nccl xml", "mutant.net", shown("--nccl", "rail.net", "dgx-1-v100"),
             [show, ["validate", "nccl_fabric.textproto"]]),
        Kind("prices", "mutant.textproto", shipped("topologies/prices"),
             [["topo", "show", "small.textproto", "--prices", "mutant.textproto"]]),
        Kind("platform", "mutant.textproto", platforms,
             [["validate", "platform_fabric.textproto"],
              ["topo", "show", "./mutant.textproto", "--nodes", "2"]]),
        Kind("algorithm", "mutant.textproto", [ALGORITHM.encode()],
             [["schedule", "mutant.textproto", "--bytes", "64K", "--json", "out/schedule.json"],
              ["validate", "algorithm.textproto"]]),
        Kind("pair bytes", "mutant.csv", [PAIRS.encode()], [["validate", "pair_bytes.textproto"]]),
        Kind("traffic", "mutant.csv", [PAIRS.encode()], [["topo", "show", "traffic.textproto"]]),
        Kind("fault log", "mutant.csv",
             [b"time,target,state\n310us,server1/nic1--leaf1,down\n312us,server1/nic1--leaf1,up\n"
              b"900us,server0/nic0--leaf0,down\n905us,server0/nic0--leaf0,up\n"],
             [["validate", "fault_log.textproto"]]),
        Kind("captured gates", "mutant.csv", [CAPTURED.encode()],
             [["estimate", "captured.textproto"], ["synth", "captured.textproto", "-o", "out/t"]]),
        Kind("arrivals", "mutant.csv", [REQUESTS.encode()],
             [["estimate", "serving.textproto"], ["synth", "serving.textproto", "-o", "out/t"]]),
    ]


# ---- One mutant ----------------------------------------------------------------------------------

# In a file, or about the option that does not fit it.
FINDING = re.compile(r"^([^\n]+?:\d+:\d+|--[a-z]+): (error|warning|note): |^and \d+ more$")
FOREIGN = re.compile(r"libprotobuf|terminate called|what\(\)|check failed|Sanitizer|runtime error|assert")


@dataclasses.dataclass
class Outcome:
    index: int
    status: int = 0
    seconds: float = 0
    mebibytes: float = 0
    complaint: str = ""


class Runner:
    """Tries mutants in a directory of its own."""

    # True if the last command described a fabric and what preflight found wrong: `topo show` then
    # ends with 2 although it could read its input.
    described = False

    def __init__(self, options, tree):
        self.options = options
        self.home = pathlib.Path(tempfile.mkdtemp(dir=options.scratch))
        self.tree = self.home / "tree"
        shutil.copytree(tree, self.tree)
        self.temporary = self.home / "tmp"
        self.temporary.mkdir()
        self.environment = dict(os.environ, TMPDIR=str(self.temporary))

    def command(self, kind, index):
        return [self.options.program, *kind.commands[index // len(kind.seeds) % len(kind.commands)]]

    def execute(self, command, simulates):
        """Exit status (negative: the signal), CPU seconds, MiB, standard error, whether it left children."""
        stdout_path, stderr_path = self.home / "stdout", self.home / "stderr"
        actions = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                   (os.POSIX_SPAWN_OPEN, 1, str(stdout_path),
                    os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
                   (os.POSIX_SPAWN_OPEN, 2, str(stderr_path),
                    os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)]
        os.chdir(self.tree)
        pid = os.posix_spawn(command[0], command, self.environment, file_actions=actions,
                             setpgroup=0, setsigdef=[signal.SIGINT])
        cpu = int(self.options.seconds) + 1
        limits = {resource.RLIMIT_CPU: (cpu, cpu + 1)}
        if self.options.address_space:
            limits[resource.RLIMIT_AS] = (self.options.address_space,) * 2
        with contextlib.suppress(ProcessLookupError):  # it may have ended by now
            for limit, values in limits.items():
                resource.prlimit(pid, limit, values)
        begin = time.monotonic()

        def alarm(*_):
            late = not simulates or time.monotonic() - begin > WALL_SECONDS
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL if late else signal.SIGINT)
            signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS)

        signal.signal(signal.SIGALRM, alarm)
        signal.setitimer(signal.ITIMER_REAL, INTERRUPT_SECONDS if simulates else WALL_SECONDS)
        _, wait_status, usage = os.wait4(pid, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        orphans = outlives(pid, ORPHAN_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        with open(stderr_path, "rb") as file:
            said = file.read(STDERR_BYTES_MAX + 1).decode("utf-8", "backslashreplace")
        with open(stdout_path, "rb") as file:
            self.described = b"\nPreflight:\n  error: " in file.read(STDERR_BYTES_MAX)
        return (os.waitstatus_to_exitcode(wait_status), usage.ru_utime + usage.ru_stime,
                usage.ru_maxrss / 1024, said, orphans)

    def try_mutant(self, kind, index):
        data = mutant(kind, self.options.seed, index)
        (self.tree / kind.path).write_bytes(data)
        out = self.tree / "out"
        out.mkdir()
        command = self.command(kind, index)
        status, seconds, mebibytes, said, orphans = self.execute(command, kind.simulates)
        written = sorted(path.name for path in out.iterdir() if path.name != kind.explains)
        # A signal that comes before there is anything to write, or after all is written, may have
        # its usual effect. Unfinished results are found below.
        is_interrupted = kind.simulates and status == -signal.SIGINT
        complaints = self.complaints(0 if is_interrupted else status, seconds, mebibytes, said)
        if status == 2 and written and not self.described:
            complaints.append("refused, but wrote " + ", ".join(written))
        if any(name.startswith(".") or name.endswith(".part") for name in written):
            complaints.append("left " + ", ".join(written))
        if any(self.temporary.iterdir()):
            complaints.append("left temporary files")
        if orphans:
            complaints.append("left a process running")
        if complaints and self.options.keep:
            self.keep(kind, index, data, command, status, said, complaints)
        shutil.rmtree(out)
        shutil.rmtree(self.temporary)
        self.temporary.mkdir()
        return Outcome(index, status, seconds, mebibytes, "; ".join(complaints))

    def refusal(self, kind, seed):
        """The reason why no command reads the undamaged seed; empty if one does."""
        (self.tree / kind.path).write_bytes(seed)
        said = ""
        for command in kind.commands:
            out = self.tree / "out"
            out.mkdir()
            status, *_, said, _ = self.execute([self.options.program, *command], False)
            shutil.rmtree(out)
            if status == 0:
                return ""
        return said or "an exit status other than 0"

    def complaints(self, status, seconds, mebibytes, said):
        complaints = []
        if status < 0:
            complaints.append("ended by " + signal.Signals(-status).name)
        elif status > 4 or status == 1:
            complaints.append(f"exit status {status}")
        if seconds > self.options.seconds:
            complaints.append(f"{seconds:.1f} s of CPU time")
        if mebibytes > self.options.mebibytes:
            complaints.append(f"{mebibytes:.0f} MiB")
        if status == 2 and not self.described:
            located = [line for line in said.split("\n") if FINDING.match(line)]
            stray = [line for line in said.split("\n") if line and not FINDING.match(line)]
            if not any(": error: " in line for line in located):
                complaints.append("refused without an error at FILE:LINE:COL")
            elif stray:
                complaints.append("a line that is no finding: " + stray[0][:80])
        if len(said) > STDERR_BYTES_MAX:
            complaints.append("floods standard error")
        if FOREIGN.search(said):
            complaints.append("says what is not for users: " + FOREIGN.search(said).group())
        return complaints

    def keep(self, kind, index, data, command, status, said, complaints):
        directory = self.options.keep / f"{kind.name.replace(' ', '_').replace(',', '')}-{index}"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / pathlib.Path(kind.path).name).write_bytes(data)
        (directory / "stderr").write_text(said)
        (directory / "report").write_text(
            f"{'; '.join(complaints)}\nstatus {status}\n{' '.join(command)}\n"
            f"again: campaign.py {self.options.program} --seed {self.options.seed} "
            f"--only '{kind.name}' --index {index}\n")


# ---- The campaign --------------------------------------------------------------------------------

runner = None


def start_worker(options, tree):
    global runner
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    runner = Runner(options, tree)


def work(task):
    kind, index = task
    return runner.try_mutant(kind, index)


def say(kind, outcomes):
    counts = [sum(outcome.status == status for outcome in outcomes) for status in range(5)]
    failures = [outcome for outcome in outcomes if outcome.complaint]
    print(f"{kind.name:18}{len(outcomes):7}" + "".join(f"{count:7}" for count in counts) +
          f"{len(failures):8}{max(outcome.seconds for outcome in outcomes):9.2f}"
          f"{max(outcome.mebibytes for outcome in outcomes):9.0f}", flush=True)
    for outcome in failures[:20]:
        print(f"    {kind.name} {outcome.index}: {outcome.complaint}", flush=True)
    if len(failures) > 20:
        print(f"    and {len(failures) - 20} more")
    return len(failures)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--edits", type=int, default=2000, help="mutants of each kind (2000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="mutants tried at a time (2)")
    parser.add_argument("--only", action="append", help="a kind of input; may be given again")
    parser.add_argument("--index", type=int, help="of the one mutant to try")
    parser.add_argument("--keep", type=lambda path: pathlib.Path(path).resolve(),
                        help="a directory for the mutants that are not withstood")
    parser.add_argument("--sanitized", action="store_true",
                        help="the program was built with sanitizers, which take time and memory")
    options = parser.parse_args()
    factor = 5 if options.sanitized else 1
    options.seconds = 10 * factor
    options.mebibytes = 1024 * factor
    options.address_space = 0 if options.sanitized else 4 << 30  # spares the machine, no requirement
    return options


def main():
    options = parsed()
    with tempfile.TemporaryDirectory(prefix="mutations-") as scratch:
        options.scratch = scratch
        tree = pathlib.Path(scratch) / "tree"
        tree.mkdir()
        write_tree(tree)
        made = pathlib.Path(scratch) / "made"
        made.mkdir()
        kinds = all_kinds(Maker(options.program, made))
        unknown = set(options.only or []) - {kind.name for kind in kinds}
        if unknown:
            sys.exit(f"campaign: no such kind: {', '.join(sorted(unknown))} (expected "
                     f"{', '.join(kind.name for kind in kinds)})")
        undamaged = Runner(options, tree)
        for kind in kinds:
            for number, seed in enumerate(kind.seeds):
                if refusal := undamaged.refusal(kind, seed):
                    sys.exit(f"campaign: seed {number} of {kind.name} is refused: {refusal}")
            kind.seeds += [seed for seed in kind.captured if not undamaged.refusal(kind, seed)]
        chosen = [kind for kind in kinds if not options.only or kind.name in options.only]
        indices = range(options.edits) if options.index is None else [options.index]
        print("kind               edits   done   env. refused aborted stalled failed  slowest s  "
              "MiB")
        failures = 0
        with multiprocessing.Pool(options.jobs, start_worker, (options, tree)) as pool:
            for kind in chosen:
                tasks = [(kind, index) for index in indices]
                failures += say(kind, list(pool.imap_unordered(work, tasks, chunksize=8)))
        print(f"{len(chosen) * len(indices)} mutants, {failures} not withstood")
        if failures and options.keep:
            print(f"They are in {options.keep}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
