#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Compares output shown in README.md and docs/ with what the program prints.

usage: documents.py RAILYARD SOURCE_DIR fast|slow

A block ```console holds lines "$ railyard ..." with what they print (standard output and error)
beneath, and lines "$ cat FILE" with the file that later commands of the block read. A block in a list is
indented, its lines as its fence. Blocks of a document share no files. A line "..." stands for any lines, "..." within a line for any text. What
depends on the machine (run time, CPU time, memory) is masked on both sides, and lines of progress are
left out. Commands run in a directory that looks like the clone. ```console slow is left to "slow".

A block ```sh holds lines "railyard ..." without output: each is run and must end with exit status 0, or
with N where its comment says "exit status N". A line <!-- given: COMMAND; COMMAND --> above the block makes
the files that it reads, by "cp FILE NAME" or "railyard ...". What needs the reference data
(../shared/reference) finds it through RAILYARD_REFERENCE_DIR. "slow" as above.

In blocks of both kinds a command may be 'sqlite3 FILE "QUERY"', which Python's sqlite3 answers, or
"tshark ...", which is left out where tshark is not installed. Without output beneath it, it must print a line.

A block ```python is one program, which must print a line and end with exit status 0. It is left out where what it
imports is not installed; with CI=true that is an error.

A line "$ railyard" anywhere but in a block ```console, one with nothing beneath, and a line "railyard ..." in any
other block are errors, but for a synopsis, which has a word in capitals or in brackets.
"""

import contextlib
import glob
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile

MACHINE = [(re.compile(pattern), text) for pattern, text in (
    (r"[\d.,]+ (?:ns|us|ms|s|min|h) of run time", "TIME of run time"),
    (r"CPU [\d.,]+ (?:us|ms|s|min|h)\b", "CPU TIME"),
    (r"fault-free run [\d.,]+ (?:us|ms|s|min|h) more", "fault-free run TIME more"),
    (r"memory [\d.,]+ [KMG]?i?B", "memory SIZE"))]
PROGRAMS = ("railyard", "sqlite3", "tshark")
PROGRESS = re.compile(r"railyard: simulated .* in .* % done.*hops/s.*")  # of a run of ten seconds or more
LINKED = ("analysis", "docs", "simulator", "topologies", "traces", "workloads")
TIMEOUT_S = 240
REFERENCE = "../shared/reference"


def reference_dir():
    here = os.path.dirname(os.path.abspath(__file__))
    return os.environ.get("RAILYARD_REFERENCE_DIR", os.path.join(here, "../../..", "shared/reference"))


class Command:
    def __init__(self, place, text):
        self.place = place
        self.text = text
        self.shown = []
        self.status = 0  # of a command without output


class Block:
    def __init__(self, place, info, given):
        self.place = place
        self.shows_output = info[0] == "console"
        self.is_python = info[0] == "python"
        self.is_slow = "slow" in info[1:]
        self.given = given  # commands
        self.commands = []


def is_synopsis(line):
    unquoted = re.sub(r"'[^']*'|\"[^\"]*\"", "", line.split("#")[0])
    return re.search(r"(?:^|\s)\[|(?<![\w./-])[A-Z]+\b(?![.=/])", unquoted) is not None


def read_plain_command(block, place, line, errors):
    """A line of a block ```sh."""
    text = line.split("  #")[0].strip()
    if not text:
        return
    program = text.split()[0]
    if program not in PROGRAMS or (program == "railyard" and is_synopsis(text)):
        errors.append(f"{place}: only {', '.join(PROGRAMS)} can be run, with all their words")
        return
    command = Command(place, text)
    status = re.search(r"exit status (\d+)", line[len(text):])
    command.status = int(status.group(1)) if status else 0
    block.commands.append(command)


def read_blocks(name, text):
    """The console blocks of a document, and what is wrong with it."""
    blocks, errors, block, in_fence, given, indentation = [], [], None, False, [], ""
    for number, line in enumerate(text.splitlines(), 1):
        place = f"{name}:{number}"
        if in_fence:
            line = line.removeprefix(indentation)
        if line.lstrip().startswith("```"):
            indentation = line[:len(line) - len(line.lstrip())]
            info = line.lstrip()[3:].split()
            block = None
            if not in_fence and info[:1] in (["console"], ["sh"], ["python"]):
                block = Block(place, info, given)
                blocks.append(block)
                if block.is_python:
                    block.commands.append(Command(place, ""))
            in_fence = not in_fence
            given = []
        elif block is None:
            match = re.fullmatch(r"<!-- given: (.*) -->", line)
            if match:
                given = [part.strip() for part in match.group(1).split(";")]
            is_query = re.match(r"\s*(sqlite3|tshark) ", line)
            if in_fence and (is_query or re.match(r"\s*railyard ", line) and not is_synopsis(line)):
                errors.append(f"{place}: a command outside of a block ```sh or ```console is not run")
            if re.match(r"\s*\$ railyard\b", line):
                errors.append(f"{place}: a command outside of a block ```console is not checked")
        elif block.is_python:
            block.commands[0].text += line + "\n"
        elif not block.shows_output:
            read_plain_command(block, place, line, errors)
        elif line.startswith("$ "):
            block.commands.append(Command(place, line[2:]))
        elif block.commands:
            block.commands[-1].shown.append(line.rstrip())
        else:
            errors.append(f"{place}: output of no command (expected a line \"$ railyard ...\")")
    for block in (block for block in blocks if block.shows_output):
        for command in block.commands:
            if not command.shown:
                errors.append(f"{command.place}: no output is shown beneath the command")
            if command.text.split()[0] not in ("cat",) + PROGRAMS:
                errors.append(f"{command.place}: only cat FILE, {', '.join(PROGRAMS)} can be checked")
    return blocks, errors


def mask(line):
    for pattern, text in MACHINE:
        line = pattern.sub(text, line)
    return line.rstrip()


def without_progress(lines):
    return [line for line in lines if not PROGRESS.fullmatch(line)]


def line_matches(shown, printed):
    parts = [re.escape(part) for part in mask(shown).split("...")]
    return re.fullmatch(".*".join(parts), mask(printed)) is not None


def first_difference(shown, printed):
    """None if `printed` is as shown; else the index of the shown line that is not printed there."""
    reachable = {0}
    for index, line in enumerate(shown):
        if line.strip() == "...":
            reachable = set(range(min(reachable), len(printed) + 1))
            continue
        reachable = {at + 1 for at in reachable
                     if at < len(printed) and line_matches(line, printed[at])}
        if not reachable:
            return index
    return None if len(printed) in reachable else len(shown)


def expand(text):
    """The words of a command, its file names expanded, the reference data where it is."""
    words = []
    for word in shlex.split(text):
        if word.startswith(REFERENCE):
            word = reference_dir() + word[len(REFERENCE):]
        words += sorted(glob.glob(word)) or [word]
    return words


def answer(file, query):
    """The output of sqlite3 for a query, NULL as an empty column. Status 1: an error."""
    try:
        database = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
        with contextlib.closing(database):
            rows = database.execute(query).fetchall()
    except sqlite3.Error as error:
        return 1, f"Error: {error}"
    return 0, "\n".join("|".join("" if cell is None else str(cell) for cell in row) for row in rows)


def run(program, words):
    """Exit status and output of a command; None where its program is not installed, which in CI is an error."""
    if words[0] == "sqlite3":
        return answer(*words[1:])
    if words[0] == "tshark" and shutil.which("tshark") is None:
        return None if os.environ.get("CI") != "true" else (1, "tshark is not installed")
    command = [program if words[0] == "railyard" else words[0]] + words[1:]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=TIMEOUT_S, check=False)
    return done.returncode, done.stdout


def errors_without_reference_data(block):
    """The errors of a block that needs the reference data where that is absent; None otherwise."""
    texts = (block.given or []) + [command.text for command in block.commands]
    if not any(REFERENCE in text for text in texts) or os.path.isdir(reference_dir()):
        return None
    if os.environ.get("CI") == "true":
        return [f"{block.place}: the reference data is not at {reference_dir()}"]
    print(f"{block.place}: skipped, the reference data is not at {reference_dir()}")
    return []


def interpreter_of(code):
    """The Python that has the modules which a program imports, or None; Debian's packages are /usr/bin's."""
    imports = "\n".join(re.findall(r"^(?:import|from) .*", code, re.M))
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and subprocess.run([python, "-c", imports], stderr=subprocess.DEVNULL,
                                                     check=False).returncode == 0:
            return python
    return None


def run_plain_block(program, block):
    """The errors of a block ```sh or ```python."""
    python = interpreter_of(block.commands[0].text) if block.is_python else None
    if block.is_python and python is None:
        absent = f"{block.place}: no Python has the modules that it imports (package python3-pandas)"
        if os.environ.get("CI") == "true":
            return [absent]
        print(f"{absent}, skipped")
        return []
    commands = [Command(block.place, text) for text in block.given] + block.commands
    errors = []
    for command in commands:
        is_python = block.is_python and command is block.commands[0]
        words = [python, "-c", command.text] if is_python else expand(command.text)
        if words[0] == "cp":
            shutil.copy(words[1], words[2])
            continue
        done = run(program, words)
        if done is None:
            print(f"{command.place}: skipped, {words[0]} is not installed")
            continue
        status, printed = done
        if status != command.status:
            errors.append(f"{command.place}: \"{command.text}\" ends with status {status}, "
                          f"not {command.status}:\n  " + "\n  ".join(printed.split("\n")[-8:]))
        elif words[0] != "railyard" and not printed.strip():
            errors.append(f"{command.place}: \"{command.text}\" prints nothing")
    return errors


def run_block(program, block):
    absent = errors_without_reference_data(block)
    if absent is not None:
        return absent
    if not block.shows_output:
        return run_plain_block(program, block)
    errors = []
    for command in block.commands:
        words = expand(command.text)
        if words[0] == "cat":
            with open(words[1], "w", encoding="utf-8") as file:
                file.write("\n".join(command.shown) + "\n")
            continue
        done = run(program, words)
        if done is None:
            print(f"{command.place}: skipped, {words[0]} is not installed")
            continue
        status = done[0]
        printed = without_progress(done[1].rstrip("\n").split("\n"))
        while command.shown and not command.shown[-1]:
            command.shown.pop()
        if status < 0:
            errors.append(f"{command.place}: signal {-status}")
        at = first_difference(command.shown, printed)
        if at is not None:
            line = command.shown[at] if at < len(command.shown) else "the end of the output"
            errors.append(f"{command.place}: \"{command.text}\" does not print what is shown, from "
                          f"\"{line}\" on; it prints:\n  " + "\n  ".join(printed))
    return errors


def check_accuracy(documents):
    """README's figures of accuracy are those of validation.md."""
    readme = " ".join(documents["README.md"].split())
    validation = documents["docs/validation.md"]
    core = re.search(r"Core set: .*median \|error\| ([\d.]+) %, p90 ([\d.]+) %", validation)
    said = re.search(r"median error from 1 MiB up is ([\d.]+) %; one row in ten is off by more "
                     r"than ([\d.]+) %", readme)
    if not core or not said:
        return ["README.md, docs/validation.md: the sentence with the median error is missing"]
    if core.groups() != said.groups():
        return [f"README.md: median and p90 of {said.groups()} % are not docs/validation.md's "
                f"{core.groups()} %"]
    return []


def main():
    program, source, which = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
    names = ["README.md"] + sorted(
        os.path.relpath(path, source)
        for path in glob.glob(os.path.join(source, "docs", "**", "*.md"), recursive=True))
    documents = {}
    for name in names:
        with open(os.path.join(source, name), encoding="utf-8") as file:
            documents[name] = file.read()
    errors = check_accuracy(documents)
    ran = left = 0
    for name in names:
        blocks, wrong = read_blocks(name, documents[name])
        errors += wrong
        for block in blocks:
            if block.is_slow != (which == "slow"):
                left += 1
                continue
            ran += 1
            with tempfile.TemporaryDirectory() as directory:
                for linked in LINKED:
                    os.symlink(os.path.join(source, linked), os.path.join(directory, linked))
                os.chdir(directory)
                errors += run_block(program, block)
                os.chdir(source)
    for error in errors:
        print(error)
    other = "fast" if which == "slow" else "slow"
    print(f"{ran} blocks compared, {left} left to documents.{other}, {len(errors)} errors")
    return 1 if errors or ran == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
