#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Length of a flap, its position in an AllReduce, and NCCL's time-out: which of them costs."""

import math
import re

import harness

SECONDS = {"10us": 1e-5, "1ms": 1e-3, "100ms": 0.1, "1s": 1.0}
POSITIONS = {"0": "beginning", "0.5": "middle", "0.95": "end"}
TRIES_MAX = 7
DETECTION = 0.01  # routing's defaults
CONVERGENCE = 0.1


def spaced(flap):
    return re.sub(r"([a-z]+)$", r" \1", flap)


def timeout_of(exponent):
    return 4.096e-6 * 2**int(exponent)


def tries_until_back(flap, timeout):
    """The first try that finds the cable and its routes back, or None if the budget ends before."""
    back = flap + (DETECTION + CONVERGENCE if flap > DETECTION else 0)
    tries = math.ceil(back / timeout)
    return tries if tries <= TRIES_MAX else None


def study(bench):
    found, lost = {}, {}
    for point in bench.points("analysis/studies/flap_position.textproto", "flap_position"):
        key = (point["flap"], point["ib_timeout"])
        recover = point["faults.0.time_to_recover_ps"]
        found.setdefault(key, {})[point["position"]] = \
            float(recover) / 1e12 if point["status"] == "COMPLETED" else None
        lost.setdefault(key, {})[point["position"]] = int(point["faults.0.dropped_packets"])

    def shown(value):
        return "aborted" if value is None else harness.number(value, 4)
    rows = []
    for (flap, exponent), times in found.items():
        timeout = timeout_of(exponent)
        tries = tries_until_back(SECONDS[flap], timeout)
        rows.append([spaced(flap), exponent, harness.number(timeout, 4), tries or "-",
                     shown(tries and tries * timeout), *(shown(times[each]) for each in POSITIONS),
                     *(harness.count(lost[flap, exponent][each]) for each in POSITIONS)])
    bench.table(["port down for", "IB_TIMEOUT", "time-out (s)", "tries", "closed form (s)",
                 *(f"{each} (s)" for each in POSITIONS.values()),
                 *(f"lost, {each}" for each in POSITIONS.values())], rows)
    expected = {(flap, exponent): tries_until_back(SECONDS[flap], timeout_of(exponent))
                for flap, exponent in found}
    pairs = [(expected[key] and expected[key] * timeout_of(key[1]), time) for key, times in
             found.items() for time in times.values()]
    for form, time in pairs:
        if (form is None) != (time is None):
            raise SystemExit("the closed form does not say which runs are aborted")
    errors = [abs(time / form - 1) for form, time in pairs if time is not None]
    bench.table(["figure", "value"],
                [["runs", len(pairs)], ["runs that were aborted", len(pairs) - len(errors)],
                 ["largest deviation from the closed form (%)",
                  harness.percent(max(errors), 3)]], "summary")
    data, forms, points = {}, [], []
    exponents = list(dict.fromkeys(exponent for _, exponent in found))
    for style, exponent in enumerate(exponents, 1):
        data[f"form{exponent}"], data[f"run{exponent}"] = [], []
        for at, flap in enumerate(SECONDS):
            tries = expected[flap, exponent]
            data[f"form{exponent}"].append((at, tries and tries * timeout_of(exponent)))
            data[f"run{exponent}"] += [(at + (mark - 1) * 0.2, found[flap, exponent][position])
                                       for mark, position in enumerate(POSITIONS)]
        forms.append(f"$form{exponent} using ($1-0.4):2:(0.8):(0) with vectors nohead "
                     "lc rgb '#aaaaaa' lw 5 notitle")
        points.append(f"$run{exponent} with points ls {style} ps 1 "
                      f"title 'time-out of {harness.number(timeout_of(exponent))} s'")
    data["aborted"] = [(at, timeout_of(exponent)) for at, flap in enumerate(SECONDS) for exponent in
                       exponents if set(found[flap, exponent].values()) == {None}]
    points.append("$aborted with points ls 6 pt 2 ps 1.2 title 'job aborted'")
    ticks = ", ".join(f"'{spaced(flap)}' {at}" for at, flap in enumerate(SECONDS))
    bench.draw("\n".join([
        "set multiplot layout 1,2", "set logscale y", "set format y '%g'",
        "set title 'Until data flows again, by position (grey: closed form)'",
        "set xlabel 'port down for'", "set ylabel 'after the flap began (s)'",
        "set xrange [-0.6:3.6]", "set yrange [0.03:3000]", f"set xtics ({ticks}) scale 0",
        "set key top left", f"plot {', '.join(forms + points)}",
        "set title 'Packets lost, with a time-out of 0.0671 s'", "set style data histograms",
        "set style histogram clustered gap 1", "set style fill solid 0.95 noborder",
        "set ylabel 'packets'", "set yrange [1:20000]",
        "plot " + ", ".join(f"$lost using {at + 2}:xtic(1) ls {at + 5} title 'at its {name}'"
                            for at, name in enumerate(POSITIONS.values())),
        "unset multiplot"]),
        {**data, "lost": [(spaced(flap), *(lost[flap, "14"][each] for each in POSITIONS))
                          for flap in SECONDS]}, (1120, 460))


if __name__ == "__main__":
    harness.main(study)
