#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Railyard builds in contrib/ of ns-3's source trees, as docs/ns3.md shows, and an example runs there.

usage: ns3_source_test.py SOURCE_DIR [ARCHIVE...]

ARCHIVE is a release of ns-3, ns-allinone-X.tar.bz2 by whatever name. Without one, two releases are
downloaded, as the archives of Debian 12 and Ubuntu 24.04 have them. A tree takes as long to build as
Railyard and a part of ns-3. What is committed in SOURCE_DIR is built.
"""

import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
import urllib.request

SOURCE = pathlib.Path(sys.argv[1]).resolve()
ARCHIVES = sys.argv[2:]
# SHA-256 as Debian's and Ubuntu's Sources.xz name it.
RELEASES = (
    ("http://deb.debian.org/debian/pool/main/n/ns3/ns3_3.37.orig.tar.bz2",
     "dfa5ca1994ff3dbe1d4b23cef54e05e6079f5707a2ed6055f717bdd5b458c38d"),
    ("http://archive.ubuntu.com/ubuntu/pool/universe/n/ns3/ns3_3.41.orig.tar.bz2",
     "ce6a2c6a91d6979999da0a889cf0aa5db8798f387edf20672af9bcd966277aa9"),
)


def program_list():
    """The CMakeLists.txt that docs/ns3.md shows."""
    page = (SOURCE / "docs/ns3.md").read_text(encoding="utf-8")
    return re.search(r"^```\n(build_exec\(.*?)^```$", page, re.M | re.S).group(1)


class SourceTree(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.folder = pathlib.Path(self.directory.name)

    def run_in(self, folder, *command):
        done = subprocess.run(command, cwd=folder, env={**os.environ, "MAKEFLAGS": f"-j{os.cpu_count()}"},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-5000:])
        return done.stdout

    def check(self, archive):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        with tarfile.open(archive) as tar:
            tar.extractall(folder)
        tree = next(folder.glob("*/ns-3.[0-9]*"))
        before = {path.relative_to(tree): path.stat().st_size for path in tree.rglob("*") if path.is_file()}
        self.run_in(tree, *"git clone -q".split(), str(SOURCE), "contrib/railyard")
        program = tree / "scratch/checkpoint"
        program.mkdir()
        (program / "CMakeLists.txt").write_text(program_list(), encoding="utf-8")
        (program / "checkpoint_traffic.cc").write_bytes((SOURCE / "docs/examples/checkpoint_traffic.cc").read_bytes())
        self.run_in(tree, "./ns3", "configure", "--build-profile=release", "--enable-modules=railyard")
        said = self.run_in(tree, "./ns3", "run", "checkpoint_traffic")
        self.assertRegex(said, r"with a checkpoint\n  AllReduce of 67108864 bytes: [1-9][0-9]* us")
        self.assertEqual({name: (tree / name).stat().st_size for name in before}, before, "the tree was changed")

    def test_archives(self):
        for archive in ARCHIVES:
            with self.subTest(archive=archive):
                self.check(archive)

    @unittest.skipIf(ARCHIVES, "other archives are given")
    def test_releases(self):
        for url, digest in RELEASES:
            with self.subTest(url=url):
                archive = self.folder / "ns3.tar.bz2"
                urllib.request.urlretrieve(url, archive)
                self.assertEqual(hashlib.sha256(archive.read_bytes()).hexdigest(), digest)
                self.check(archive)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
