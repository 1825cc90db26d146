#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Bytes of each pair of GPUs: the textbook's closed forms beside what packets carried."""

import re

import harness

LAYERS, HIDDEN, VOCABULARY, POSITIONS = 48, 1600, 50257, 1024  # GPT of 1.5 billion parameters
TOKENS, MICRO_BATCHES, ELEMENT_BYTES = 256, 8, 2
MIB = 2**20


def closed_form(pair, pipeline, tensor, data):
    """(dimension, bytes) of an ordered pair by Megatron-LM's volumes.

    4 AllReduces of a micro-batch's activations in each layer, one transfer of them per boundary
    and way, one AllReduce of the gradients of 12 layers x hidden^2 parameters and the embeddings; a
    ring of n sends 2 (n - 1) / n of an AllReduce's size to the next.
    """
    activations = TOKENS * HIDDEN * ELEMENT_BYTES * MICRO_BATCHES
    stage, other = (rank // (tensor * data) for rank in pair)
    embedding = -(-VOCABULARY // tensor) * HIDDEN
    if stage != other:
        size = activations if abs(stage - other) == 1 else 0
        ends = {stage, other} == {0, pipeline - 1}
        names = ["pipeline"] * (size > 0) + ["EmbTableSync"] * ends
        return " and ".join(names), size + ends * embedding * ELEMENT_BYTES
    if pair[0] // tensor == pair[1] // tensor:
        return "tensor", 4 * LAYERS / pipeline * activations * 2 * (tensor - 1) / tensor
    parameters = 12 * LAYERS * HIDDEN**2 / pipeline / tensor
    parameters += (stage == 0) * (embedding + POSITIONS * HIDDEN)
    parameters += (stage == pipeline - 1 > 0) * embedding
    return "data", parameters * ELEMENT_BYTES * 2 * (data - 1) / data


def study(bench):
    rows, marks = [], {}
    for point in bench.points("analysis/studies/volume.textproto", "study"):
        parts = [int(each) for each in re.findall(r"\d+", point["organisation"])]
        found = {}
        for pair, size in sorted(bench.run_of("study", point).pairs().items()):
            dimension, expected = closed_form(pair, *parts)
            if not dimension:
                raise SystemExit(f"{point['organisation']}: no closed form has the pair {pair}")
            found.setdefault(dimension, []).append((expected, size))
        for dimension, pairs in found.items():
            expected, carried = (sum(each) / len(pairs) for each in zip(*pairs))
            farthest = max((size / form - 1 for form, size in pairs), key=abs)
            rows.append(["({}, {}, {})".format(*parts), dimension, len(pairs),
                         f"{expected / MIB:,.1f}",
                         f"{carried / MIB:,.1f}", f"{100 * (carried / expected - 1):.2f}",
                         f"{100 * farthest:.2f}"])
            marks.setdefault(dimension.split(" ")[0], []).extend((a / MIB, b / MIB) for a,
                                                                 b in set(pairs))
    bench.table(["(p, t, d)", "dimension", "pairs", "closed form (MiB)", "simulated (MiB)",
                 "difference (%)",
                 "largest of a pair (%)"], rows)
    worst = max(abs(float(row[-1])) for row in rows)
    bench.table(["figure", "value"], [["largest difference of a pair (%)", f"{worst:.2f}"],
                                      ["pairs compared", sum(row[2] for row in rows)]], "summary")
    names = sorted(marks)
    points = ", ".join(f"${name} using 1:2 with points ls {at} pt {5 + 2 * at} title '{name}'"
                       for at, name in enumerate(names, 1))
    errors = ", ".join(f"${name} using 1:(100*($2/$1-1)) with points ls {at} pt {5 + 2 * at} "
                       "notitle"
                       for at, name in enumerate(names, 1))
    bench.draw("\n".join([
        "set multiplot layout 1,2", "set logscale x", "set xrange [2:20000]",
        "set xlabel 'closed form (MiB)'",
        "set key top left", "set logscale y", "set yrange [2:20000]",
        "set ylabel 'carried by packets (MiB)'",
        "set title 'Bytes of a pair of GPUs'",
        f"plot x with lines lc rgb '#888888' title 'equal', {points}",
        "unset logscale y", "set yrange [-3:3]",
        "set ylabel 'simulated over closed form, less 1 (%)'",
        "set title 'Difference'", f"plot 0 with lines lc rgb '#888888' notitle, {errors}",
        "unset multiplot"]),
        {name: sorted(marks[name]) for name in names}, (1000, 440))


if __name__ == "__main__":
    harness.main(study)
