# SPDX-License-Identifier: GPL-2.0-only
"""A run of a scenario, and what it wrote."""

import csv
import json
import pathlib
import re
import sqlite3
import subprocess


class Result:
    """The files of a result directory."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.database = sqlite3.connect(self.directory / "results.sqlite")
        self.summary = json.loads((self.directory / "summary.json").read_text())
        self.page = self.directory / "report.html"

    def query(self, sql):
        return self.database.execute(sql).fetchall()

    def csv(self, name):
        with open(self.directory / name, newline="") as file:
            return list(csv.DictReader(file))

    def report(self):
        """The data that the page draws."""
        text = self.page.read_text()
        data = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.S)
        return json.loads(data.group(1))

    def chart(self, name):
        """The tables of a chart, as lists of rows; None where the page has no such chart."""
        for chart in self.report()["charts"]:
            if chart["id"] == name:
                return {name: rows_of(table) for name, table in chart["tables"].items()}
        return None


def rows_of(table):
    columns = {name: [values["texts"][i] for i in values["at"]] if isinstance(values, dict)
               else values for name, values in table.items()}
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


def run(railyard, scenario, directory, *options):
    """`scenario`: a file, or the text of one, which is written beside `directory`."""
    if "\n" in str(scenario):
        path = pathlib.Path(f"{directory}.textproto")
        path.write_text(scenario)
        scenario = path
    done = subprocess.run([railyard, "run", scenario, "--out", directory, "--quiet", *options],
                          capture_output=True, text=True)
    if done.returncode not in (0, 3, 4):
        raise AssertionError(f"exit status {done.returncode}: {done.stderr}")
    return Result(directory)
