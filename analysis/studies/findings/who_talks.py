#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Pairs of GPUs that talk, and shares of the bytes that leave a server and reach a spine."""

import re

import harness

SERIES = (("one", 4, 8, "pairs that talk"), ("one", 2, 1, "bytes that leave a server"),
          ("two", 3, 2, "reach a spine (leaf-spine)"),
          ("one", 3, 6, "reach a spine (rails): none"))  # block, column, style, title

def study(bench):
    rows, bars, first = [], [], {}
    fabrics = {"h100-4x8-rail-optimized": "rail-optimized", "h100-4x8-rail-only": "rail-only",
               "h100-4x8-leaf-spine": "leaf-spine"}
    for point in bench.points("analysis/studies/traffic.textproto", "study"):
        job = re.search(r'name: "([^"]*)"', point["job"]).group(1)
        fabric = fabrics[point["fabric"]]
        left, spine = (100 * float(point[f"payload.{key}_share"])
                       for key in ("left_server", "reached_spine"))
        time = float(point["simulated_time_ps"])
        first.setdefault(job, time)
        active, possible = int(point["pairs.active"]), int(point["pairs.possible"])
        rows.append([job, fabric, active, harness.percent(active / possible),
                     harness.number(int(point["payload.total_bytes"]) / 2**30), f"{left:.1f}",
                     f"{spine:.1f}",
                     f"{time / first[job]:.3f}"])
        if fabric != "rail-only":
            bars.append((job if fabric == "rail-optimized" else "", left, spine,
                         100 * active / possible))
    bench.table(["job", "fabric", "pairs that talk", "of all (%)", "payload (GiB)",
                 "leaves a server (%)",
                 "reaches a spine (%)", "time over rail-optimized"], rows)
    one, two = bars[0::2], bars[1::2]
    bench.draw("\n".join([
        "set yrange [6.6:-0.6]", "set xrange [0:105]", "set xlabel 'share (%)'",
        "set title 'Pairs that talk, and bytes that leave a server or reach a spine'",
        "set key outside bottom center horizontal maxcols 2",
        "plot " + ", ".join(
            f"${block} using (0):0:(0):{column}:"
            f"($0{-0.4 + 0.2 * at:+.1f}):($0{-0.2 + 0.2 * at:+.1f})"
            f"{':ytic(1)' if at == 0 else ''} with boxxyerror ls {style} fs solid title '{title}'"
            for at, (block, column, style, title) in enumerate(SERIES))]),
        {"one": one, "two": two}, (900, 480))


if __name__ == "__main__":
    harness.main(study)
