#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Equal jobs on fabrics of 128 GPUs: times, cost and power."""

import json
import os

import harness

FOLDER = "analysis/studies/scenarios/fabrics/"
FABRICS = (("rail-optimized", FOLDER + "rail-optimized.textproto"),
           ("rail-only", FOLDER + "rail-only.textproto"),
           ("fat-tree, 3 tiers", FOLDER + "fat-tree.textproto"),
           ("leaf-spine", FOLDER + "leaf-spine.textproto"),
           ("leaf-spine, 4:1", FOLDER + "leaf-spine-4to1.textproto"),
           ("HyperX, 4 x 4", "h100-16x8-hyperx"))
JOBS = (("AllReduce, 64 MiB", 'kind: ALL_REDUCE bytes: "64MiB"', []),
        ("AllReduce, 16 KiB", 'kind: ALL_REDUCE bytes: "16KiB" repeat: 20', []),
        ("SendRecv, 16 MiB", 'kind: SEND_RECV bytes: "16MiB"', []),
        ("AllToAll, 16 MiB", 'kind: ALL_TO_ALL bytes: "16MiB"', []),
        ("AllToAll without PXN", 'kind: ALL_TO_ALL bytes: "16MiB"', ["nccl.PXN_DISABLE=true"]))


def compare(bench, job, sets):
    """topo compare's rows of all fabrics; where a fabric cannot run the job, its status is null."""
    path = os.path.join(bench.out, "rows.json")
    words = ["topo", "compare", *(file for _, file in FABRICS), "--workload",
             "analysis/studies/scenarios/fabric_jobs.textproto", "--set",
             f"workload.program={{ collectives {{ {job} }} }}",
             "--json", path]
    for each in sets:
        words += ["--set", each]
    bench.call(*words, accepted=(0, 2))
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)
    if [row["exit_status"] for row in rows if row["exit_status"] != 0] not in ([], [2]):
        raise SystemExit(f"{job}: more than one fabric cannot run it")
    return rows


def study(bench):
    times, spine = {}, {}
    for job, program, sets in JOBS:
        facts = compare(bench, program, sets)
        repeats = 20 if "repeat: 20" in program else 1
        for (name, _), row in zip(FABRICS, facts):
            ran = row["exit_status"] == 0
            times.setdefault(name, []).append(row["simulated_time_ps"] / repeats / 1e6 if ran
                                              else None)
            spine.setdefault(name, []).append(row["reached_spine_share"] if ran else None)
    first = facts[0]
    bench.table(["fabric", "switches", "cost (1,000 USD)", "cost over rail-optimized (%)",
                 "power (kW)",
                 "power over rail-optimized (%)", *(f"{job} (us)" for job, *_ in JOBS),
                 "spine, without PXN (%)"],
                [[name, row["switches"], harness.number(row["network_cost"] / 1000),
                  f"{100 * (row['network_cost'] / first['network_cost'] - 1):.0f}",
                  f"{row['network_watts'] / 1000:.1f}",
                  f"{100 * (row['network_watts'] / first['network_watts'] - 1):.0f}",
                  *(harness.number(time, 4) for time in times[name]),
                  "-" if spine[name][-1] is None else harness.percent(spine[name][-1])]
                 for (name, _), row in zip(FABRICS, facts)])
    bars = [(name, *(None if time is None else time / best for time,
                     best in zip(times[name], times["rail-optimized"])),
             row["network_cost"] / first["network_cost"]) for (name, _), row in zip(FABRICS, facts)]
    columns = [job for job, *_ in JOBS] + ["cost of the network"]
    bench.draw("\n".join([
        "set style data histograms", "set style histogram clustered gap 1",
        "set style fill solid 0.95 noborder",
        "set ylabel 'over the rail-optimized fabric'", "set yrange [0:3.2]",
        "set key outside bottom center horizontal",
        "set title 'Times of five jobs, and cost, on fabrics of 128 GPUs'", "set xtics scale 0",
        "plot 1 with lines lc rgb '#888888' notitle, " + ", ".join(
            f"$bars using {at}:xtic(1) ls {at - 1} title '{name}'" for at,
            name in enumerate(columns, 2))]),
        {"bars": bars}, (1060, 480))


if __name__ == "__main__":
    harness.main(study)
