#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Recovery methods and congestion controls at the same loss rates, and the cost of one loss."""

import re
import statistics

import harness

NAMES = {"GO_BACK_N": "go-back-N", "SELECTIVE_REPEAT": "selective repeat"}
ALL_REDUCES = 3  # of a run of one_loss, of which one is hit


def study(bench):
    found = {}
    for point in bench.points("analysis/studies/loss_recovery.textproto", "loss_recovery"):
        control = re.sub(r"\{ (\w+) \{\} \}", r"\1", point["control"])
        found.setdefault((point["loss"], control), {}).setdefault(point["recovery"],
                                                                  []).append(point)

    def total(points, figure):
        return sum(float(point[figure]) for point in points)
    rows, ratios = [], {}
    for (loss, control), of_recovery in found.items():
        row = [loss, control]
        for recovery in NAMES:
            points = of_recovery[recovery]
            lost = total(points, "faults.0.dropped_packets")
            again = total(points, "transport.retransmitted_packets")
            ratios[loss, control, recovery] = again / lost
            longer = statistics.median(float(point["jobs.0.lost_ps"]) for point in points)
            row += [harness.count(lost), harness.count(again), harness.number(again / lost, 2),
                    harness.count(total(points, "transport.timeouts")),
                    harness.number(longer / 1e6, 2)]
        rows.append(row)
    bench.table(["loss rate", "control"] + [f"{name}: {what}" for name in NAMES.values() for what in
                                            ("lost", "sent again", "per loss", "time-outs",
                                             "longer (us)")], rows)

    places, summary = {}, []
    for point in bench.points("analysis/studies/one_loss.textproto", "one_loss"):
        longer = 100 * ALL_REDUCES * (float(point["collectives.stretch.mean"]) - 1)
        places.setdefault(point["direction"], []).append((int(point["number"]), longer, point))
    for direction, points in places.items():
        values = [longer for _, longer, _ in points]
        rows = [point for *_, point in points]
        summary.append([direction.lower(), len(points), harness.number(min(values), 2),
                        harness.number(statistics.mean(values), 2),
                        harness.number(max(values), 2),
                        harness.number(total(rows, "transport.retransmitted_packets") / len(rows),
                                       2),
                        harness.count(total(rows, "transport.timeouts")),
                        harness.number(max(float(row["jobs.0.lost_ps"]) for row in rows) / 1e6, 2)])
    bench.table(["direction", "places", "least (%)", "mean (%)", "largest (%)",
                 "sent again per loss", "time-outs", "job longer, at most (us)"], summary, "one")

    series = [(control, recovery) for control in ("none", "dctcp") for recovery in NAMES]
    losses = list(dict.fromkeys(loss for loss, _ in found))
    bench.draw("\n".join([
        "set multiplot layout 1,2", "set style data histograms",
        "set style histogram clustered gap 1",
        "set style fill solid 0.95 noborder", "set xtics scale 0", "set xlabel 'loss rate'",
        "set ylabel 'packets sent again per lost packet'", "set yrange [0:20]", "set xrange [-0.6:2.6]",
        "set key top right",
        "set title 'Recovery: repeats of data per lost packet'",
        "plot " + ", ".join(
            f"$ratios using {at + 2}:xtic(1) ls {(1, 2, 5, 6)[at]} "
            f"title '{NAMES[recovery]}, {'without control' if control == 'none' else 'DCTCP'}'"
            for at, (control, recovery) in enumerate(series)),
        "set title 'One lost data packet (go-back-N)'", "set xtics 1000 scale 1", "set format x '%g'",
        "set xlabel 'number of the lost packet'", "set ylabel 'AllReduce longer by (%)'",
        "set xrange [0:3600]", "set yrange [0:1]",
        "plot $FORWARD with linespoints ls 1 title 'to the leaf', "
        "$BACKWARD with linespoints ls 2 title 'from the leaf'", "unset multiplot"]),
        {"ratios": [(loss, *(ratios[loss, *each] for each in series)) for loss in losses],
         **{direction: [(number, longer) for number, longer, _ in points] for direction, points in
            places.items()}}, (1120, 460))


if __name__ == "__main__":
    harness.main(study)
