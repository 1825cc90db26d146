#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""House rules that neither compiler nor clang-tidy knows. Usage: tidy.py ROOT

Prints one `file:line: error: X is banned, use Y` per finding; exit status 1 if there is any.
"""

import re
import sys
from pathlib import Path

CODE_FOLDERS = ("simulator", "topologies", "workloads", "traces", "analysis", "tests")
OTHER_FOLDERS = ("docs", "cmake", "scripts", ".ci")
CXX_SUFFIXES = (".h", ".cc")
LIFE_OF_AN_ALLREDUCE = "docs/life-of-an-allreduce.md"

# Outside headers → the link targets one of which makes them available.
EXTERNAL_LINKS = (
    ("ns3/", ("Ns3::core", "Ns3::network")),
    ("boost/graph/", ("Boost::graph", "Boost::boost", "Boost::headers")),
    ("boost/iostreams/", ("Boost::iostreams",)),
    ("google/protobuf/", ("railyard_protos", "protobuf::libprotobuf")),
    ("fmt/", ("fmt::fmt", "fmt::fmt-header-only")),
    ("rapidjson/", ("railyard_rapidjson",)),
    ("sqlite3.h", ("SQLite::SQLite3",)),
    ("CLI/", ("CLI11::CLI11",)),
    ("libxml/", ("LibXml2::LibXml2",)),
    ("xxhash.h", ("railyard_xxhash",)),
    ("lemon/", ("railyard_lemon",)),
)

# The public headers' folders, in which programs that use the library see "railyard/…".
PUBLIC_HEADERS = (("railyard/ns3/", "simulator/ns3/"), ("railyard/", "simulator/api/"))


class Tree:
    """The project's text files, and what was found wrong with them."""

    def __init__(self, root):
        self.root = Path(root)
        self.findings = []
        self.texts = {}  # path relative to the root → lines
        self.libraries = {}  # folder → (name, link targets)
        paths = [path for path in self.root.iterdir() if path.is_file()]
        for folder in CODE_FOLDERS + OTHER_FOLDERS:
            paths += (path for path in (self.root / folder).rglob("*") if path.is_file())
        for path in sorted(paths):
            try:
                text = path.read_bytes().decode("utf-8")
            except UnicodeDecodeError:
                continue
            self.texts[path.relative_to(self.root).as_posix()] = text.split("\n")
        for name in self.named("CMakeLists.txt"):
            self.read_libraries(name)

    def error(self, path, line, banned, use):
        self.findings.append((path, line, f"{path}:{line}: error: {banned}, {use}"))

    def named(self, *endings):
        return [path for path in self.texts if path.endswith(endings)]

    def read_libraries(self, path):
        text = re.sub(r"#.*", "", "\n".join(self.texts[path]))
        folder = Path(path).parent.as_posix()
        for call in re.finditer(r"\brailyard_library\(\s*(\w+)([^)]*)\)", text):
            words = call.group(2).split()
            links = words[words.index("LINKS") + 1:] if "LINKS" in words else []
            if folder in self.libraries:
                self.error(path, 1, "a second library in a folder is banned",
                           "use a folder per library")
            self.libraries[folder] = (call.group(1), links)

    def library_folder_of(self, path):
        """The folder of the library that holds `path`, or None."""
        for folder in Path(path).parents:
            if folder.as_posix() in self.libraries:
                return folder.as_posix()
        return None

    def library_of(self, path):
        """(name, link targets) of the library whose folder holds `path`, or None."""
        return self.libraries.get(self.library_folder_of(path))


def cxx_lines(tree, without=()):
    """(path, line number, line without its // comment) of all C++ outside the folders `without`."""
    for path in tree.named(*CXX_SUFFIXES):
        if path.startswith(without):
            continue
        for number, line in enumerate(tree.texts[path], 1):
            yield path, number, line.split("//", 1)[0]


def check_umbrella_headers(tree):
    for path, number, line in cxx_lines(tree):
        header = re.match(r'\s*#\s*include\s*[<"]ns3/([^>"]+)[>"]', line)
        if header and (header.group(1).endswith("-module.h") or header.group(1) == "udp-client.h"):
            tree.error(path, number, f"ns3/{header.group(1)} is banned",
                       "use the header of the one class that is needed")


def check_layers(tree):
    for path, number, line in cxx_lines(tree, without=("tests/",)):
        include = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        library = tree.library_of(path)
        if not include or library is None:
            continue
        name, links = library
        header = include.group(2)
        for prefix, folder in PUBLIC_HEADERS:
            if header.startswith(prefix):
                header = folder + header
                break
        if include.group(1) == "<":
            wanted = next((targets for prefix, targets in EXTERNAL_LINKS
                           if header.startswith(prefix)), None)
        elif header.endswith(".pb.h"):
            wanted = ("railyard_protos",)
        else:
            other = tree.library_of(header)
            wanted = None if other in (None, library) else (f"railyard::{other[0]}",)
            if header not in tree.texts:
                tree.error(path, number, f"the include of {header}, which does not exist, is banned",
                           "use a path from the project's root")
        if wanted and not set(wanted) & set(links):
            tree.error(path, number, f"{header} is banned in the library {name}",
                       f"use only what its LINKS name ({wanted[0]} is not among them)")


def check_link_order(tree):
    """A library links only what the root's CMakeLists.txt adds before it, so links have no cycle."""
    added = {}
    for number, line in enumerate(tree.texts.get("CMakeLists.txt", []), 1):
        call = re.match(r"\s*add_subdirectory\(([\w/]+)\)", line)
        if call and call.group(1) in tree.libraries:
            name, links = tree.libraries[call.group(1)]
            added[f"railyard::{name}"] = number
            for link in links:
                if link.startswith("railyard::") and link not in added:
                    tree.error("CMakeLists.txt", number, f"{link} is banned in the LINKS of {name}",
                               "use only libraries that are added above it")


def folder_includes(tree):
    """Library → {(sub-folder, sub-folder that it includes): the first (path, line, header)}."""
    includes = {}
    for path, number, line in cxx_lines(tree, without=("tests/",)):
        include = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
        library = tree.library_folder_of(path)
        if not include or library is None or tree.library_folder_of(include.group(1)) != library:
            continue
        ends = tuple(name[len(library) + 1:].rpartition("/")[0].partition("/")[0]
                     for name in (path, include.group(1)))
        if ends[0] != ends[1]:
            includes.setdefault(library, {}).setdefault(ends, (path, number, include.group(1)))
    return includes


def reachable(ends, start):
    """All folders that `start` includes, directly or over others."""
    found, new = set(), {start}
    while new:
        new = {to for origin, to in ends if origin in new} - found
        found |= new
    return found


def check_include_cycles(tree):
    """Sub-folders of a library include each other in one direction."""
    includes = folder_includes(tree)
    for library in tree.libraries:
        ends = includes.get(library, {})
        for pair, (path, number, header) in ends.items():
            if pair[0] in reachable(ends, pair[1]):
                tree.error(path, number, f"the include of {header}, whose folder includes this one's, "
                           "is banned", "use a folder that both can include")


def check_standard_output(tree):
    banned = re.compile(r"std::cout|\b(?:std::)?(?:printf|puts|putchar)\s*\(|"
                        r"\bfmt::print\s*\((?!\s*stderr)|\bfprintf\s*\(\s*stdout")
    for path, number, line in cxx_lines(tree, without=("tests/", "simulator/cli/", "docs/")):
        found = banned.search(line)
        if found:
            tree.error(path, number, f"{found.group(0).rstrip('( ')} is banned outside simulator/cli",
                       "use a returned string or Diagnostics")


def check_licence_lines(tree):
    sources = set(tree.named(".h", ".cc", ".proto", ".py", ".cmake", "CMakeLists.txt"))
    sources.update(path for path in tree.texts
                   if path.startswith(("scripts/", ".ci/")) and tree.texts[path][0][:2] == "#!")
    for path in sorted(sources):
        lines = tree.texts[path]
        place = 1 if lines[0].startswith("#!") else 0
        licence = r"(//|#) SPDX-License-Identifier: GPL-2\.0-only"
        if len(lines) <= place or not re.fullmatch(licence, lines[place]):
            tree.error(path, place + 1, "a source without its licence is banned",
                       "use SPDX-License-Identifier: GPL-2.0-only in a comment as its first line")


def check_unfinished_work(tree):
    marks = re.compile(r"\b(" + "TO" + "DO|FIX" + "ME|HA" + r"CK)\b")
    for path, lines in tree.texts.items():
        for number, line in enumerate(lines, 1):
            found = marks.search(line)
            if found:
                tree.error(path, number, f"{found.group(0)} is banned",
                           "use an issue, or a located error that says what is not supported")


def check_file_names(tree):
    paths = {}  # by name: the first file that has it
    for path in sorted(tree.named(*CXX_SUFFIXES)):
        name = path.rsplit("/", 1)[-1]
        if paths.setdefault(name, path) != path:
            tree.error(path, 1, f"a second {name} beside {paths[name]} is banned",
                       "use a name that no other file has")


# Openings of clauses without a subject, after which a reader has to parse a comment twice.
CLAUSE = r"What|Of|Who|Whose|Whoever|Whether|The same|Those|How|Why"
LATER_CLAUSE = r"What|Of|Who|Whoever|Whether"
OPENING = re.compile(rf"(?:.*[.:;] (?={LATER_CLAUSE}))?({CLAUSE}) ")
# Lower-case openings of remarks on fields of schemas, which do not name what the field is.
FRAGMENT = re.compile(r"(that|of|by|for|from|with|between|behind|beyond|before|whose|which|what|who|how|"
                      r"where|when|whether|likewise|per)\b")
FIELD_REMARK = re.compile(r"\s*(?:optional|repeated|required) [^/]*;\s*// (.*)")
HASH_COMMENTS = (".py", ".cmake", ".sh", "CMakeLists.txt")
HELP = re.compile(r"\.?\b(?:Add(?:Attribute|TraceSource|WithOutput)?|add_(?:option|flag|subcommand)|add)\("
                  r'\s*"[^"]*",\s*(?:[\w.]+,\s*)?((?:"(?:[^"\\]|\\.)*"\s*)+)')


def comment_lines(path, lines):
    """(line number, text) of comments in lines of their own, and of docstrings' first lines."""
    if path.endswith((*CXX_SUFFIXES, ".proto", ".js")):
        mark = r"\s*// (.*)"
    elif path.endswith(HASH_COMMENTS) or (path.startswith(("scripts/", ".ci/")) and lines[0].startswith("#!")):
        mark = r"\s*# (.*)"
    else:
        return
    docstring = re.compile(r'\s*"""(.*)') if path.endswith(".py") else None
    above = ":"  # a docstring begins the file, or follows a line that ends in a colon
    for number, line in enumerate(lines, 1):
        found = re.match(mark, line)
        if found:
            yield number, found.group(1)
            continue
        found = docstring and above.endswith(":") and docstring.match(line)
        if found:
            yield number, found.group(1)
        if not line.startswith("#"):
            above = line.rstrip() or above


def check_comment_openings(tree):
    for path, lines in tree.texts.items():
        for number, text in comment_lines(path, lines):
            found = OPENING.match(text)
            if found:
                tree.error(path, number, f"a sentence that begins with {found.group(1)} is banned",
                           "use a sentence with a subject and a verb")


def check_field_remarks(tree):
    """The reference shows remarks on fields, which name what the field is."""
    for path in tree.named(".proto"):
        for number, line in enumerate(tree.texts[path], 1):
            remark = FIELD_REMARK.match(line)
            found = remark and (FRAGMENT.match(remark.group(1)) or OPENING.match(remark.group(1)))
            if found:
                tree.error(path, number, f"a field's remark that begins with {found.group(1)} is banned",
                           "use a noun that names what the field is")


def check_help_texts(tree):
    """Help of attributes and options begins with a noun or a verb."""
    for path in tree.named(*CXX_SUFFIXES):
        if path.startswith("tests/"):
            continue
        text = "\n".join(tree.texts[path])
        for call in HELP.finditer(text):
            shown = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', call.group(1)))
            found = OPENING.match(shown + " ") or re.match(r"(That|Its|When|Where|Which|From|Likewise)\b", shown)
            if found:
                tree.error(path, text.count("\n", 0, call.start(1)) + 1,
                           f"a help text that begins with {found.group(1)} is banned",
                           "use a noun that names what the value is, or a verb")


def check_section_headings(tree):
    """clang-format breaks a heading that is too long, and leaves its dashes in a line without a name."""
    for path in tree.named(*CXX_SUFFIXES):
        for number, line in enumerate(tree.texts[path], 1):
            if re.fullmatch(r"\s*// -{3,}", line):
                tree.error(path, number, "a line of dashes without a heading is banned",
                           "use // --- HEADING and dashes, in one line of at most 100 columns")


def check_paths_in_comments(tree):
    """Files that comments of sources and schemas name exist."""
    folders = "|".join(CODE_FOLDERS + OTHER_FOLDERS)
    name = re.compile(rf"(?<![\w/.])(?:{folders})/[\w/]+\.(?:h|cc|proto|py|md|cmake)\b")
    for path in tree.named(*CXX_SUFFIXES, ".proto"):
        for number, line in enumerate(tree.texts[path], 1):
            _, _, comment = line.partition("//")
            for named in name.findall(comment):
                if not (tree.root / named).exists():
                    tree.error(path, number, f"a comment that names {named}, which does not exist, is banned",
                               "use the path of a file from the project's root")


def check_shown_code(tree):
    """A block ```cpp of a page shows lines of a source of the tree, in their order."""
    for path in tree.named(".md"):
        shown = None  # the lines of the source that may still come
        above = ""
        for number, line in enumerate(tree.texts[path], 1):
            if line.strip() == "```cpp":
                source = re.fullmatch(r"<!-- lines of (\S+) -->", above)
                if not source or source.group(1) not in tree.texts:
                    tree.error(path, number, "C++ that no source of the tree has is banned",
                               "use <!-- lines of PATH --> above the block, and lines of that file")
                else:
                    shown = iter(tree.texts[source.group(1)])
            elif line.startswith("```"):
                shown = None
            elif shown is not None and line.strip() and line not in shown:
                tree.error(path, number, f"code that {source.group(1)} does not have here is banned",
                           "use the file's lines, in their order")
                shown = None
            above = line


def anchors_of(lines):
    """The fragments that GitHub gives to the headings of a page."""
    fenced = False
    for line in lines:
        fenced ^= line.lstrip().startswith("```")
        heading = re.match(r"#{1,6}\s+(.*)", line)
        if heading and not fenced:
            text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading.group(1)).strip().lower()
            yield re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def check_links(tree):
    for path in tree.named(".md"):
        fenced = False
        for number, line in enumerate(tree.texts[path], 1):
            fenced ^= line.lstrip().startswith("```")
            if fenced:
                continue
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
                if re.match(r"[a-z]+:", target):
                    continue
                check_link(tree, path, number, target)


def check_link(tree, path, number, target):
    name, _, fragment = target.partition("#")
    place = (tree.root / path).parent / name if name else tree.root / path
    if not place.exists():
        tree.error(path, number, f"a link to {target}, which does not exist, is banned",
                   "use a path relative to this page")
        return
    page = place.resolve()
    if fragment and page.suffix == ".md":
        if fragment not in anchors_of(page.read_text(encoding="utf-8").split("\n")):
            tree.error(path, number, f"a link to {target} is banned",
                       f"use a heading that {page.name} has")


def check_life_of_an_allreduce(tree):
    """Every `path` · `Function` of the page's table exists; a bare name lies beside the last path."""
    path = LIFE_OF_AN_ALLREDUCE
    if path not in tree.texts:
        tree.error(path, 1, "a tree without this page is banned",
                   "use it to show a reader the way of one AllReduce")
        return
    token = re.compile(r"(· *)?`([^`]+)`")
    for number, line in enumerate(tree.texts[path], 1):
        if not line.startswith("|"):
            continue
        file = None
        for dotted, text in token.findall(line):
            if re.fullmatch(r"[\w./-]+\.(h|cc|proto|textproto|log|md|py)", text):
                folder = Path(file).parent.as_posix() + "/" if file and "/" not in text else ""
                file = folder + text
                if not (tree.root / file).is_file():
                    tree.error(path, number, f"{file}, which does not exist, is banned",
                               "use the file's path from the project's root")
            elif dotted and file in tree.texts:
                function = re.split(r"::|\(", text.rstrip("()"))[-1]
                if not re.search(rf"\b{re.escape(function)}\b", "\n".join(tree.texts[file])):
                    tree.error(path, number, f"{text}, which is not in {file}, is banned",
                               "use a function that is there")


def decisions_after(words, status):
    """Numbers of the decisions that follow such words in a status: "amends 0014 (files) and 0147 (names)"."""
    found = re.search(words + "([^;]*)", re.sub(r"\([^)]*\)", "", status))
    return set(re.findall(r"\d{4}", found[1])) if found else set()


def check_amendments(tree, statuses):
    """A decision that amends another is named there, and the other way round."""
    for number, (path, status) in statuses.items():
        for words, back in (("amended by", "amends"), ("amends", "amended by")):
            for other in decisions_after(words, status):
                if other in statuses and number not in decisions_after(back, statuses[other][1]):
                    tree.error(statuses[other][0], 3, f"a decision without what {path} says of it is banned",
                               f'use "{back} {number}" in its status')


def check_decisions(tree):
    """Every decision has a status, and the index lists it by its number, title and status."""
    index = "docs/adr/README.md"
    listed = "\n".join(tree.texts.get(index, []))
    statuses = {}
    for path in tree.named(".md"):
        name = Path(path).name
        if not re.fullmatch(r"docs/adr/\d{4}-.*\.md", path):
            continue
        lines = tree.texts[path]
        title = re.fullmatch(r"# (\d{4})\. (.+)", lines[0])
        status = re.fullmatch(r"Status: (.+)", lines[2]) if len(lines) > 2 else None
        if not title or title[1] != name[:4] or not status:
            tree.error(path, 1, "a decision without its number, title and status is banned",
                       f'use "# {name[:4]}. TITLE" and, two lines below, "Status: accepted"')
            continue
        said = re.sub(r"\[(\d+)\]\([^)]*\)", r"\1", status[1])
        row = f"| [{title[1]}]({name}) | {title[2]} | {said} |"
        if row not in listed:
            tree.error(path, 1, f"a decision that {index} does not list as it is is banned",
                       f"use the row {row}")
        statuses[title[1]] = (path, said)
    check_amendments(tree, statuses)


CHECKS = (check_umbrella_headers, check_layers, check_link_order, check_include_cycles,
          check_standard_output, check_licence_lines, check_unfinished_work, check_file_names,
          check_comment_openings, check_field_remarks, check_help_texts, check_section_headings,
          check_paths_in_comments, check_shown_code, check_links,
          check_life_of_an_allreduce, check_decisions)


def check_tree(root):
    """All findings as lines, by file and line."""
    tree = Tree(root)
    for check in CHECKS:
        check(tree)
    return [text for _, _, text in sorted(tree.findings)]


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: tidy.py ROOT")
    findings = check_tree(sys.argv[1])
    for text in findings:
        print(text)
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
