#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Installs a build into a prefix, moves the prefix, and uses what is there.

usage: install_test.py CMAKE BUILD_DIR SOURCE_DIR COMPILER [CMAKE_OPTIONS_OF_CONSUMERS]
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from lacking import lack

CMAKE, BUILD, SOURCE, COMPILER, *FLAGS = sys.argv[1:]
ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


class Installed(unittest.TestCase):
    """Installed files, moved away from where they were installed."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        first = pathlib.Path(cls.directory.name, "first")
        subprocess.run([CMAKE, "--install", BUILD, "--prefix", first], check=True, umask=0o077,
                       stdout=subprocess.DEVNULL)
        cls.prefix = first.rename(first.with_name("second"))
        cls.scenarios = cls.prefix / "share/railyard/scenarios"

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()


class Program(Installed):
    def railyard(self, *arguments):
        run = subprocess.run([self.prefix / "bin/railyard", *arguments], env=ENVIRONMENT,
                             cwd=self.directory.name, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def test_everybody_can_read_what_was_installed_under_a_narrow_umask(self):
        for path in (self.prefix, *self.prefix.rglob("*")):
            needed = 0o555 if path.is_dir() else 0o444
            self.assertEqual(path.stat().st_mode & needed, needed, path)

    def test_lists_the_scenarios_it_was_installed_with(self):
        listed = self.railyard("list", "scenarios")
        self.assertIn("second/share/railyard/scenarios/h100_4x8_flap.textproto", listed)
        self.assertNotIn(SOURCE, listed)

    def test_no_scenario_is_missing_but_those_that_read_what_is_not_in_the_tree(self):
        installed = {path.name for path in self.scenarios.iterdir()}
        shipped = {path.name for path in pathlib.Path(SOURCE, "simulator/scenarios").iterdir()}
        self.assertEqual(shipped - installed, {"nccl_log_16ranks.textproto"})
        self.assertEqual(installed - shipped, set())

    def test_files_that_scenarios_name_are_installed(self):
        named = [path for path in sorted(self.scenarios.glob("*.textproto"))
                 if '"../' in path.read_text()]
        self.assertGreater(len(named), 10)
        for path in named:
            text = path.read_text()
            for word in text.split('"'):
                if word.startswith("../"):
                    self.assertTrue((self.scenarios / word).is_file(), f"{path.name}: {word}")
        self.railyard("validate", self.scenarios / "plan_gpt_2.textproto")
        self.railyard("validate", self.scenarios / "h100_4x8_flap.textproto")

    def test_prices_and_schemas_are_installed(self):
        share = self.prefix / "share/railyard"
        self.railyard("topo", "compare", "h100-4x8-rail-optimized", "h100-4x8-leaf-spine",
                      "--workload", self.scenarios / "ring_32_64mib.textproto", "--prices", share / "prices/public-2024.textproto")
        schemas = sorted((share / "schemas").rglob("*.proto"))
        self.assertGreater(len(schemas), 6)
        for path in schemas:
            for name in re.findall(r'^import "([^"]*)"', path.read_text(), re.MULTILINE):
                if not name.startswith("google/"):
                    self.assertTrue((share / "schemas" / name).is_file(), f"{path}: {name}")

    def test_runs_an_installed_scenario(self):
        self.railyard("run", self.scenarios / "fault_flap.textproto", "--quiet", "--out", "out")
        self.assertTrue(pathlib.Path(self.directory.name, "out/summary.json").is_file())

    def test_the_manual_page_has_the_help_of_every_command(self):
        page = (self.prefix / "share/man/man1/railyard.1").read_text().replace("\\-", "-")
        for command in ("run", "validate", "topo", "topo show", "trace cut", "help models"):
            self.assertIn(f".SH RAILYARD {command}\n", page)
            said = self.railyard(*command.split(), "--help")
            self.assertIn(said, page)
            self.assertLessEqual(max(map(len, said.splitlines())), 80)

    def test_the_manual_page_has_every_option_that_is_completed(self):
        page = (self.prefix / "share/man/man1/railyard.1").read_text().replace("\\-", "-")
        sections = dict(re.findall(r"\n\.SH RAILYARD ([^\n]*)\n(.*?)(?=\n\.SH )", page, re.DOTALL))
        branches = re.findall(r"'([a-z -]+) '\) words='([^']*)'", self.railyard("completion"))
        self.assertGreater(len(branches), 25)
        for command, words in branches:
            for word in words.split():
                self.assertIn(word, sections[command], command)

    def test_the_manual_page_has_statuses_files_and_where_to_read_on(self):
        page = (self.prefix / "share/man/man1/railyard.1").read_text()
        self.assertRegex(page, r"\n\.SH EXIT STATUS\n\.TP\n\.B 0\ndone\n\.TP\n\.B 1\n")
        for status in range(6):
            self.assertIn(f"\n.B {status}\n", page)
        self.assertIn("\n.SH FILES\n", page)
        self.assertIn("\n.SH SEE ALSO\n", page)
        man = subprocess.run(["man", "-l", self.prefix / "share/man/man1/railyard.1"], env=ENVIRONMENT,
                             capture_output=True, text=True, check=False)
        if man.returncode:
            lack(self, f"man does not work here: {man.stderr.strip()}")
        self.assertIn("EXIT STATUS", man.stdout)

    def test_the_reference_has_fields_attributes_and_figures(self):
        page = (self.prefix / "share/doc/railyard/reference.html").read_text()
        for name in ("Nccl.IB_TIMEOUT", "Nic::IbTimeout", "summary.json:collectives.stretch"):
            self.assertIn(f'id="{name}"', page)
        self.assertIn(self.railyard("--version").strip(), page)
        self.assertNotIn(SOURCE, page)

    def test_bash_completes_commands_and_options(self):
        script = self.prefix / "share/bash-completion/completions/railyard"

        def completed(*words):
            line = " ".join(f"'{word}'" for word in words)
            run = subprocess.run(
                ["bash", "-c", f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1};"
                 "_railyard; printf '%s\\n' \"${COMPREPLY[@]}\""],
                env=ENVIRONMENT, cwd="/", capture_output=True, text=True, check=True)
            self.assertEqual(run.stderr, "")
            return set(run.stdout.split())

        self.assertEqual(completed("railyard", "va"), {"validate", "var"})  # and the folder /var
        self.assertIn("--out", completed("railyard", "run", "file.textproto", "--o"))
        self.assertEqual(completed("railyard", "trace", "ret"), {"retarget"})
        # Files that are named like commands.
        self.assertEqual(completed("railyard", "run", "run", "--thr"), {"--threads"})
        self.assertEqual(completed("railyard", "run", "trace", "cut", "--thr"), {"--threads"})
        self.assertEqual(completed("railyard", "run", "x", "--mode", ""), {"packet", "flow"})
        self.assertNotIn("--seed", completed("railyard", "run", "x", "--out", ""))
        self.assertEqual(completed("railyard", "run", "x", "--mode", "=", "f"), {"flow"})
        self.assertEqual(completed("railyard", "run", "x", "--mode", "="), {"packet", "flow"})
        self.assertEqual(completed("railyard", "import", "--format", "goa"), {"goal"})
        self.assertEqual(completed("railyard", "perf", "--collective", "all_red"), {"all_reduce"})
        # Fabrics by name, or in files: "/" is where this runs.
        self.assertEqual(completed("railyard", "perf", "--fabric", "h100-4"),
                         {"h100-4x8-rail-optimized", "h100-4x8-rail-only", "h100-4x8-leaf-spine"})
        self.assertLess({"gb200-nvl72", "dgx-h100", "etc"}, completed("railyard", "perf", "--fabric", ""))
        self.assertIn("h100-4x8-rail-optimized", completed("railyard", "topo", "show", "h1"))


CONSUMER = """cmake_minimum_required(VERSION 3.25)
project(consumer CXX)
find_package(Railyard REQUIRED)
add_executable(consumer consumer.cc)
target_link_libraries(consumer Railyard::railyard)
add_executable(of_ns3 of_ns3.cc)
target_link_libraries(of_ns3 Railyard::railyard Ns3::applications)
"""


class WithoutLibrary(unittest.TestCase):
    """A build of the program alone, as scripts/demo makes it, is installed without the library."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def install(self, *words):
        run = subprocess.run([CMAKE, *words], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def test_the_program_is_a_component(self):
        self.install("--install", BUILD, "--component", "program", "--prefix", self.directory)
        for name in ("bin/railyard", "share/man/man1/railyard.1", "share/doc/railyard/reference.html"):
            self.assertTrue((self.directory / name).is_file(), name)
        for name in ("include", "lib", "share/railyard/examples"):
            self.assertFalse((self.directory / name).exists(), name)

    def test_headers_are_not_installed_without_the_archive(self):
        text = pathlib.Path(BUILD, "cmake/package/cmake_install.cmake").read_text()
        script = self.directory / "cmake_install.cmake"
        script.write_text(text.replace("librailyard.a", "not_built.a"))
        prefix = self.directory / "prefix"
        said = self.install(f"-DCMAKE_INSTALL_PREFIX={prefix}", "-P", script)
        self.assertIn("build the target railyard_archive for find_package(Railyard)", said)
        self.assertFalse(prefix.exists())


class Package(Installed):
    """A program elsewhere that knows the installation's prefix and nothing else."""

    def test_examples_link_the_installed_library_and_run(self):
        folder = pathlib.Path(self.directory.name, "consumer")
        folder.mkdir()
        (folder / "CMakeLists.txt").write_text(CONSUMER)
        examples = self.prefix / "share/railyard/examples"
        for name, example in (("consumer", "allreduce_with_flap"), ("of_ns3", "checkpoint_traffic")):
            (folder / f"{name}.cc").write_text((examples / f"{example}.cc").read_text())
        build = folder / "build"
        for command in ([CMAKE, "-S", folder, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
                         *FLAGS],
                        [CMAKE, "--build", build]):
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        run = subprocess.run([build / "consumer"], env=ENVIRONMENT, cwd=folder,
                             capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, r"stretch [1-9][0-9]*\.[0-9]\nflap: lost [1-9]")
        run = subprocess.run([build / "of_ns3", "--repeat=1", "--pcap=checkpoint"], env=ENVIRONMENT,
                             cwd=folder, capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, r"the checkpoint moved [1-9][0-9.]* GB/s")
        self.assertGreater((folder / "checkpoint-0-0.pcap").stat().st_size, 10_000)

    def test_no_installed_file_names_the_source_or_build_tree(self):
        for path in self.prefix.rglob("*"):
            contents = path.read_bytes() if path.is_file() else b""
            if b".debug_info" not in contents:  # for debuggers, which look for the source tree
                self.assertNotIn(SOURCE.encode(), contents, path.name)

    def test_public_headers_need_nothing_that_is_not_installed(self):
        test = pathlib.Path(SOURCE, "tests/api/public_headers_test.py")
        run = subprocess.run([sys.executable, "-B", test, COMPILER, self.prefix / "include",
                              self.prefix / "include/railyard"],
                             capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
