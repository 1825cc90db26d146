#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Collectives of five models in training, fine-tuning and inference."""

import re

import harness

MIB = 2**20


def study(bench):
    rows, bars, largest = [], [], {}
    kinds = ["AllReduce", "AllGather", "ReduceScatter", "Broadcast"]
    for point in bench.points("analysis/studies/profiles.textproto", "study"):
        job = re.search(r'name: "([^"]*)"', point["job"]).group(1)
        result = bench.run_of("study", point)
        calls = result.query("SELECT kind, bytes, duration_ps FROM collectives ORDER BY bytes")
        together = sum(size for _, size, _ in calls)
        shares = {}
        for kind in kinds:
            of_kind = [(size, time) for each, size, time in calls if each == kind]
            sizes = [size for size, _ in of_kind]
            shares[kind] = sum(sizes) / together
            if of_kind:
                times = sorted(time for _, time in of_kind)
                rows.append([job, kind, len(of_kind), f"{sizes[(len(sizes) - 1) // 2] / MIB:.3g}",
                             f"{sizes[-1] / MIB:.3g}", harness.percent(shares[kind]),
                             harness.number(times[(len(times) - 1) // 2] / 1e6)])
        if set(kind for kind, _, _ in calls) - set(kinds):
            raise SystemExit(f"{job}: a kind of collective that the figure does not have")
        bars.append((job, *(len([1 for kind, *_ in calls if kind == each]) for each in kinds),
                     *(100 * shares[each] for each in kinds)))
        largest[job] = shares
    bench.table(["job", "collective", "count", "median size (MiB)", "largest (MiB)",
                 "share of bytes (%)",
                 "median duration (us)"], rows)
    first = sum(max(shares, key=shares.get) == "AllReduce" for shares in largest.values())
    bench.table(["figure", "value"],
                [["jobs", len(largest)], ["jobs most of whose bytes are AllReduce's", first]],
                "summary")
    stacks = ", ".join(
        f"$bars using (0):0:({'+'.join(['0'] + [f'${6 + each}' for each in range(at)])}):"
        f"({'+'.join(f'${6 + each}' for each in range(at + 1))}):($0-0.35):($0+0.35)"
        f"{':ytic(1)' if at == 0 else ''} with boxxyerror ls {at + 1} fs solid title '{kind}'"
        for at, kind in enumerate(kinds))
    counts = ", ".join(
        f"$bars using (${2 + at} > 0 ? ${2 + at} : NaN):0:(0.7):(${2 + at} > 0 ? ${2 + at} : NaN):"
        f"($0-0.4+{0.2 * at}):($0-0.2+{0.2 * at}){':ytic(1)' if at == 0 else ''} "
        f"with boxxyerror ls {at + 1} "
        f"fs solid title '{kind}'" for at, kind in enumerate(kinds))
    bench.draw("\n".join([
        "set multiplot layout 1,2", "set yrange [11.6:-0.6]", "set logscale x",
        "set xrange [0.7:20000]",
        "set xlabel 'collectives'", "set title 'How many'",
        "set key outside bottom center horizontal",
        f"plot {counts}", "unset logscale x", "set xrange [0:100]",
        "set xlabel 'share of bytes (%)'",
        "set title 'Share of the bytes'", f"plot {stacks}", "unset multiplot"]), {"bars": bars},
               (1120, 520))


if __name__ == "__main__":
    harness.main(study)
