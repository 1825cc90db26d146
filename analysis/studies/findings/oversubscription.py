#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""AllReduce and AllToAll on a leaf-spine fabric with fewer and fewer spines, beside the least time."""

import harness

NAMES = {"ALL_REDUCE": "AllReduce", "ALL_TO_ALL": "AllToAll"}
LEAVES = 8
NICS = 128
BYTES_PER_SECOND = 50e9  # of every cable, each way


def least_seconds(summary, spines):
    """Payload of each tier at the full rate of all its cables, evenly used: the slower tier."""
    payload = {tier["tier"]: tier["payload_bytes"] for tier in summary["tiers"]}
    return max(payload["NIC_LEAF"] / (2 * NICS),
               payload["LEAF_SPINE"] / (2 * LEAVES * spines)) / BYTES_PER_SECOND


def study(bench):
    found = {}
    for point in bench.points("analysis/studies/oversubscription.textproto", "oversubscription"):
        summary = bench.run_of("oversubscription", point).summary
        spines = int(point["spines"])
        found.setdefault(point["kind"], []).append(
            (spines, float(point["collectives.duration_ps.max"]) / 1e12,
             least_seconds(summary, spines), float(point["by_kind.0.busbw_GBps.max"]),
             int(point["transport.ecn_marked"]), summary["payload"]["reached_spine_share"]))
    full = {kind: rows[0][1] for kind, rows in found.items()}
    bench.table(["collective", "spines", "oversubscription", "duration (us)",
                 "over that with 16 spines", "bus bandwidth (GB/s)", "least time (us)",
                 "duration over it", "packets marked", "bytes over spines (%)"],
                [[NAMES[kind], spines, f"{LEAVES * 2 // spines}:1", harness.number(time * 1e6, 4),
                  f"{time / full[kind]:.2f}", harness.number(bandwidth),
                  harness.number(least * 1e6, 4), f"{time / least:.2f}", harness.count(marked),
                  harness.percent(share)]
                 for kind, rows in found.items() for spines, time, least, bandwidth, marked, share
                 in rows])
    data = {kind: [(16 / spines, 1e3 * time, 1e3 * least) for spines, time, least, *_ in rows]
            for kind, rows in found.items()}
    bench.draw("\n".join([
        "set logscale x 2", "set xlabel 'oversubscription (NICs per uplink of a leaf)'",
        "set ylabel 'duration (ms)'", "set xrange [0.9:8.9]", "set yrange [0:3]",
        "set xtics ('1:1' 1, '2:1' 2, '4:1' 4, '8:1' 8)", "set key top left",
        "set title 'Fewer spines under 16 MiB on 128 GPUs'", "plot " + ", ".join(
            f"${kind} using 1:2 with linespoints ls {style} title '{NAMES[kind]}', "
            f"${kind} using 1:3 with linespoints ls {style} dt 2 lw 1.5 pt 6 "
            f"title '{NAMES[kind]}, least time'"
            for style, kind in enumerate(NAMES, 1))]), data, (760, 460))


if __name__ == "__main__":
    harness.main(study)
