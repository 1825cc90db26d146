#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Makes the Debian package, installs it below a root of its own, runs it there and removes it.

usage: debian_test.py CPACK BUILD_DIR
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

CPACK, BUILD = sys.argv[1:]
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


def output_of(*command):
    run = subprocess.run(command, env=ENVIRONMENT, cwd="/", capture_output=True, text=True,
                         check=False)
    if run.returncode != 0:
        raise AssertionError(f"{command[0]} ended {run.returncode}: {run.stdout}{run.stderr}")
    return run.stdout


class DebianPackage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        packages = pathlib.Path(cls.directory.name, "packages")
        output_of(CPACK, "--config", f"{BUILD}/CPackConfig.cmake", "-B", packages)
        (cls.package,) = packages.glob("*.deb")
        cls.root = pathlib.Path(cls.directory.name, "root")
        cls.admin = cls.root / "var/lib/dpkg"
        for folder in (cls.admin / "updates", cls.admin / "info", cls.root / "tmp"):
            folder.mkdir(parents=True)
        (cls.admin / "status").touch()

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def dpkg(self, *arguments):
        # The packages it depends on are those of the system, of which this root knows nothing.
        output_of("dpkg", f"--root={self.root}", "--force-not-root", "--force-depends",
                  "--log=/dev/null", *arguments)

    def files(self):
        return {path for path in self.root.rglob("*")
                if path.is_file() and self.admin not in path.parents}

    def test_installs_runs_and_is_removed_without_a_trace(self):
        before = self.files()
        self.dpkg("--install", self.package)
        program = self.root / "usr/bin/railyard"
        self.assertRegex(output_of(program, "--version"), r"^railyard [0-9.]+ \(")
        scenario = self.root / "usr/share/railyard/scenarios/h100_4x8_flap.textproto"
        out = pathlib.Path(self.directory.name, "out")
        output_of(program, "run", scenario, "--out", out, "--quiet")
        self.assertTrue((out / "summary.json").is_file())
        self.assertIn("GNU GENERAL PUBLIC LICENSE",
                      (self.root / "usr/share/doc/railyard/copyright").read_text())
        if b"Apache Software Foundation" in program.read_bytes():  # it carries ECharts
            for name in ("echarts.LICENSE", "echarts.NOTICE"):
                self.assertIn("Apache", (self.root / "usr/share/doc/railyard" / name).read_text())
        self.dpkg("--purge", "railyard")
        self.assertEqual(self.files(), before)

    def test_depends_on_the_libraries_the_program_is_linked_with(self):
        depends = output_of("dpkg-deb", "--field", self.package, "Depends")
        for library in ("libc6", "libstdc++6", "libns3.37", "libprotobuf32", "libsqlite3-0"):
            self.assertRegex(depends, rf"(^|, ){re.escape(library)}( |,|$)")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
