#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Each public header compiles alone, and reaches no header of ns-3 or of Protocol Buffers.

usage: public_headers_test.py COMPILER FOLDER... (FOLDER/railyard/ holds the headers; each FOLDER is
searched for what they include)
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

COMPILER, *FOLDERS = sys.argv[1:]
HEADERS = sorted(pathlib.Path(FOLDERS[0], "railyard").glob("*.h"))


class PublicHeaders(unittest.TestCase):
    def headers_reached(self, text):
        """The files that a source with this text includes, as the compiler names them."""
        with tempfile.NamedTemporaryFile("w", suffix=".cc") as source:
            source.write(text)
            source.flush()
            options = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-H"]
            options += [f"-I{folder}" for folder in FOLDERS]
            run = subprocess.run([COMPILER, *options, source.name], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            return [line.lstrip(".").strip() for line in run.stderr.splitlines()
                    if line.startswith(".")]

    def test_there_are_headers(self):
        self.assertIn("run.h", [header.name for header in HEADERS])

    def test_each_compiles_alone_without_ns3_and_protobuf(self):
        for header in HEADERS:
            with self.subTest(header=header.name):
                reached = self.headers_reached(f'#include "railyard/{header.name}"\n')
                self.assertIn("railyard/" + header.name, "\n".join(reached))
                for path in reached:
                    self.assertNotRegex(path, r"/ns3|/google/|\.pb\.h|/boost/|/fmt/")

    def test_a_header_of_protobuf_would_be_seen(self):
        reached = self.headers_reached("#include <google/protobuf/message.h>\n")
        self.assertTrue(any("/google/" in path for path in reached))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
