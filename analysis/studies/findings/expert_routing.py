#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Experts' exchanges from a skewed gate to a uniform one, and tolerated loss."""

import harness

SHOWN = (1, 5, 8, 12)  # iterations whose matrices are drawn


def study(bench):
    result = bench.run("analysis/studies/scenarios/experts.textproto", "run",
                       options=["--no-estimate"])
    iterations = result.query(
        "SELECT iteration, all_to_all_drift, all_to_all_imbalance FROM iterations ORDER BY 1")
    durations = {}
    starts = result.query("SELECT kind, duration_ps FROM collectives ORDER BY collective_index")
    exchanges = [time for kind, time in starts if kind == "AllToAllv"]
    each = len(exchanges) // len(iterations)
    for at, (iteration, *_) in enumerate(iterations):
        durations[iteration] = sum(exchanges[at * each:(at + 1) * each]) / 1e9
    bench.table(["iteration", "busiest rank over the mean", "drift of the matrix (%)",
                 "exchanges (ms)"],
                [[iteration, f"{imbalance:.2f}", "-" if drift is None else harness.percent(drift),
                  f"{durations[iteration]:.1f}"] for iteration, drift, imbalance in iterations])

    rows = []
    for point in bench.points("analysis/studies/loss_tolerance.textproto", "loss"):
        time = int(point["simulated_time_ps"])
        rows.append([point["loss"], harness.percent(point["tolerance"], 0),
                     harness.number(time / 1e9),
                     point["transport.timeouts"],
                     harness.count(point["transport.retransmitted_packets"]),
                     harness.count(point["transport.missing_packets"]),
                     harness.number(int(point["transport.saved_ps"] or 0) / 1e9)])
    bench.table(["loss rate of a cable", "tolerated (%)", "run (ms)", "time-outs",
                 "packets sent again",
                 "packets done without", "saved (ms)"], rows, "loss")

    matrices = {}
    for iteration in SHOWN:
        pairs = dict(result.query(
            "SELECT source_gpu * 1000 + destination_gpu, SUM(payload_bytes) FROM iteration_pairs "
            f"WHERE kind = 'AllToAllv' AND iteration = {iteration} GROUP BY 1"))
        matrices[f"m{iteration}"] = harness.heat_rows({divmod(key, 1000): size for key,
                                                       size in pairs.items()})
    data = dict(matrices, curve=[(iteration, imbalance, durations[iteration])
                                 for iteration, _, imbalance in iterations])
    panels = []
    for at, iteration in enumerate(SHOWN):
        panels.append(f"set origin {0.24 * at},0.42\nset size 0.27,0.6\n" + harness.heat_map(
            f"m{iteration}", 16, f"Iteration {iteration}", 3e6, 1e8) + "\nunset size")
    bench.draw("\n".join([
        "set multiplot", "set lmargin 6", "set rmargin 8", *panels, "reset", harness.STYLE,
        "set border 11",
        "set origin 0,0", "set size 1,0.45", "set xlabel 'iteration'",
        "set ylabel 'busiest rank over the mean'", "set y2label 'exchanges (ms)'", "set y2tics",
        "set xrange [0.5:12.5]",
        "set yrange [0:5]", "set y2range [0:*]", "set xtics 1", "set key top right",
        "plot $curve using 1:2 with linespoints ls 1 title 'busiest rank over the mean', "
        "$curve using 1:3 axes x1y2 with linespoints ls 2 pt 5 title 'duration of the exchanges'",
        "unset multiplot"]), data, (1180, 640))


if __name__ == "__main__":
    harness.main(study)
