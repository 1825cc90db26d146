#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A month on 1,024 GPUs at published failure rates, and what spares and checkpoints are worth."""

import math
import statistics

import harness

ITERATIONS = 17280
ITERATION = 150.0  # s
SAVE, REQUEUE, LOAD, DETECTION = 20.0, 300.0, 60.0, 600.0
GPUS = 1024
# Per second: 220 faulty GPUs in 54 days of 16,384 (Llama 3), 0.057 % of cables a month (HPN).
RATE = GPUS * (220 / (16384 * 54 * 86400.0) + 0.00057 / (365.25 / 12 * 86400.0))


def closed_form(every):
    """Restarts, and the share of time with lasting progress, if a spare is always at hand."""
    work = ITERATIONS * ITERATION
    saves = (ITERATIONS // every - 1) * SAVE
    # A failure loses half an interval on average, and what follows it.
    cost = every * ITERATION / 2 + DETECTION + REQUEUE + LOAD
    time = (work + saves) / (1 - RATE * cost)
    return RATE * time, work / time


def best_interval():
    """Young's interval, s."""
    return math.sqrt(2 * SAVE / RATE)


def mean_and_error(values):
    """The mean with 1.96 standard errors, which is 0 for one value."""
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return statistics.mean(values), 1.96 * error


def shown(values, scale=1.0, digits=1):
    mean, error = mean_and_error([scale * float(value) for value in values])
    return f"{mean:.{digits}f} ± {error:.{digits}f}"


def month(bench):
    jobs = [bench.run_of("month", point).summary["jobs"][0]
            for point in bench.points("analysis/studies/mtbf_month.textproto", "month")]
    restarts, share = closed_form(12)
    time = ITERATIONS * ITERATION / share

    def of(key, scale, digits=1):
        return shown([job[key] for job in jobs], scale, digits)

    bench.table(["", "simulated", "closed form"], [
        ["restarts", of("restarts", 1), f"{restarts:.1f}"],
        ["work again (h)", of("rework_ps", 1 / 3.6e15, 2),
         f"{restarts * (12 * ITERATION / 2 + DETECTION) / 3600:.2f}"],
        ["queued and loading (h)", shown([job["requeue_ps"] + job["load_ps"] for job in jobs],
                                         1 / 3.6e15, 2),
         f"{restarts * (REQUEUE + LOAD) / 3600:.2f}"],
        ["saving checkpoints (h)", of("save_ps", 1 / 3.6e15, 2),
         f"{(ITERATIONS // 12 - 1) * SAVE / 3600:.2f}"],
        ["whole time (days)", shown([job["end_ps"] for job in jobs], 1 / 8.64e16, 2),
         f"{time / 86400:.2f}"],
        ["effective training time (%)", of("effective_training_time_ratio", 100, 2),
         f"{100 * share:.2f}"]], "month")


def study(bench):
    month(bench)
    found = {}
    for point in bench.points("analysis/studies/spare_servers.textproto", "spares"):
        key = (point["spares"].count("server"), int(point["every"]))
        found.setdefault(key, []).append(bench.run_of("spares", point).summary["jobs"][0])
    rows, curves = [], {}
    for (spares, every), jobs in found.items():
        ratios = [job["effective_training_time_ratio"] for job in jobs]
        hours = every * ITERATION / 3600
        formula = closed_form(every)[1]
        rows.append([spares, harness.number(hours), shown([job["restarts"] for job in jobs]),
                     shown([job["rework_ps"] for job in jobs], 1 / 3.6e15),
                     harness.number(jobs[0]["save_ps"] / 3.6e15),
                     shown(ratios, 100, 2), f"{100 * formula:.2f}" if spares else "-"])
        mean, error = mean_and_error([100 * float(ratio) for ratio in ratios])
        curves.setdefault(f"spares{spares}", []).append((hours, mean, error))
    bench.table(["spare servers", "checkpoint every (h)", "restarts", "work again (h)",
                 "saving (h)", "effective training time (%)", "closed form (%)"], rows)
    curves["formula"] = [(every * ITERATION / 3600, 100 * closed_form(every)[1])
                         for every in range(2, 240)]
    # One spare has the values of four, and is drawn over it.
    names = {"spares0": ("ls 1", "no spare server"), "spares4": ("ls 3 lw 7", "4 spare servers"),
             "spares1": ("ls 2", "1 spare server")}
    bench.draw("\n".join([
        "set logscale x 2", "set xlabel 'time between checkpoints (h)'",
        "set ylabel 'effective training time (%)'", "set xrange [0.1:9]", "set yrange [88:100]",
        "set key bottom left",
        "set title 'A month on 1,024 GPUs, checkpoints of 20 s'",
        f"set arrow from {best_interval() / 3600},graph 0 to {best_interval() / 3600},graph 1 "
        "nohead lc rgb '#999999' dt 2",
        "plot " + ", ".join([
            f"${name} using 1:2:3 with yerrorlines {style} title '{title}'"
            for name, (style, title) in names.items()])
        + ", $formula using 1:2 with lines ls 8 dt 2 title 'closed form, with spares'"]),
        curves, (760, 460))


if __name__ == "__main__":
    harness.main(study)
