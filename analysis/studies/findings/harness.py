# SPDX-License-Identifier: GPL-2.0-only
"""Parts that the studies of docs/studies share: runs of the program, tables and figures.

A study is a module beside this one with a function `study(bench)`, which `main(study)` calls. It
writes figures/NAME.svg and figures/NAME.csv below the folder of pages, and puts the table into the
page, between the lines <!-- table: figures/NAME.csv --> and <!-- end of table -->.
A second table of a page is figures/NAME-PART.csv. Texts of cells are written once, here; tests
compare pages with these files.
"""

import argparse
import csv
import html
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
# Okabe and Ito's palette for colour-blind readers, black left out.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#666666")

STYLE = "\n".join(["set border 3 lc rgb '#555555'", "set tics nomirror",
                   "set grid lc rgb '#dddddd' lt 1",
                   "set key noenhanced"]
                  + [f"set style line {at} lc rgb '{colour}' lw 2 pt 7 ps 0.7" for at,
                     colour in enumerate(COLOURS, 1)])


class Result:
    """The result directory of a run."""

    def __init__(self, directory):
        self.directory = directory
        with open(os.path.join(directory, "summary.json"), encoding="utf-8") as file:
            self.summary = json.load(file)

    def rows(self, name):
        """The rows of one of its CSV files, as dictionaries of texts."""
        return read_csv(os.path.join(self.directory, name))

    def query(self, sql):
        """The rows that a query on its results.sqlite yields."""
        base = sqlite3.connect(f"file:{os.path.join(self.directory, 'results.sqlite')}?mode=ro",
                               uri=True)
        try:
            return base.execute(sql).fetchall()
        finally:
            base.close()

    def pairs(self):
        """{(source GPU, destination GPU): payload bytes}"""
        return pair_bytes(os.path.join(self.directory, "pairs.csv"))


class Bench:
    """The place where one study runs its simulations and leaves its figures."""

    def __init__(self, arguments, name):
        self.railyard = os.path.abspath(arguments.railyard)
        self.out = os.path.abspath(arguments.out)
        self.docs = os.path.abspath(arguments.docs)
        self.jobs = arguments.jobs
        self.name = name
        self.keep = arguments.keep
        if not self.keep:
            shutil.rmtree(self.out, ignore_errors=True)
        os.makedirs(self.out, exist_ok=True)
        os.makedirs(os.path.join(self.docs, "figures"), exist_ok=True)

    def call(self, *words, accepted=(0,)):
        """Runs the program at the root of the sources; returns what it printed."""
        done = subprocess.run([self.railyard, *words], cwd=ROOT, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode not in accepted:
            raise SystemExit(f"railyard {' '.join(words)} ended with status {done.returncode}:\n"
                             f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def run(self, scenario, label, sets=(), options=()):
        """A run of a scenario with fields set; `label` names its directory."""
        out = os.path.join(self.out, label)
        if self.keep and os.path.exists(os.path.join(out, "summary.json")):
            return Result(out)
        words = ["run", scenario, "--out", out, "--no-report", "--quiet", *options]
        for each in sets:
            words += ["--set", each]
        self.call(*words)
        return Result(out)

    def points(self, file, label):
        """The rows of points.csv of a study file, and the directory of its runs."""
        out = os.path.join(self.out, label)
        self.call("study", file, "--out", out, "--jobs", str(self.jobs),
                  *(["--resume"] if os.path.isdir(out) else []))
        return read_csv(os.path.join(out, "points.csv"))

    def run_of(self, label, row):
        """The result of a run of a study, by its row of points.csv."""
        return Result(os.path.join(self.out, label, "runs", f"{int(row['run']):06}"))

    def table(self, header, rows, part=""):
        """Writes a table as CSV, and into the page. Cells are texts, or integers."""
        name = f"figures/{self.name}{'-' + part if part else ''}.csv"
        with open(os.path.join(self.docs, name), "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(rows)
        lines = ["| " + " | ".join(str(cell) for cell in row) + " |" for row in [header] + rows]
        lines.insert(1, "|---" * len(header) + "|")
        self.put_into_page(name, lines)

    def put_into_page(self, name, lines):
        path = os.path.join(self.docs, self.name + ".md")
        if not os.path.exists(path):  # a folder of figures alone
            return
        with open(path, encoding="utf-8") as file:
            text = file.read()
        begin, end = f"<!-- table: {name} -->\n", "<!-- end of table -->"
        if begin not in text:
            raise SystemExit(f"{path}: the line \"{begin.strip()}\" is missing")
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise SystemExit(f"{path}: the line \"{end}\" is missing below {name}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(before + begin + "\n" + "\n".join(lines) + "\n\n" + end + after)

    def draw(self, script, data, size=(960, 480)):
        """figures/NAME.svg by gnuplot; the script plots `data`, {block name: rows of values}."""
        path = os.path.join(self.docs, "figures", self.name + ".svg")
        lines = [f"set terminal svg size {size[0]},{size[1]} font 'Helvetica,13' "
                 "background '#ffffff'",
                 f"set output '{path}'", "set datafile missing '?'", STYLE]
        for name, rows in data.items():
            lines += [f"${name} << EOD"] + [" ".join(quoted(cell) for cell in row)
                                            for row in rows] + ["EOD"]
        lines.append(script)
        source = os.path.join(self.out, "figure.gp")
        with open(source, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        done = subprocess.run(["gnuplot", source], stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0 or done.stderr.strip():
            raise SystemExit(f"gnuplot {source}: {done.stderr.strip()}")
        shrink(path)
        with open(path, encoding="utf-8") as file:
            text = html.unescape(file.read())
        for title in re.findall(r"(?<!set) title '([^']+)'", script):
            if f"<text>{title}</text>" not in text:
                raise SystemExit(f"{path}: there is no room for \"{title}\" in the key")


def compact_cell(match):
    """A cell of a heat map with a short colour, and to a tenth of a pixel."""
    colour = "".join(f"{int(part):02x}" for part in match.groups()[:3])
    points = re.sub(r"\d+\.\d+", lambda value: f"{float(value.group()):.1f}".removesuffix(".0"),
                    match.group(4))
    return f"<polygon fill='#{colour}' points='{points}'/>"


def shrink(path):
    """Leaves out what gnuplot writes around each element, and refuses a figure above 200 KB."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"\n+", "\n", re.sub(r"<desc>.*?</desc>|\t", "", text, flags=re.S))
    text = re.sub(r"<polygon fill = 'rgb\( *(\d+), *(\d+), *(\d+)\)' points = '([^']*?) '/>",
                  compact_cell, text)
    text = text.replace("font-family=\"Helvetica\"", "font-family=\"Helvetica,Arial,sans-serif\"")
    if len(text) >= 200_000:
        raise SystemExit(f"{path} would have {len(text)} bytes; figures have less than 200,000")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def heat_map(block, gpus, title, low, high, boundary=8):
    """gnuplot's commands for a matrix: `block` has rows of destination, source and bytes."""
    line = "nohead lc rgb '#999999' lw 0.7"
    lines = []
    for at in range(boundary, gpus, boundary):
        edge = at - 0.5
        lines.append(f"set arrow from {edge},graph 0 to {edge},graph 1 {line}")
        lines.append(f"set arrow from graph 0,first {edge} to graph 1,first {edge} {line}")
    return "\n".join([
        "unset grid", "unset arrow", "set size ratio -1", f"set title '{title}'",
        "set xlabel 'destination GPU'",
        "set ylabel 'source GPU'", f"set xrange [-0.5:{gpus - 0.5}]",
        f"set yrange [{gpus - 0.5}:-0.5]",
        f"set xtics {boundary}", f"set ytics {boundary}", "set logscale cb",
        f"set cbrange [{low}:{high}]",
        "set format cb '10^{%T}'", "set cblabel 'payload (bytes)'",
        "set palette defined (0 '#dcebf7', 0.35 '#7fb6dc', 0.7 '#1f6fb2', 1 '#08254f')", *lines,
        f"plot ${block} using 1:2:($1-0.5):($1+0.5):($2-0.5):($2+0.5):3 "
        "with boxxyerror fs solid noborder lc palette notitle"])


def heat_rows(pairs):
    return [(destination, source, size) for (source, destination), size in sorted(pairs.items())
            if size > 0]


def quoted(cell):
    if cell is None:
        return "?"
    return f'"{cell}"' if isinstance(cell, str) else repr(cell)


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def pair_bytes(path):
    return {(int(row["source_gpu"]), int(row["destination_gpu"])): int(row["payload_bytes"])
            for row in read_csv(path)}


def number(value, digits=3):
    """A number of a table, to so many significant digits; whole ones have commas."""
    if value is None:
        return "-"
    value = float(value)
    if value == 0:
        return "0"
    shown = float(f"{value:.{digits}g}")
    if abs(shown) >= 10 ** (digits - 1) or shown == int(shown):
        return f"{round(shown):,}"
    return f"{shown:.{digits}g}" if abs(shown) >= 1e-4 else f"{shown:.1e}"


def count(value):
    return f"{int(value):,}"


def percent(share, digits=1):
    """A share of 1 as a percentage without its sign."""
    return f"{100 * float(share):.{digits}f}"


def main(study):
    name = os.path.basename(sys.argv[0])[:-len(".py")].replace("_", "-")
    parser = argparse.ArgumentParser()
    for option in ("railyard", "out", "docs"):
        parser.add_argument("--" + option, required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", action="store_true")
    study(Bench(parser.parse_args(), name))
