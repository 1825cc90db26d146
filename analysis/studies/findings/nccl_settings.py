#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""NCCL's settings one by one: durations of three collectives, and what time-outs make of a flap."""

import re

import harness

JOBS = ("AllReduce, 64 KiB", "AllReduce, 64 MiB", "AllToAll, 64 MiB")


def study(bench):
    found = {}
    for point in bench.points("analysis/studies/nccl_settings.textproto", "settings"):
        setting = re.sub(r'^\{ version: "2\.27\.5" ?|"| ?\}$', "",
                         point["settings"]).replace(": ", "=") or "defaults"
        found.setdefault(setting, []).append(float(point["collectives.duration_ps.max"]) / 1e6)
    base = found["defaults"]
    ratios = {setting: [time / first for time, first in zip(times, base)] for setting,
              times in found.items()}
    bench.table(["setting", *(f"{job} (us)" for job in JOBS),
                 *(f"{job}, over defaults" for job in JOBS)],
                [[setting, *(harness.number(time, 4) for time in times),
                  *(f"{each:.2f}" for each in ratios[setting])]
                 for setting, times in found.items()])
    rows = {}
    for point in bench.points("analysis/studies/nccl_timeouts.textproto", "timeouts"):
        key = (point["timeout"], point["retries"])
        recover = point["faults.0.time_to_recover_ps"]
        rows.setdefault(key, []).append("aborted" if point["status"] != "COMPLETED"
                                        else f"{harness.number(float(recover) / 1e12)} s")
    bench.table(["IB_TIMEOUT", "IB_RETRY_CNT", "flap of 10 ms", "flap of 1 s", "flap of 30 s"],
                [[*key, *cells] for key, cells in rows.items()], "timeouts")
    bars = [(setting, *values) for setting, values in ratios.items() if setting != "defaults"]
    bench.draw("\n".join([
        f"set yrange [{len(bars) - 0.4}:-0.6]", "set logscale x 2", "set xrange [0.7:16]",
        "set format x '%g'",
        "set xlabel 'duration over that with the defaults'",
        "set title 'What each setting changes'",
        "set ytics scale 0 noenhanced", "set key outside bottom center horizontal",
        "set arrow from 1,graph 0 to 1,graph 1 nohead lc rgb '#555555' back", "plot " + ", ".join(
            f"$bars using (1):0:(${column} < 1 ? ${column} : 1):(${column} > 1 ? ${column} : 1):"
            f"($0-0.36+{0.24 * at}):($0-0.36+{0.24 * (at + 1)}){':ytic(1)' if at == 1 else ''} "
            f"with boxxyerror ls {at + 1} fs solid title '{job}'"
            for at, (column, job) in enumerate(zip((2, 3, 4), JOBS)))]), {"bars": bars}, (920, 640))


if __name__ == "__main__":
    harness.main(study)
