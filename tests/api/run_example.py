#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs an example program, which must end with exit status 0 and print what a regular expression matches.

usage: run_example.py PROGRAM [OPTION...] REGEX

(ctest does not look at the exit status of a test with PASS_REGULAR_EXPRESSION.)
"""

import re
import subprocess
import sys


def what_is_wrong(command, pattern):
    """None if the command keeps both conditions."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    wrong = []
    if done.returncode != 0:
        wrong.append(f"ends with status {done.returncode}")
    if not re.search(pattern, done.stdout, re.DOTALL):
        wrong.append(f"prints nothing that matches\n{pattern}")
    return f"{command[0]} {' and '.join(wrong)}\nIt prints:\n{done.stdout}" if wrong else None


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(what_is_wrong(sys.argv[1:-1], sys.argv[-1]))
