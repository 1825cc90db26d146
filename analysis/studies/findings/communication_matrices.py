#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Pairs of GPUs that talk under three organisations (p, t, d), and EmbTableSync."""

import os
import re

import harness

PLAN = "analysis/studies/scenarios/organisation_plan.textproto"


def picture(pipeline, tensor, data):
    """The pairs of the published pictures, from the three numbers alone.

    Ranks count along tensor, data, pipeline; a group of two or more is a ring in the order of
    ranks, neighbouring stages send both ways, and so do the first and the last stage, for the
    embeddings.
    """
    stage_size = tensor * data
    pairs = set()
    for rank in range(stage_size * pipeline):
        stage, place = divmod(rank, stage_size)
        in_data, in_tensor = divmod(place, tensor)
        if tensor > 1:
            pairs.add((rank, rank - in_tensor + (in_tensor + 1) % tensor))
        if data > 1:
            pairs.add((rank, stage * stage_size + (in_data + 1) % data * tensor + in_tensor))
        pairs |= {(rank, other * stage_size + place) for other in (stage - 1, stage + 1)
                  if 0 <= other < pipeline}
        if pipeline > 1 and stage in (0, pipeline - 1):
            pairs.add((rank, (pipeline - 1 - stage) * stage_size + place))
    return pairs


def study(bench):
    rows, matrices = [], {}
    points = bench.points("analysis/studies/organisations.textproto", "study")
    for tied, untied in zip(points[0::2], points[1::2]):
        parts = [int(each) for each in re.findall(r"\d+", tied["organisation"])]
        pipeline, tensor, data = parts
        carried = bench.run_of("study", tied).pairs()
        without = bench.run_of("study", untied).pairs()
        file = os.path.join(bench.out, "-".join(map(str, parts)) + ".csv")
        bench.call("estimate", PLAN, "--set", f"parallelism={tied['organisation']}", "--fabric",
                   "pcie-8x3090",
                   "--nodes", "8", "--pairs", file)
        predicted = harness.pair_bytes(file)
        last = tensor * data * (pipeline - 1)
        tables = {pair: size - without.get(pair, 0) for pair, size in carried.items()
                  if abs(pair[0] - pair[1]) == last}
        if len(set(tables.values())) != 1:
            raise SystemExit("the pairs of EmbTableSync do not carry equal bytes")
        rows.append([f"({pipeline}, {tensor}, {data})", len(picture(*parts)), len(carried),
                     len(picture(*parts) ^ set(carried)),
                     sum(predicted.get(pair) == size for pair, size in carried.items()),
                     len(tables),
                     harness.count(next(iter(tables.values()))),
                     harness.count(-(-50257 // tensor) * 1600 * 2)])
        matrices[f"m{len(rows)}"] = (f"(p, t, d) = {rows[-1][0]}", pipeline * tensor * data,
                                     harness.heat_rows(carried))
    bench.table(["(p, t, d)", "pairs in the picture", "pairs that carry packets",
                 "pairs in one of the two only",
                 "pairs with predicted bytes", "pairs of EmbTableSync",
                 "EmbTableSync on each (bytes)",
                 "closed form (bytes)"], rows)
    panels = [harness.heat_map(name, gpus, title, 1e6, 1e9)
              for name, (title, gpus, _) in matrices.items()]
    bench.draw("\n".join(["set multiplot layout 1,3", "set lmargin 8", "set rmargin 9", *panels,
                          "unset multiplot"]), {name: each[2] for name, each in matrices.items()},
               (1320, 420))


if __name__ == "__main__":
    harness.main(study)
