#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The generated reference is complete, and its mistakes are found.

usage: reference_test.py RAILYARD SOURCE_DIR
"""

import csv
import html.parser
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

RAILYARD, SOURCE = sys.argv[1:3]
sys.path.insert(0, str(pathlib.Path(SOURCE, "docs/reference")))
sys.path.insert(0, str(pathlib.Path(SOURCE, "tests/report")))

import browser  # noqa: E402
import reference  # noqa: E402

# Their results together have every key of summary.json.
SCENARIOS = ("h100_4x8_flap", "jobs_sharing_spine")
FABRIC = "fabric { rail_optimized { servers: 1 gpus_per_server: 2 } }"
OWN_SCENARIOS = {"measured": FABRIC + """
workload { trace: "measured.trace" }
""", "plan": FABRIC + """
workload {
  inline_plan {
    model { preset: "gpt-2" layers: 2 }
    parallelism { data: 2 }
    compute { accelerator: "h100-sxm" utilisation: 0.5 memory_utilisation: 0.8 }
    training { sequence: 64 micro_batch: 1 micro_batches: 1 iterations: 2 }
  }
}
""", "divided": """
fabric { rail_optimized { servers: 2 gpus_per_server: 2 } }
workload { program { collectives { kind: ALL_REDUCE bytes: "64KiB" } } }
"""}
# Two ranks of PyTorch's Flight Recorder, which measured one AllReduce.
FLIGHT_RECORDER = """{"version": "2.4", "rank": %d, "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
 "pg_status": {}, "entries": [{"frames": [], "record_id": 0, "pg_id": 0, "process_group": ["0", "default_pg"],
 "collective_seq_id": 1, "p2p_seq_id": 0, "op_id": 1, "profiling_name": "nccl:all_reduce",
 "time_created_ns": 1000, "duration_ms": 0.1, "input_sizes": [[1024]], "input_dtypes": ["Float"],
 "output_sizes": [[1024]], "output_dtypes": ["Float"], "state": "completed", "is_p2p": false,
 "retired": true, "timeout_ms": 600000}]}"""
PROTO = """
message Scenario {
  optional string name = 1;  // shown
  optional Part part = 2;
  enum Kind {
    KIND_UNSPECIFIED = 0;
    ONE = 1;
  }
  optional Kind kind = 3;    // one of these
}
message Part {
  // A whole
  // number.
  optional uint32 number = 1;
}
"""


def made(proto=PROTO, document="", models=""):
    return reference.read_reference({"a.proto": proto}, {"a.md": document}, models)


def mistakes_of(**texts):
    try:
        made(**texts)
    except reference.ReferenceError as error:
        return str(error).split("\n")
    return []


class Reading(unittest.TestCase):
    def test_comments_describe_fields_and_the_fields_of_their_message(self):
        lacking = "a.proto: Scenario.part has no description"
        self.assertEqual(mistakes_of(), [lacking])
        self.assertEqual(mistakes_of(proto=PROTO.replace("message Part", "// A part.\nmessage Part")), [])

    def test_tables_describe_fields_by_path(self):
        table = ("<!-- reference: fields Scenario -->\n| Field | Meaning | Default |\n|---|---|---|\n"
                 "| `part.number`, `name` | both | 1 |\n| `kind: ONE`, `part { number }` | the first | |\n")
        found = made(document=table)
        self.assertEqual([row.more for row in found.messages["Part"].fields["number"].rows],
                         ["Default: 1"])
        self.assertEqual([row.meaning for row in found.messages["Scenario"].fields["part"].rows],
                         ["the first"])
        self.assertEqual([row.meaning for row in found.enums["Scenario.Kind"].values["ONE"].rows],
                         ["the first"])
        self.assertIn("a.md:4: Scenario has no field part.nothing",
                      mistakes_of(document=table.replace("part.number", "part.nothing")))
        self.assertIn("a.md:5: no such value: kind: TWO",
                      mistakes_of(document=table.replace("ONE", "TWO")))

    def test_attributes_describe_the_fields_that_set_them(self):
        models = ("railyard::Part\n  Number = 7 (1 or more); in a scenario: part.number\n"
                  "    How many\n    there are.\n")
        number = made(proto=PROTO.replace("message Part", "// A part.\nmessage Part"),
                      models=models).messages["Part"].fields["number"]
        self.assertEqual([(a.help, a.value) for a in number.attributes],
                         [("How many there are.", "7 (1 or more)")])
        self.assertIn("attribute Part.Number has no description",
                      mistakes_of(models=models.split("    How")[0]))

    def test_names_of_keys(self):
        row = reference.Row("", ["faults[].added_ps.{queueing,other}", "name"], "", "")
        self.assertEqual(reference.full_names(row), ["faults[].added_ps.queueing",
                                                     "faults[].added_ps.other",
                                                     "faults[].added_ps.name"])


def keys_of(value, path=""):
    """The path of each value that is no object, and of each object."""
    found = {path} if path else set()
    if isinstance(value, dict):
        for key, inner in value.items():
            found |= keys_of(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for inner in value:
            found |= keys_of(inner, path + "[]")
    return found


class Completeness(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.reference = reference.read_sources(RAILYARD)  # what lacks a description is an exception
        cls.directory = tempfile.TemporaryDirectory()
        here = pathlib.Path(cls.directory.name)
        for rank in range(2):
            (here / f"dump_{rank}").write_text(FLIGHT_RECORDER % rank)
        cls.run_railyard("import", "--format", "flight-recorder", here / "dump_0", here / "dump_1",
                         "-o", here / "measured.trace", "--report", here / "report.json")
        scenarios = [pathlib.Path(SOURCE, f"simulator/scenarios/{name}.textproto")
                     for name in SCENARIOS]
        for name, text in OWN_SCENARIOS.items():
            scenarios.append(here / f"{name}.textproto")
            scenarios[-1].write_text(text)
        cls.results = []
        for number, scenario in enumerate(scenarios):
            cls.results.append(here / f"out{number}")
            cls.run_railyard("run", scenario, "--out", cls.results[-1], "--threads", "2", "--quiet",
                             "--no-report")

    @classmethod
    def run_railyard(cls, *words):
        run = subprocess.run([RAILYARD, *words], capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise AssertionError(run.stderr)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def compare_keys(self, file, occurring):
        documented, below = set(), {}
        for row in self.reference.keys[file]:
            for name in reference.full_names(row):
                documented.add(name)
                # Keys of an object, or of the objects in a list, that its row names in its text.
                for key in re.findall(r"`(\w+)(?:\[\])?`", row.meaning):
                    below.setdefault(name, set()).add(f"{name}.{key}")
        known = documented.union(*below.values())
        heads = {name[:i] for name in known for i in range(len(name)) if name[i] in ".["}
        lacking = {key.removesuffix("[]") for key in occurring
                   if key not in known and key not in heads and key.removesuffix("[]") not in known}
        self.assertEqual(sorted(lacking), [], f"keys of {file} without a row in a document")
        absent = {key for key in documented
                  if key not in occurring and key.removesuffix("[]") not in occurring}
        self.assertEqual(sorted(absent), [], f"keys in a document that no {file} has")

    def test_keys_of_results(self):
        occurring = set()
        for result in self.results:
            occurring |= keys_of(json.loads((result / "summary.json").read_text()))
        self.compare_keys("summary.json", occurring)

    def test_columns_of_results(self):
        for path in sorted(self.results[0].glob("*.csv")):
            with open(path, newline="") as file:
                columns = next(csv.reader(file))
            documented = [name for row in self.reference.columns[path.name]
                          for name in reference.full_names(row)]
            self.assertEqual(documented, columns, path.name)


class Tags(html.parser.HTMLParser):
    """Tags that do not match, and what is loaded from elsewhere."""

    VOID = ("meta", "input", "!doctype")

    def __init__(self):
        super().__init__()
        self.open, self.mistakes, self.ids, self.links = [], [], set(), set()

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag not in self.VOID:
            self.open.append(tag)
        if tag in ("script", "img", "link", "iframe") and {"src", "href"} & values.keys():
            self.mistakes.append(f"{tag} loads {values}")
        if "id" in values:
            if values["id"] in self.ids:
                self.mistakes.append(f"two have the id {values['id']}")
            self.ids.add(values["id"])
        if tag == "a":
            self.links.add(values["href"].removeprefix("#"))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.mistakes.append(f"</{tag}> at {self.getpos()}")


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.directory.name, "reference.html")
        script = pathlib.Path(SOURCE, "docs/reference/reference.py")
        subprocess.run([sys.executable, "-B", script, RAILYARD, "-o", cls.path], check=True)
        cls.text = cls.path.read_text()

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def test_is_well_formed_and_by_itself(self):
        tags = Tags()
        tags.feed(self.text)
        self.assertEqual(tags.mistakes, [])
        self.assertEqual(tags.open, [])
        self.assertEqual(tags.links - tags.ids, set(), "links to nothing")
        self.assertNotRegex(self.text, r"url\(|@import|https?://[^\s<]*\"")

    def test_every_field_attribute_and_figure_has_an_entry(self):
        tags = Tags()
        tags.feed(self.text)
        found = reference.read_sources(RAILYARD)
        fields = {f"{message.name}.{name}" for message in found.messages.values()
                  for name in message.fields}
        attributes = {f"{a.model}::{a.name}" for a in found.attributes}
        self.assertGreater(len(fields), 400)
        self.assertGreater(len(attributes), 50)
        self.assertLess({"FabricSimulation::StartTime", "FabricNetDevice::Mtu", "FabricLink::PacketLost"}, attributes)
        self.assertEqual((fields | attributes) - tags.ids, set())
        for rows in (*found.keys.values(), *found.columns.values()):
            for row in rows:
                self.assertIn(f"<code>{', '.join(row.names)}</code>", self.text)

    def test_search(self):
        try:
            chromium = browser.Browser()
        except FileNotFoundError as missing:
            if os.environ.get("CI"):
                raise
            self.skipTest(str(missing))
        shown = ("[...document.querySelectorAll('main tr')].filter(row => row.offsetParent !== null)"
                 ".map(row => row.id)")
        with chromium:
            chromium.open(self.path)
            everything = chromium.evaluate(shown)
            self.assertGreater(len(everything), 800)
            self.search(chromium, "NCCL.ib_timeout")
            self.assertEqual(chromium.evaluate(shown),
                             ["Nccl.IB_TIMEOUT", "Study.sets", "Nic::IbTimeout"])
            self.search(chromium, "summary stretch p999")
            self.assertIn("summary.json:collectives.stretch", chromium.evaluate(shown))
            self.search(chromium, "no such word")
            self.assertEqual(chromium.evaluate(shown), [])
            self.search(chromium, "")
            self.assertEqual(chromium.evaluate(shown), everything)
            self.assertEqual(chromium.problems, [])

    def search(self, chromium, words):
        chromium.evaluate(f"search.value = {json.dumps(words)}; search.dispatchEvent(new Event('input'))")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
