#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Each house rule finds what it bans, and nothing in a tree that keeps the rules."""

import tempfile
import unittest
from pathlib import Path

import tidy

SPDX = "// SPDX-License-Identifier: GPL-2.0-only\n"
CMAKE_SPDX = "# SPDX-License-Identifier: GPL-2.0-only\n"
CLEAN = {
    "CMakeLists.txt": CMAKE_SPDX + "add_subdirectory(traces)\nadd_subdirectory(analysis)\n",
    "README.md": "# Title\n[results](docs/results.md#file-one) [web](https://example.org/x)\n",
    "docs/results.md": "# Results\n## File one!\n```\n[not a link](nowhere)\n```\n[up](../README.md)\n",
    "docs/life-of-an-allreduce.md":
        "| # | File |\n|---|---|\n| 1 | `traces/log.cc` · `Log::Read` → `log.h` · `Read()` |\n",
    "traces/CMakeLists.txt": CMAKE_SPDX + "railyard_library(traces SOURCES log.cc LINKS fmt::fmt)\n",
    "traces/log.h": SPDX + "int Read();\n",
    "traces/log.cc": SPDX + '#include "traces/log.h"\n#include <vector>\n#include <fmt/format.h>\n'
                            "int Read() { snprintf(a, b); fmt::print(stderr, c); }\n",
    "analysis/CMakeLists.txt":
        CMAKE_SPDX + "railyard_library(analysis\n  SOURCES a.cc\n  LINKS railyard::traces)\n",
    "analysis/a.cc": SPDX + '#include "traces/log.h"\n',
    "simulator/cli/main.cc": SPDX + "int main() { std::cout << 1; }\n",
    "scripts/test": "#!/usr/bin/env bash\n" + CMAKE_SPDX,
}


class TidyTest(unittest.TestCase):
    def findings(self, **changes):
        """Findings in the clean tree after writing `changes` (path → text; None removes)."""
        files = dict(CLEAN)
        files.update(changes)
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                if text is not None:
                    path = Path(root) / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text, encoding="utf-8")
            return tidy.check_tree(root)

    def expect(self, path, text, finding):
        self.assertEqual(self.findings(**{path: text}), [finding])

    def test_a_tree_that_keeps_the_rules_has_no_findings(self):
        self.assertEqual(self.findings(), [])

    def test_umbrella_headers(self):
        for header in ("core-module.h", "udp-client.h"):
            self.expect("tests/x.cc", SPDX + f"#include <ns3/{header}>\n",
                        f"tests/x.cc:2: error: ns3/{header} is banned, "
                        "use the header of the one class that is needed")

    def test_an_include_against_the_layers(self):
        found = self.findings(**{"traces/log.h": SPDX + 'int Read();\n#include "analysis/a.h"\n',
                                 "analysis/a.h": SPDX})
        self.assertEqual(found, ["traces/log.h:3: error: analysis/a.h is banned in the library "
                                 "traces, use only what its LINKS name (railyard::analysis is not "
                                 "among them)"])

    def test_an_include_of_an_outside_library_that_is_not_linked(self):
        self.expect("analysis/a.cc", SPDX + "#include <ns3/simulator.h>\n",
                    "analysis/a.cc:2: error: ns3/simulator.h is banned in the library analysis, use "
                    "only what its LINKS name (Ns3::core is not among them)")
        self.expect("analysis/a.cc", SPDX + '#include "traces/trace/trace.pb.h"\n',
                    "analysis/a.cc:2: error: traces/trace/trace.pb.h is banned in the library analysis, "
                    "use only what its LINKS name (railyard_protos is not among them)")

    def test_an_include_that_does_not_exist(self):
        self.expect("analysis/a.cc", SPDX + '#include "a.h"\n',
                    "analysis/a.cc:2: error: the include of a.h, which does not exist, is banned, "
                    "use a path from the project's root")

    def test_two_libraries_in_a_folder(self):
        self.expect("analysis/CMakeLists.txt",
                    CLEAN["analysis/CMakeLists.txt"] + "railyard_library(b LINKS railyard::traces)\n",
                    "analysis/CMakeLists.txt:1: error: a second library in a folder is banned, use a "
                    "folder per library")

    def test_a_link_to_a_library_that_is_added_later(self):
        self.expect("CMakeLists.txt",
                    CMAKE_SPDX + "add_subdirectory(analysis)\nadd_subdirectory(traces)\n",
                    "CMakeLists.txt:2: error: railyard::traces is banned in the LINKS of analysis, "
                    "use only libraries that are added above it")

    def test_an_include_that_closes_a_cycle_of_folders(self):
        files = {"traces/a/a.h": SPDX + '#include "traces/b/b.h"\n',
                 "traces/b/b.h": SPDX + '#include "traces/c/c.h"\n',
                 "traces/c/c.h": SPDX}
        self.assertEqual(self.findings(**files), [])
        files["traces/c/c.cc"] = SPDX + "int C();\n" + '#include "traces/a/a.h"\n'
        closed = [("traces/a/a.h:2", "traces/b/b.h"), ("traces/b/b.h:2", "traces/c/c.h"),
                  ("traces/c/c.cc:3", "traces/a/a.h")]
        self.assertEqual(self.findings(**files),
                         [f"{place}: error: the include of {header}, whose folder includes this "
                          "one's, is banned, use a folder that both can include"
                          for place, header in closed])

    def test_standard_output(self):
        for statement in ("std::cout", "printf", "std::printf", "puts", "fmt::print"):
            text = "std::cout << 1;" if statement == "std::cout" else f'{statement}("x");'
            self.expect("analysis/a.cc", SPDX + text + "\n",
                        f"analysis/a.cc:2: error: {statement} is banned outside simulator/cli, use a "
                        "returned string or Diagnostics")

    def test_standard_output_in_a_comment_is_none(self):
        self.assertEqual(self.findings(**{"analysis/a.cc": SPDX + "// not std::cout\n"}), [])

    def test_licence_lines(self):
        rest = ("error: a source without its licence is banned, use SPDX-License-Identifier: "
                "GPL-2.0-only in a comment as its first line")
        self.expect("analysis/a.cc", "\n" + SPDX, f"analysis/a.cc:1: {rest}")
        self.expect("scripts/test", "#!/bin/sh\nexit\n", f"scripts/test:2: {rest}")
        self.expect("tests/empty.h", "", f"tests/empty.h:1: {rest}")

    def test_unfinished_work(self):
        mark = "TO" + "DO"
        self.expect("README.md", f"# T\n{mark}: more\n",
                    f"README.md:2: error: {mark} is banned, use an issue, or a located error that "
                    "says what is not supported")

    def test_a_file_name_that_is_there_twice(self):
        lines = "// SPDX-License-Identifier: GPL-2.0-only\n"
        self.expect("traces/second/log.cc", lines,
                    "traces/second/log.cc:1: error: a second log.cc beside traces/log.cc is banned, "
                    "use a name that no other file has")

    def test_a_comment_that_is_no_sentence(self):
        self.expect("traces/clause.cc",
                    "// SPDX-License-Identifier: GPL-2.0-only\n// What a log holds.\nint a;\n",
                    "traces/clause.cc:2: error: a sentence that begins with What is banned, use a "
                    "sentence with a subject and a verb")
        self.expect("traces/clause.cc",
                    "// SPDX-License-Identifier: GPL-2.0-only\n// Reads logs. Of two the first.\nint a;\n",
                    "traces/clause.cc:2: error: a sentence that begins with Of is banned, use a "
                    "sentence with a subject and a verb")

    def test_comments_of_every_language_are_read(self):
        use = "is banned, use a sentence with a subject and a verb"
        for path, text in (("traces/t.proto", SPDX + "// What a log holds.\n"),
                           ("analysis/page/x.js", SPDX + "  // What a log holds.\n"),
                           ("cmake/x.cmake", CMAKE_SPDX + "# What a log holds.\n"),
                           ("tests/x.py", CMAKE_SPDX + "# What a log holds.\n"),
                           ("tests/x.py", CMAKE_SPDX + '"""What a log holds."""\n'),
                           ("tests/x.py", CMAKE_SPDX + 'def f():\n    """What a log holds."""\n')):
            line = text.count("\n")
            self.expect(path, text, f"{path}:{line}: error: a sentence that begins with What {use}")
        self.expect("scripts/run", "#!/bin/sh\n" + CMAKE_SPDX + "# What a log holds.\n",
                    f"scripts/run:3: error: a sentence that begins with What {use}")

    def test_texts_that_are_no_comments_may_begin_with_what(self):
        files = {"docs/page.md": "# What a log holds\n",
                 "tests/x.py": CMAKE_SPDX + 'text = f(\n    """What a log holds.""")\n',
                 "scripts/words": "# What a log holds.\n"}
        self.assertEqual(self.findings(**files), [])

    def test_a_field_whose_remark_does_not_name_it(self):
        for remark, word in (("of a checkpoint", "of"), ("that differ", "that"), ("What it is", "What")):
            self.expect("traces/t.proto",
                        SPDX + f"message M {{\n  optional string save = 2;   // {remark}\n}}\n",
                        f"traces/t.proto:3: error: a field's remark that begins with {word} is banned, "
                        "use a noun that names what the field is")
        good = "message M {\n  optional string save = 2;  // format of a file\n  A = 1;  // as B\n}\n"
        self.assertEqual(self.findings(**{"traces/t.proto": SPDX + good}), [])

    def test_a_help_text_that_names_nothing(self):
        use = "use a noun that names what the value is, or a verb"
        for call, word in (('.AddAttribute("Seed", "Of the draws.", 1)', "Of"),
                           ('add_option("--format", format_,\n  "Of the "\n  "files")', "Of"),
                           ('add_flag("--dry", dry_, "Whether it runs")', "Whether"),
                           ('add("--to", to_, "Likewise")', "Likewise")):
            line = 3 if "\n" in call else 2
            self.expect("traces/command.cc", SPDX + call + ";\n",
                        f"traces/command.cc:{line}: error: a help text that begins with {word} is banned, {use}")
        good = 'add_option("--format", format_, "Format of the files (default: What)");\n'
        self.assertEqual(self.findings(**{"traces/command.cc": SPDX + good}), [])

    def test_a_heading_that_clang_format_has_broken(self):
        self.expect("traces/command.cc", SPDX + "// --- Text\n  // ------\n",
                    "traces/command.cc:3: error: a line of dashes without a heading is banned, use // --- "
                    "HEADING and dashes, in one line of at most 100 columns")
        self.assertEqual(self.findings(**{"traces/command.cc": SPDX + "// --- Text ------\n"}), [])

    def test_a_comment_that_names_no_file(self):
        self.expect("traces/clause.cc",
                    "// SPDX-License-Identifier: GPL-2.0-only\n// See traces/gone.h.\nint a;\n",
                    "traces/clause.cc:2: error: a comment that names traces/gone.h, which does not "
                    "exist, is banned, use the path of a file from the project's root")

    def test_shown_code(self):
        self.expect("README.md", "```cpp\nint a;\n```\n",
                    "README.md:1: error: C++ that no source of the tree has is banned, use <!-- lines "
                    "of PATH --> above the block, and lines of that file")
        self.expect("README.md", "<!-- lines of traces/log.h -->\n```cpp\nint gone;\n```\n",
                    "README.md:3: error: code that traces/log.h does not have here is banned, use "
                    "the file's lines, in their order")

    def test_links(self):
        self.expect("README.md", "[x](docs/gone.md)\n",
                    "README.md:1: error: a link to docs/gone.md, which does not exist, is banned, "
                    "use a path relative to this page")
        self.expect("README.md", "[x](docs/results.md#gone)\n",
                    "README.md:1: error: a link to docs/results.md#gone is banned, use a heading "
                    "that results.md has")

    def test_anchors_are_as_on_github(self):
        headings = ["## The end, of `2`", "## [adr](adr/x.md) 7", "```", "# no heading", "```"]
        self.assertEqual(list(tidy.anchors_of(headings)), ["the-end-of-2", "adr-7"])

    def test_the_life_of_an_allreduce_names_what_exists(self):
        page = tidy.LIFE_OF_AN_ALLREDUCE
        self.expect(page, "| 1 | `traces/gone.cc` |\n",
                    f"{page}:1: error: traces/gone.cc, which does not exist, is banned, use the "
                    "file's path from the project's root")
        self.expect(page, "| 1 | `traces/log.cc` · `Log::Write` |\n",
                    f"{page}:1: error: Log::Write, which is not in traces/log.cc, is banned, use a "
                    "function that is there")
        self.expect(page, None,
                    f"{page}:1: error: a tree without this page is banned, use it to show a reader "
                    "the way of one AllReduce")

    def test_decisions_are_listed_with_their_status(self):
        page = "docs/adr/0001-order.md"
        decision = "# 0001. The order of events\n\nStatus: accepted\n"
        row = "| [0001](0001-order.md) | The order of events | accepted |"
        self.assertEqual(self.findings(**{page: decision, "docs/adr/README.md": row + "\n"}), [])
        self.expect(page, decision,
                    f"{page}:1: error: a decision that docs/adr/README.md does not list as it is is "
                    f"banned, use the row {row}")
        self.expect(page, "# 0001. The order of events\n",
                    f"{page}:1: error: a decision without its number, title and status is banned, "
                    'use "# 0001. TITLE" and, two lines below, "Status: accepted"')

    def test_decisions_that_amend_each_other_say_so_both(self):
        pages = {"docs/adr/README.md": ""}
        for number, status in (("0001", "accepted; amended by [0002](0002-b.md) and 0003"),
                               ("0002", "accepted; amends 0001 (names), 0003 (files)"),
                               ("0003", "accepted; amended by 0002")):
            pages[f"docs/adr/{number}-{'abc'[int(number) - 1]}.md"] = f"# {number}. T\n\nStatus: {status}\n"
            said = status.replace("[0002](0002-b.md)", "0002")
            pages["docs/adr/README.md"] += f"| [{number}]({number}-{'abc'[int(number) - 1]}.md) | T | {said} |\n"
        self.assertEqual(self.findings(**pages),
                         ["docs/adr/0003-c.md:3: error: a decision without what docs/adr/0001-a.md says of it is "
                          'banned, use "amends 0001" in its status'])


if __name__ == "__main__":
    unittest.main()
