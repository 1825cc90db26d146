#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""DeepSeek V3 answers 8 queries on 16 GPUs: kinds, counts, sizes and the matrix."""

import harness


def study(bench):
    result = bench.run("simulator/scenarios/deepseek_v3_inference_600k.textproto", "run",
                       options=["--no-estimate"])
    sizes = result.query(
        "SELECT kind, bytes, COUNT(*), COUNT(*) * bytes, MIN(duration_ps), AVG(duration_ps), "
        "MAX(duration_ps) FROM collectives GROUP BY kind, bytes ORDER BY COUNT(*) DESC")
    rows = [[kind, f"{size / 1024:,.1f}", harness.count(calls), harness.number(total / 2**20, 4)]
            + [harness.number(time / 1e6) for time in times] for kind, size, calls, total,
            *times in sizes]
    bench.table(["collective", "size (KiB)", "count", "together (MiB)", "shortest (us)",
                 "mean (us)", "longest (us)"],
                rows)

    by_kind = {each["kind"]: each["count"] for each in result.summary["by_kind"]}
    payload = result.summary["payload"]
    pairs = result.summary["pairs"]
    bench.table(["figure", "simulated"], [
        ["AllReduces", harness.count(by_kind["AllReduce"])],
        ["AllGathers", harness.count(by_kind["AllGather"])],
        ["AllReduces for one AllGather",
         harness.count(by_kind["AllReduce"] // by_kind["AllGather"])],
        ["collectives of another kind", harness.count(sum(by_kind.values()) - by_kind["AllReduce"]
                                                      - by_kind["AllGather"])],
        ["simulated time (s)", harness.number(result.summary["simulated_time_ps"] / 1e12)],
        ["pairs of GPUs that talk", harness.count(pairs["active"])],
        ["possible pairs", harness.count(pairs["possible"])],
        ["payload between GPUs (GiB)", harness.number(payload["total_bytes"] / 2**30)],
        ["share that leaves a server (%)", harness.percent(payload["left_server_share"])],
        ["share that reaches a spine (%)", harness.percent(payload["reached_spine_share"])],
    ], "summary")

    matrix = harness.heat_rows(result.pairs())
    bars = [(f"{kind}\\n{size / 1024:,.0f} KiB", calls) for kind, size, calls, *_ in sizes]
    bench.draw("\n".join([
        "set multiplot layout 1,2",
        "set title 'Collectives by kind and size'", "set style fill solid 0.9", "set boxwidth 0.6",
        "set logscale y", "set yrange [100:2e6]", "set ylabel 'count'", "set format y '10^{%T}'",
        "set xtics scale 0", "set xrange [-0.6:2.6]",
        "plot $bars using 0:2:xtic(1) with boxes ls 1 notitle, "
        "$bars using 0:2:(sprintf('%d', $2)) with labels offset 0,0.8 notitle",
        "reset", harness.STYLE, "set rmargin 14",
        harness.heat_map("matrix", 16, "Bytes from GPU to GPU", 1e8, 1e11), "unset multiplot"]),
        {"bars": bars, "matrix": matrix}, (1040, 460))


if __name__ == "__main__":
    harness.main(study)
