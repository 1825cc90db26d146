#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Effective bandwidth of AllReduce: size, number of servers, platform and protocol."""

import harness

PLATFORMS = {"dgx-h100": "H100", "dgx-a100": "A100", "dgx-1-v100": "V100",
             "pcie-8x3090": "RTX 3090"}
DASHES = {1: 1, 2: 2, 4: 3}  # by the number of servers
SYMBOLS = {1: 5, 2: 7, 4: 9}
UNITS = {"KiB": 2**10, "MiB": 2**20}


def bytes_of(size):
    return int(size[:-3]) * UNITS[size[-3:]]


def study(bench):
    points = bench.points("analysis/studies/effective_bandwidth.textproto", "study")
    forced = bench.points("analysis/studies/protocols.textproto", "protocols")
    sizes = list(dict.fromkeys(point["size"] for point in points))
    curves = {}
    for point in points:
        curves.setdefault((PLATFORMS[point["platform"]], int(point["servers"])), []).append(
            float(point["by_kind.0.busbw_GBps.max"]))
    protocols = {}
    for point in forced:
        protocols.setdefault(point["protocol"], []).append(float(point["by_kind.0.busbw_GBps.max"]))
    bench.table(["platform", "servers"] + [f"{size[:-3]} {size[-3:]}" for size in sizes],
                [[platform, servers] + [harness.number(value) for value in values]
                 for (platform, servers), values in curves.items()])
    bench.table(["protocol"] + [f"{size[:-3]} {size[-3:]}" for size in sizes],
                [[protocol] + [harness.number(value) for value in values] for protocol,
                 values in protocols.items()],
                "protocols")
    x = [bytes_of(size) / 2**20 for size in sizes]
    data = {f"p{at}": list(zip(x, values)) for at, values in enumerate(curves.values())}
    data.update({f"q{at}": list(zip(x, values)) for at, values in enumerate(protocols.values())})
    names = list(PLATFORMS.values())
    lines = ", ".join(
        f"$p{at} with linespoints ls {names.index(platform) + 1} dt {DASHES[servers]} "
        f"pt {SYMBOLS[servers]} title '{platform}, {servers} server{'s' * (servers > 1)}'"
        for at, (platform, servers) in enumerate(curves))
    forms = ", ".join(f"$q{at} with linespoints ls {at + 1} title '{name}'" for at,
                      name in enumerate(protocols))
    bench.draw("\n".join([
        "set multiplot layout 1,2", "set logscale xy", "set format x '%g'",
        "set xlabel 'size (MiB)'",
        "set ylabel 'bus bandwidth (GB/s)'", "set xrange [0.05:300]", "set yrange [0.3:600]",
        "set title 'Platform, servers and size'",
        "set key outside bottom center horizontal maxcols 3",
        f"plot {lines}", "set title 'Protocol and size: ring on 2 servers of 8 H100'",
        f"plot {forms}",
        "unset multiplot"]), data, (1120, 540))


if __name__ == "__main__":
    harness.main(study)
