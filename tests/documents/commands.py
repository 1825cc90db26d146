#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Checks the commands that README.md and docs/ name without running them.

usage: commands.py RAILYARD SOURCE_DIR

- `railyard ...` in text, and every synopsis in a block: the command exists, and `--help` lists its options.
- A command in text that can be run as it stands, since it reads a file of the tree or has a --fabric, in a
  paragraph with figures that have units: a block ```console of the page runs it, so that figures are compared,
  or <!-- not run: REASON --> above the paragraph says why none does.
- A path below scripts/, and one of a Python program: the file is there and can be executed.
- A block without a language that runs programs of the tree, cmake or the like: a line
  <!-- run by FILE[, FILE][, REMARK] --> above it names files of the tree that have each of these programs,
  or <!-- not run: REASON --> says why none has.
- cmake and ctest: each preset is one of CMakePresets.json, each target is named in a CMakeLists.txt, and
  what -R selects is in the name of a test.

Decisions (docs/adr) tell of the past and are left out.
"""

import glob
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

from documents import is_synopsis, read_blocks

FENCE = re.compile(r"^\s*```.*?^\s*```[^\S\n]*$", re.M | re.S)
RUNNER = re.compile(r"<!-- (run by|not run:) (.+) -->")
# A program of the tree or of its builds, by its path, or one that builds.
PROGRAM = re.compile(r"(?<![\w/.-])(?:(?:scripts|tests|docs|build)/[\w./-]+|cmake|cpack|ctest|ninja|git clone)(?= |$)", re.M)
PARAGRAPH_END = re.compile(r"\s*(?:$|[-*] |\d+\. |\||#|<!--)")  # before a line of this form
FIGURE = re.compile(r"(?<![\w.])\d[\d,.]*\s?(?:%|(?:[pnum]?s|min|h|days?|[kKMGT]?i?B|[kMG]?bit|[MGT]b/s|[kMG]?Hz)(?![\w]))")
FOLDERS = ("analysis", "cmake", "simulator", "tests", "topologies", "traces", "workloads")
PRESET_KINDS = {"ctest": "testPresets", "cmake --build": "buildPresets", "cmake": "configurePresets"}


def place(name, text, offset):
    return f"{name}:{text.count(chr(10), 0, offset) + 1}"


def blanked(text, pattern):
    """The text with spaces in place of what matches, so that offsets stay."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), text)


def words_of(command):
    try:
        return shlex.split(command, comments=True)
    except ValueError:  # a quote that the text closes elsewhere
        return command.split()


class Help:
    """The output of `--help`, by command."""

    def __init__(self, program):
        self.program = program
        self.texts = {}

    def of(self, words):
        """None if there is no such command."""
        if words not in self.texts:
            done = subprocess.run([self.program, *words, "--help"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True, check=False)
            self.texts[words] = done.stdout if done.returncode == 0 else None
        return self.texts[words]


def railyard_errors(help_of, words):
    """Errors in a command's words, "railyard" first."""
    names = []
    for word in words[1:3]:
        if not re.fullmatch(r"[a-z]+", word):
            break
        names.append(word)
    text = help_of(tuple(names))
    if text is None and len(names) == 2:  # the second is an argument
        text = help_of(tuple(names[:1]))
    if text is None:
        return [f"there is no command railyard {' '.join(names)}"]
    options = [match.group(1) for match in (re.match(r"\[?(--?[a-zA-Z][\w-]*)", word) for word in words) if match]
    return [f"railyard {' '.join(names)} has no option {option}" for option in options
            if not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text)]


def named_railyard_commands(text):
    """(offset, command) of those in text and of synopses in blocks."""
    for match in re.finditer(r"`(railyard [^`]*)`", blanked(text, FENCE)):
        yield match.start(), match.group(1)
    for fence in FENCE.finditer(text):
        for match in re.finditer(r"^\s*(?:\$ )?(railyard .*)$", fence.group(0), re.M):
            yield fence.start() + match.start(1), match.group(1)


def paragraphs(text):
    """(offset, reason not to run its commands or None, text) of each outside of blocks."""
    at = offset = 0
    reason, lines = None, []
    for line in blanked(text, FENCE).splitlines(keepends=True) + ["\n"]:
        if PARAGRAPH_END.match(line) and lines:
            yield at, reason, "".join(lines)
            reason, lines = None, []
        runner = RUNNER.fullmatch(line.strip())
        if runner:
            reason = runner.group(2) if runner.group(1) == "not run:" else None
        elif not line.strip():
            reason = None
        else:
            at = at if lines else offset
            lines.append(line)
        offset += len(line)


def unchecked_figures(source, name, text):
    """Commands beside figures that no block runs."""
    blocks, _ = read_blocks(name, text)
    shown = [set(words_of(command.text)) for block in blocks if block.shows_output for command in block.commands]
    errors = []
    for offset, reason, paragraph in paragraphs(text):
        if reason is not None or not FIGURE.search(re.sub(r"`[^`]*`", "``", paragraph)):
            continue
        for match in re.finditer(r"`(railyard [^`]*)`", paragraph):
            command = " ".join(match.group(1).split())
            words = words_of(command)
            is_complete = "--fabric" in words[:-1] or any(
                os.path.isfile(os.path.join(source, word)) for word in words[1:])
            if not is_complete or "…" in command or "..." in command or is_synopsis(command):
                continue
            if not any(set(words) <= others for others in shown):
                errors.append(f"{place(name, text, offset + match.start())}: no block ```console runs {command}, "
                              "which figures stand beside (or <!-- not run: REASON --> above the paragraph)")
    return errors


def blocks_without_language(text):
    """(number of its first line, runner, lines) of each; the runner is the match of the line above, or None."""
    above, start, is_plain, lines = "", 0, False, []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith("```"):
            lines.append(line)
        elif start == 0:
            above, start, is_plain, lines = lines[-1] if lines else "", number, line.strip() == "```", []
        else:
            if is_plain:
                yield start, RUNNER.fullmatch(above), lines
            start, lines = 0, []


def unrun_errors(source, name, text):
    """Blocks of commands that nothing runs."""
    errors = []
    for number, runner, lines in blocks_without_language(text):
        programs = sorted({program for line in lines for program in PROGRAM.findall(line.split("#")[0])})
        if not programs and runner:
            errors.append(f"{name}:{number}: there is no program in the block")
        elif programs and not runner:
            errors.append(f"{name}:{number}: nothing runs {programs[0]} "
                          "(expected <!-- run by FILE --> or <!-- not run: REASON --> above)")
        elif programs and runner.group(1) == "run by":
            paths = [pathlib.Path(source, path) for path in runner.group(2).split(", ")]
            runners = "\n".join(path.read_text(encoding="utf-8") for path in paths if path.is_file()).lower()
            errors += [f"{name}:{number}: {program} is not run by {runner.group(2)}" for program in programs
                       if os.path.basename(program) not in runners]
    return errors


class Builds:
    """Presets, targets and tests of the source tree."""

    def __init__(self, source):
        with open(os.path.join(source, "CMakePresets.json"), encoding="utf-8") as file:
            presets = json.load(file)
        self.presets = {kind: {preset["name"] for preset in presets[kind] if not preset.get("hidden")}
                        for kind in PRESET_KINDS.values()}
        self.lists = self.read(source, "CMakeLists.txt") + self.read(source, "*.cmake")
        sources = self.read(source, "*.cc", ("tests",))
        self.tests = [f"{suite}.{case}" for suite, case in
                      re.findall(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)", sources)]
        self.tests += re.findall(r"\bINSTANTIATE_TEST_SUITE_P\(\s*(\w+)", sources)
        self.tests += re.findall(r"\badd_test\(NAME ([\w.]+)", self.lists)

    @staticmethod
    def read(source, pattern, folders=FOLDERS):
        paths = [path for folder in folders for path in pathlib.Path(source, folder).rglob(pattern)]
        return "\n".join(path.read_text(encoding="utf-8") for path in sorted(paths))

    def errors(self, command):
        """Errors in a command of cmake or ctest."""
        kind = next(kind for program, kind in PRESET_KINDS.items() if command.startswith(program))
        errors = []
        for option, value in re.findall(r"(--preset|--target|-R)[ =](\S+)", command):
            value = value.strip("'\"")
            if option == "--preset" and value not in self.presets[kind]:
                errors.append(f"{value} is none of the {kind} of CMakePresets.json")
            if option == "--target" and not re.search(rf"\b{re.escape(value)}\b", self.lists):
                errors.append(f"no CMakeLists.txt names the target {value}")
            if option == "-R" and not any(re.search(value, test) for test in self.tests):
                errors.append(f"no test has a name that {value} matches")
        return errors


def check(source, documents, help_of):
    """All errors as lines."""
    builds = Builds(source)
    errors = []
    for name, text in documents.items():
        for offset, command in named_railyard_commands(text):
            errors += [f"{place(name, text, offset)}: {error}"
                       for error in railyard_errors(help_of, words_of(command))]
        errors += unrun_errors(source, name, text)
        errors += unchecked_figures(source, name, text)
        for match in re.finditer(r"(?<![\w/.-])(?:cmake --build|cmake|ctest) -[^`\n&|#]*", text):
            errors += [f"{place(name, text, match.start())}: {error}"
                       for error in builds.errors(match.group(0))]
        for match in re.finditer(r"(?<![\w/.-])scripts/[\w-]+", text):
            if not os.access(os.path.join(source, match.group(0)), os.X_OK):
                errors.append(f"{place(name, text, match.start())}: there is no script {match.group(0)}")
        for match in re.finditer(r"(?<![\w/.-])(?:tests|docs|analysis|workloads|topologies|traces)/[\w/-]+\.py\b", text):
            path = pathlib.Path(source, match.group(0))
            if not path.is_file() or (path.read_text().startswith("#!") and not os.access(path, os.X_OK)):
                errors.append(f"{place(name, text, match.start())}: {match.group(0)} cannot be executed")
    return errors


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program, source = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    documents = {}
    for path in [os.path.join(source, "README.md"),
                 *sorted(glob.glob(os.path.join(source, "docs", "**", "*.md"), recursive=True))]:
        name = os.path.relpath(path, source)
        if not name.startswith("docs/adr/"):
            with open(path, encoding="utf-8") as file:
                documents[name] = file.read()
    helps = Help(program)
    errors = check(source, documents, helps.of)
    for error in errors:
        print(error)
    print(f"{len(helps.texts)} commands of railyard looked up in {len(documents)} documents, {len(errors)} errors")
    return 1 if errors or not helps.texts else 0


if __name__ == "__main__":
    sys.exit(main())
