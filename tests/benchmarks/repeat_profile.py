#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes a profile of PyTorch that repeats the events of another until it has a given size.

usage: repeat_profile.py PROFILE[.gz] GIB > LARGE.json

Each repetition is shifted in time by the length of the profile, so that its kernels are further calls
of the same rank. The memory of an import is measured with such files (docs/performance.md).
"""
import gzip
import json
import re
import sys


def main() -> None:
    path, gibibytes = sys.argv[1], float(sys.argv[2])
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt") as file:
        profile = json.load(file)
    events = [event for event in profile.pop("traceEvents") if "ts" in event]
    begin = min(event["ts"] for event in events)
    length = int(max(event["ts"] + event.get("dur", 0) for event in events) - begin) + 1
    # The time of an event is replaced in its text, which is faster than to write it as JSON again.
    texts, times = [], []
    for event in events:
        times.append(int(event["ts"]))
        text = json.dumps(event, indent=1)
        texts.extend(re.split(r'(?<="ts": )\d+', text, maxsplit=1))
    out = sys.stdout.buffer
    out.write(json.dumps(profile, indent=1)[:-2].encode() + b',\n "traceEvents": [\n')
    written, repetition = 0, 0
    while written < gibibytes * 2**30:
        pieces = []
        shift = repetition * length
        for i, time in enumerate(times):
            pieces += ("" if i == repetition == 0 else ",\n", texts[2 * i], str(time + shift),
                       texts[2 * i + 1])
        written += out.write("".join(pieces).encode())
        repetition += 1
    out.write(b"]}\n")


if __name__ == "__main__":
    main()
