#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A cable fails in an hour of training: restarts, time-outs, failover, a spare server."""

import re

import harness

PARTS = ("rework_ps", "requeue_ps", "load_ps", "detection_ps")


def study(bench):
    facts = []
    for point in bench.points("analysis/studies/cable_failure.textproto", "study"):
        policy = re.sub(r"\{ policy: (\w+) \}", r"\1", point["policy"]) or "none"
        facts.append((policy, "none", point["timeout"], bench.run_of("study", point).summary))
    spare = bench.run("analysis/studies/scenarios/failing_cable.textproto", "spare",
                      ['restart.spare_servers=["server2"]'])
    facts.append(("none", "server", "20", spare.summary))
    rows, bars = [], []
    for policy, reserve, timeout, summary in facts:
        job = summary["jobs"][0]
        lost = job["lost_ps"] / 1e12
        parts = [job[part] / 1e12 for part in PARTS]
        hit = summary["collectives"]["duration_ps"]["max"] / 1e12
        rows.append([policy, reserve, timeout, job["status"].lower(), job["restarts"],
                     summary["transport"]["nic_failovers"], harness.number(hit),
                     harness.number(lost, 4),
                     harness.percent(job["goodput"], 2)])
        name = {"none": "restart", "PXN": "failover (PXN)", "REPLAN": "failover (REPLAN)"}[policy]
        name += ", spare server" if reserve != "none" else ""
        bars.append((f"{name}, IB_TIMEOUT {timeout}", *parts,
                     max(lost - sum(parts), 0)))
    bench.table(["failover", "spare", "IB_TIMEOUT", "job", "restarts", "NIC failovers",
                 "longest AllReduce (s)",
                 "lost time (s)", "goodput (%)"], rows)
    titles = ("work again", "queued", "loading", "ending", "waiting")
    bench.draw("\n".join([
        f"set yrange [{len(bars) - 0.4}:-0.6]", "set xrange [0:*]",
        "set xlabel 'time lost of an hour (s)'",
        "set title 'A cable fails for ten minutes'", "set ytics scale 0 noenhanced",
        "set key outside bottom center horizontal maxcols 3", "plot " + ", ".join(
            f"$bars using (0):0:({'+'.join(['0'] + [f'${2 + each}' for each in range(at)])}):"
            f"({'+'.join(f'${2 + each}' for each in range(at + 1))}):($0-0.35):($0+0.35)"
            f"{':ytic(1)' if at == 0 else ''} with boxxyerror ls {at + 1} fs solid title '{title}'"
            for at, title in enumerate(titles))]), {"bars": bars}, (960, 500))


if __name__ == "__main__":
    harness.main(study)
