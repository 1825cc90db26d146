#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Eight fabrics of 64 GPUs under jobs of a dense model, of experts and of inference, with a flap."""

import json
import os

import harness

NAMES = {"h100-8x8-multi-plane": "leaf-spine, a plane per NIC", "h800-8x8-dual-tor": "dual-ToR",
         "h800-8x8-dual-plane": "dual-ToR, two planes", "h100-8x8-jellyfish": "Jellyfish",
         "h100-8x8-optical": "optical circuits", "h100-8x8-direct-connect": "direct connections",
         "torus-2d-8x8": "torus, 8 x 8", "torus-3d-4x4x4": "torus, 4 x 4 x 4"}
TITLES = ("title 'without the flap'", "title 'lost to the flap'")
JOBS = (("64MiB", "dense"), ("16MiB", "experts"), ("64KiB", "inference"))


def costs(bench):
    """topo compare's row of each fabric."""
    path = os.path.join(bench.out, "rows.json")
    bench.call("topo", "compare", *NAMES, "--workload",
               "analysis/studies/scenarios/fabric_64.textproto", "--set",
               "workload.program={ collectives { kind: ALL_REDUCE bytes: \"64KiB\" } }", "--set",
               "faults=", "--json", path)
    with open(path, encoding="utf-8") as file:
        return dict(zip(NAMES, json.load(file)))


def study(bench):
    found = {}
    for point in bench.points("analysis/studies/topologies.textproto", "topologies"):
        job = next(job for size, job in JOBS if size in point["job"])
        time = float(point["simulated_time_ps"]) / 1e6
        lost = float(point["jobs.0.lost_ps"]) / 1e6
        found.setdefault(point["fabric"], {})[job] = (time - lost, lost)
    facts = costs(bench)
    bench.table(["fabric", "switches", "network (1,000 USD)",
                 *(f"{job} ({what})" for _, job in JOBS for what in ("us", "lost to the flap, us"))],
                [[NAMES[fabric], facts[fabric]["switches"],
                  harness.number(facts[fabric]["network_cost"] / 1000),
                  *(harness.number(value, 4) for _, job in JOBS for value in of_job[job])]
                 for fabric, of_job in found.items()])
    bars = [(NAMES[fabric], *(value / 1000 for _, job in JOBS for value in of_job[job]))
            for fabric, of_job in found.items()]
    panels = []
    titles = ("Dense: AllReduce, 64 MiB", "Experts: 2 AllToAlls, 16 MiB",
              "Inference: 20 AllReduces, 64 KiB")
    for at, title in enumerate(titles):
        free, lost = 2 + 2 * at, 3 + 2 * at
        panels += [f"set title '{title}'",
                   "set lmargin at screen " + ("0.17", "0.46", "0.75")[at],
                   "set rmargin at screen " + ("0.42", "0.71", "0.985")[at],
                   "set ytics scale 0" if at == 0 else "set ytics scale 0 format ''",
                   f"plot $bars using (0):0:(0):{free}:($0-0.35):($0+0.35)"
                   f"{':ytic(1)' if at == 0 else ''} with boxxyerror ls 1 fs solid "
                   f"{TITLES[0] if at == 1 else 'notitle'}, "
                   f"$bars using (0):0:{free}:(${free} + (${lost} > 0 ? ${lost} : 0)):"
                   "($0-0.35):($0+0.35) with boxxyerror ls 2 fs solid "
                   f"{TITLES[1] if at == 1 else 'notitle'}"]
    bench.draw("\n".join([
        "set multiplot", "set tmargin at screen 0.9", "set bmargin at screen 0.25",
        f"set yrange [{len(bars) - 0.4}:-0.6]", "set xrange [0:5.5]", "set xlabel 'time (ms)'",
        "set xtics 1", "set key outside bottom center horizontal", *panels, "unset multiplot"]),
        {"bars": bars}, (1180, 440))


if __name__ == "__main__":
    harness.main(study)
