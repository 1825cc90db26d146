#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Configures, builds and runs from a source tree that can only be read, as a user without a home.

usage: read_only_test.py CMAKE GENERATOR SOURCE_DIR BUILD_DIR
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from lacking import lack

CMAKE, GENERATOR, SOURCE, BUILD = sys.argv[1:]
NOBODY = "65534"
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
             "env", "-i", "PATH=/usr/bin:/bin")
# The directory, and the commands that see the source tree there.
MOUNT = """mount --bind "$0" "$1" && mount -o remount,bind,ro "$1" && cd "$1" && shift && exec "$@" """


class ReadOnlyTree(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            lack(self, "only root can make a tree that root cannot write")
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.here = pathlib.Path(scratch.name)
        self.here.chmod(0o755)
        self.tree = self.here / "tree"
        self.tree.mkdir()
        self.work = self.here / "work"
        self.work.mkdir()
        os.chown(self.work, int(NOBODY), int(NOBODY))
        # Not in a container without the right to, nor below a root that is no mount point.
        said = subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True, check=False)
        if said.returncode or self.within("touch", "new")[0] == 0:
            lack(self, f"no file system can be mounted here: {said.stderr.strip()}")

    def within(self, *words):
        """(exit status, what was said) of a command of nobody's in the tree."""
        run = subprocess.run(["unshare", "--mount", "sh", "-c", MOUNT, SOURCE, self.tree, *AS_NOBODY, *words],
                             capture_output=True, text=True, check=False)
        return run.returncode, run.stdout + run.stderr

    def expect_done(self, *words):
        status, said = self.within(*words)
        self.assertEqual(status, 0, said)

    def test_it_is_built_elsewhere(self):
        echarts = sorted(self.tree.joinpath(self.relative_build()).glob("echarts-*.tgz"))
        self.expect_done(CMAKE, "-G", GENERATOR, "-S", ".", "-B", self.work / "build",
                         *(f"-DRAILYARD_ECHARTS={path}" for path in echarts))
        self.expect_done(CMAKE, "--build", self.work / "build", "--target", "railyard_platforms")

    def test_a_scenario_runs(self):
        self.expect_done(self.tree / self.relative_build() / "bin/railyard", "run",
                         "simulator/scenarios/fault_flap.textproto", "--quiet", "--out", self.work / "out")
        self.assertTrue((self.work / "out/summary.json").is_file())

    @staticmethod
    def relative_build():
        return os.path.relpath(BUILD, SOURCE)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
