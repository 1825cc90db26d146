#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Effects of flapping ports, failing optics and congestion on an AllReduce of half a millisecond."""

import re

import harness

UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def seconds(text):
    unit = next(each for each in ("us", "ms", "s") if text.endswith(each))
    return float(text[:-len(unit)]) * UNITS[unit]


def mean(values):
    values = [float(each) for each in values if each != ""]
    return sum(values) / len(values) if values else None


def study(bench):
    flaps, losses, loads = [], [], []
    rows = []
    baseline = None
    for point in bench.points("analysis/studies/flap_length.textproto", "flap_length"):
        longest = None
        if point["status"] == "COMPLETED":
            result = bench.run_of("flap_length", point)
            longest = result.summary["collectives"]["duration_ps"]["max"] / 1e12
            baseline = baseline or result.summary["collectives"]["duration_ps"]["min"] / 1e12
        recover = point["faults.0.time_to_recover_ps"]
        rows.append([re.sub(r"([a-z]+)$", r" \1", point["flap"]),
                     point["faults.0.dropped_packets"], point["transport.timeouts"],
                     "-" if longest is None else harness.number(longest * 1e3),
                     "-" if longest is None
                     else harness.number(point["collectives.stretch.max"], 4),
                     "completed" if longest is not None else
                     f"aborted after {harness.number(float(point['simulated_time_ps']) / 1e12)} s"])
        flaps.append((seconds(point["flap"]), longest))
    bench.table(["port down for", "packets lost", "time-outs", "longest AllReduce (ms)",
                 "largest stretch", "job"], rows)

    found = {}
    for point in bench.points("analysis/studies/loss_rate.textproto", "loss_rate"):
        found.setdefault(point["loss"], []).append(point)
    for loss, points in found.items():
        stretches = sorted(float(point["collectives.stretch.max"]) for point in points)
        losses.append((float(loss), stretches[0], stretches[len(stretches) // 2], stretches[-1]))
    bench.table(["optic loses", "packets lost", "time-outs", "least stretch", "median", "greatest"],
                [[loss, harness.number(mean(point["faults.0.dropped_packets"] for point in points)),
                  harness.number(mean(point["transport.timeouts"] for point in points)),
                  *(harness.number(value, 4) for value in losses[at][1:])]
                 for at, (loss, points) in enumerate(found.items())], "loss")

    for point in bench.points("analysis/studies/congestion.textproto", "congestion"):
        loads.append((8 * int(point["rate"][:-4]), float(point["collectives.stretch.mean"]),
                      float(point["collectives.stretch.max"]), int(point["transport.ecn_marked"])))
    bench.table(["others' load (Gb/s)", "mean stretch", "largest", "packets marked"],
                [[load, f"{middle:.2f}", f"{most:.2f}", harness.count(marked)] for load, middle,
                 most, marked in loads],
                "congestion")
    bench.table(["figure", "value"],
                [["AllReduce without a fault (ms)", harness.number(baseline * 1e3)]], "base")
    bench.draw("\n".join([
        "set multiplot layout 1,3", "set logscale xy", "set format '%g'",
        "set title 'A port flaps'",
        "set xlabel 'down for (s)'", "set ylabel 'longest AllReduce (s)'", "set yrange [3e-4:100]",
        "set xrange [5e-7:200]", "set xtics 1000", "set key top left",
        f"plot {baseline} with lines lc rgb '#888888' title 'without a fault', "
        "$flaps using 1:2 with linespoints ls 1 title 'completed', "
        "$flaps using 1:(valid(2) ? NaN : 50) with points ls 6 pt 2 ps 1.2 title 'job aborted'",
        "set title 'An optic loses packets'", "set xlabel 'loss rate'",
        "set ylabel 'largest stretch'",
        "set xtics 10", "set key top left", "set format x '10^{%T}'", "set xrange [5e-6:2e-2]",
        "set yrange [0.8:1e5]",
        "plot $losses using 1:3:2:4 with yerrorbars ls 2 title 'median and range', "
        "$losses using 1:3 with lines ls 2 notitle",
        "unset logscale", "set format '%g'", "set title 'Others congest a port of 400 Gb/s'",
        "set xlabel 'load of others (Gb/s)'", "set ylabel 'stretch'", "set xtics 200",
        "set xrange [0:850]",
        "set yrange [0:5]", "plot $loads using 1:3 with linespoints ls 3 title 'largest', "
        "$loads using 1:2 with linespoints ls 4 title 'mean'", "unset multiplot"]),
        {"flaps": flaps, "losses": losses, "loads": loads}, (1240, 420))


if __name__ == "__main__":
    harness.main(study)
