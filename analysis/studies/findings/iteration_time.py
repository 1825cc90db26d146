#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Time of an iteration: T_comp + T_tp + T_pp + T_dp + T_bubble beside the simulation."""

import harness

JOBS = (("GPT 1.5B, 4 V100", "study_gpt_1_5b_4_v100"), ("GPT 3B, 8 V100", "study_gpt_3b_8_v100"),
        ("GPT 1.5B, 16 RTX 3090", "study_gpt_1_5b_16_rtx3090"),
        ("GPT 3B, 32 RTX 3090", "study_gpt_3b_32_rtx3090"))
# A late rank makes its own stage wait and the next ones' bubble longer: only the sum is compared.
PARTS = (("T_comp", ("compute_ps",)), ("T_tp", ("tensor_ps",)), ("T_pp", ("pipeline_ps",)),
         ("T_dp", ("data_ps",)),
         ("T_bubble", ("bubble_ps", "wait_ps")))


def study(bench):
    rows, bars, differences = [], [], []
    for job, scenario in JOBS:
        result = bench.run(f"simulator/scenarios/{scenario}.textproto", scenario)
        estimate = result.summary["estimate"]
        differences.append(estimate["difference"])
        for name, values in (("closed form", estimate), ("simulated", estimate["simulated"])):
            parts = [sum(values[key] for key in keys) / 1e9 for _, keys in PARTS]
            total = values["total_ps"] / 1e9
            rows.append([job, name] + [f"{part:,.0f}" for part in parts]
                        + [f"{total:,.0f}", harness.percent(values["communication_share"]),
                           harness.percent(estimate["difference"]) if name == "closed form"
                           else "-"])
            bars.append((f"{job}, {name}", *(part / 1000 for part in parts)))
    bench.table(["job", "by", *(f"{name} (ms)" for name, _ in PARTS), "T_iter (ms)",
                 "communication (%)",
                 "difference (%)"], rows)
    worst = max(map(abs, differences))
    bench.table(["figure", "value"], [["largest difference (%)", harness.percent(worst)],
                                      ["smallest accuracy (%)", harness.percent(1 - worst)]],
                "summary")
    stacks = ", ".join(
        f"$bars using (0):0:({'+'.join(['0'] + [f'${2 + each}' for each in range(at)])}):"
        f"({'+'.join(f'${2 + each}' for each in range(at + 1))}):($0-0.38):($0+0.38)"
        f"{':ytic(1)' if at == 0 else ''} with boxxyerror ls {at + 1} fs solid title '{name}'"
        for at, (name, _) in enumerate(PARTS))
    bench.draw("\n".join([f"set yrange [{len(bars) - 0.4}:-0.6]", "set xrange [0:*]",
                          "set xlabel 'time (s)'",
                          "set title 'Where the time of an iteration goes'",
                          "set key outside bottom center horizontal", f"plot {stacks}"]),
               {"bars": bars}, (920, 460))


if __name__ == "__main__":
    harness.main(study)
