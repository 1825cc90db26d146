#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Makes the reference: one page with every field, attribute, figure and column, and a search box.

    docs/reference/reference.py build/release/bin/railyard -o reference.html

Nothing is written for this page alone. It joins
- the messages of the .proto files, with their comments;
- tables of docs/*.md, each below a line <!-- reference: KIND OF -->, where KIND OF is
    fields MESSAGE     a row per field of the message, by its path from there
    values ENUM        a row per value of an enumeration, e.g. Fault.Kind
    keys FILE          a row per key of a JSON file
    columns FILE       a row per column of a CSV file
- `railyard help models`: attributes and trace sources of ns-3's objects, and the fields that set them;
- simulator/ns3: those of the objects that programs on ns-3 use.

What has no description is an error, and so is a row about something that does not exist.
"""

import argparse
import dataclasses
import html
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
# By file: its title, and the message that a whole file is; None: parts of others.
PROTOS = {
    "simulator/scenario/schema/scenario.proto": ("Scenarios", "Scenario"),
    "topologies/formats/topology.proto": ("Fabrics", "Topology"),
    "workloads/plans/workload.proto": ("Plans", "Plan"),
    "simulator/study/study.proto": ("Studies", "Study"),
    "workloads/collectives/schedule.proto": ("Algorithms", "Schedule"),
    "topologies/platforms/platform.proto": ("Platforms", "Platform"),
    "topologies/prices/prices.proto": ("Prices", "Prices"),
    "traces/trace/trace.proto": ("Trace files", "TraceHeader"),
}


class ReferenceError(Exception):
    """The sources do not fit together; has a line for each mistake."""


@dataclasses.dataclass
class Field:
    name: str
    type: str
    is_repeated: bool
    comment: str
    rows: list = dataclasses.field(default_factory=list)  # of documents
    attributes: list = dataclasses.field(default_factory=list)

    def is_described(self, messages):
        """A field that is a message is described by that."""
        return bool(self.comment or self.rows or self.attributes or
                    (self.type in messages and messages[self.type].comment))


@dataclasses.dataclass
class Message:
    name: str
    file: str
    comment: str
    fields: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Enum:
    name: str
    comment: str
    values: dict = dataclasses.field(default_factory=dict)  # name -> Field


@dataclasses.dataclass
class Row:
    """A row of a table in a document."""
    place: str
    names: list  # in backquotes in its first cell
    meaning: str
    more: str  # unit, default


@dataclasses.dataclass
class Attribute:
    model: str
    name: str
    value: str  # its default with its range; of a trace source the type of its callback
    help: str
    field: str = ""  # the path of the scenario's field that sets it
    is_trace_source: bool = False


@dataclasses.dataclass
class Reference:
    messages: dict
    enums: dict
    keys: dict     # by file: rows
    columns: dict  # by file: rows
    attributes: list


# ---- .proto ----------------------------------------------------------------------------------------

DEFINITION = re.compile(r"(message|enum|oneof) (\w+) \{(\})?$")
FIELD = re.compile(r"(?:(optional|repeated|required) )?([\w.]+) (\w+) = \d+;$")
VALUE = re.compile(r"(\w+) = \d+;$")


def read_proto(text, file, messages, enums):
    """Adds the messages and enumerations of a file."""
    scopes = []  # Message, Enum or None for a oneof
    comment = []
    for number, line in enumerate(text.split("\n"), 1):
        code, _, remark = line.strip().partition("//")
        code, remark = code.strip(), remark.strip()
        if not code:
            comment = comment + [remark] if remark else []
            continue
        said = " ".join([*comment, remark] if remark else comment)
        comment = []
        outer = next((scope for scope in reversed(scopes) if scope), None)
        definition, field, value = (pattern.match(code) for pattern in (DEFINITION, FIELD, VALUE))
        if definition:
            kind, name, ends = definition.groups()
            full = f"{outer.name}.{name}" if outer else name
            scope = None
            if kind == "message":
                scope = messages[full] = Message(full, file, said)
            elif kind == "enum":
                scope = enums[full] = Enum(full, said)
            if not ends:
                scopes.append(scope)
        elif code == "}":
            scopes.pop()
        elif isinstance(outer, Message) and field:
            label, of, name = field.groups()
            outer.fields[name] = Field(name, of, label == "repeated", said)
        elif isinstance(outer, Enum) and value:
            outer.values[value.group(1)] = Field(value.group(1), "", False, said)
        elif not re.match(r"(syntax|package|import|reserved|option)\b", code):
            raise ReferenceError(f"{file}:{number}: not understood: {code}")


def resolve_types(messages, enums):
    """Replaces names of types by full ones: they may be relative to the message around them."""
    for message in messages.values():
        for field in message.fields.values():
            scope = message.name.split(".")
            for depth in range(len(scope), -1, -1):
                full = ".".join([*scope[:depth], field.type])
                if full in messages or full in enums:
                    field.type = full
                    break


# ---- Tables of documents ---------------------------------------------------------------------------

MARK = re.compile(r"<!-- reference: (fields|values|keys|columns) (\S+) -->$")


def read_tables(text, name):
    """(place, kind, of, rows) of each table below a mark."""
    lines = text.split("\n")
    for index, line in enumerate(lines):
        mark = MARK.match(line.strip())
        if not mark:
            continue
        table = lines[index + 1:]
        if len(table) < 3 or not table[0].startswith("|") or not re.match(r"[|\- ]+$", table[1]):
            raise ReferenceError(f"{name}:{index + 1}: no table is below")
        titles = cells(table[0])
        meaning = titles.index("Meaning") if "Meaning" in titles else 1
        rows = []
        for offset, row in enumerate(table[2:], index + 4):
            if not row.startswith("|"):
                break
            values = cells(row)
            others = [f"{title}: {value}" for i, (title, value) in enumerate(zip(titles, values))
                      if i not in (0, meaning) and value]
            rows.append(Row(f"{name}:{offset}", re.findall(r"`([^`]+)`", values[0]), values[meaning],
                            "; ".join(others)))
        yield f"{name}:{index + 1}", *mark.groups(), rows


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def find_field(messages, message, path):
    """The field at a path from a message; None if there is none."""
    field = None
    for part in path.split("."):
        if message not in messages:
            return None
        field = messages[message].fields.get(part)
        if field is None:
            return None
        message = field.type
    return field


def expanded(name):
    """`a.{b,c}` as a.b and a.c."""
    braces = re.match(r"(.*)\{(.*)\}(.*)$", name)
    if not braces:
        return [name]
    return [braces.group(1) + part + braces.group(3) for part in braces.group(2).split(",")]


def full_names(row):
    """The names of a row of keys; later ones are siblings of the first, where that has a path."""
    names = []
    for name in row.names:
        for full in expanded(name):
            if names and "." not in full and "." in names[0]:
                full = names[0].rpartition(".")[0] + "." + full
            names.append(full)
    return names


def add_field_rows(rows, of, messages, enums, mistakes):
    for row in rows:
        prefix = ""
        for name in row.names:
            path = re.sub(r"\s*(\{|:).*$", "", name)
            field = find_field(messages, of, path)
            if field is None and prefix:
                field = find_field(messages, of, f"{prefix}.{path}")
            if field is None:
                mistakes.append(f"{row.place}: {of} has no field {path}")
                continue
            prefix = path.rpartition(".")[0] or prefix
            value = re.match(r"\w+: ([A-Z]\w*)$", name)
            if value and field.type in enums:  # a row about one value
                field = enums[field.type].values.get(value.group(1))
                if field is None:
                    mistakes.append(f"{row.place}: no such value: {name}")
                    continue
            field.rows.append(row)


# ---- Models ----------------------------------------------------------------------------------------

ATTRIBUTE = re.compile(r"  (\w+) = (.*); in a scenario: (.*)$")
TRACE_SOURCE = re.compile(r"  trace source (\w+): (.*)$")


def read_models(text):
    """The attributes and trace sources that `railyard help models` prints."""
    attributes = []
    model = ""
    for line in text.split("\n"):
        attribute, source = ATTRIBUTE.match(line), TRACE_SOURCE.match(line)
        if line.startswith("railyard::"):
            model = line.removeprefix("railyard::")
        elif attribute:
            name, value, field = attribute.groups()
            attributes.append(Attribute(model, name, value, "", field))
        elif source:
            attributes.append(Attribute(model, *source.groups(), "", is_trace_source=True))
        elif line.startswith("    "):
            attributes[-1].help = (attributes[-1].help + " " + line.strip()).strip()
        elif line:
            raise ReferenceError(f"railyard help models: not understood: {line}")
    return attributes


TYPE = re.compile(r'ns3::TypeId\("railyard::(\w+)"\)')
MEMBER = re.compile(r'\.Add(Attribute|TraceSource)\(\s*"(\w+)",\s*((?:"(?:[^"\\]|\\.)*"\s*)+),\s*')
CONSTANT = re.compile(r"constexpr \w+ (k\w+) = ([^;]+);")
VALUE_OF = re.compile(r"ns3::\w+Value\((.*?)\),\s*(?:ns3::)?Make", re.DOTALL)


def read_ns3_types(sources):
    """The attributes and trace sources of sources that define types of ns-3."""
    attributes = []
    for text in sources:
        constants = dict(CONSTANT.findall(text))
        types = list(TYPE.finditer(text))
        for at, following in zip(types, [*types[1:], None]):
            part = text[at.end():following.start() if following else len(text)]
            for member in MEMBER.finditer(part):
                kind, name, words = member.groups()
                words = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', words)).replace('\\"', '"')
                rest = part[member.end():]
                value = VALUE_OF.match(rest)
                said = "read only" if not value else value.group(1) or "none"
                said = re.sub(r"ns3::\w+\((.*)\)", r"\1", constants.get(said, said))
                attributes.append(Attribute(at.group(1), name, "" if kind == "TraceSource" else said, words,
                                            is_trace_source=kind == "TraceSource"))
    return attributes


# ---- All together ----------------------------------------------------------------------------------

def read_reference(protos, documents, models, ns3_sources=()):
    """From texts by name; raises ReferenceError."""
    messages, enums = {}, {}
    for name, text in protos.items():
        read_proto(text, name, messages, enums)
    resolve_types(messages, enums)
    reference = Reference(messages, enums, {}, {}, read_models(models) + read_ns3_types(ns3_sources))
    mistakes = []
    for name, text in documents.items():
        for place, kind, of, rows in read_tables(text, name):
            if kind == "fields":
                if of not in messages:
                    mistakes.append(f"{place}: there is no message {of}")
                    continue
                add_field_rows(rows, of, messages, enums, mistakes)
            elif kind == "values":
                for row in rows:
                    for value in row.names:
                        if of not in enums or value not in enums[of].values:
                            mistakes.append(f"{row.place}: {of} has no value {value}")
                        else:
                            enums[of].values[value].rows.append(row)
            else:
                getattr(reference, kind).setdefault(of, []).extend(rows)
    for attribute in reference.attributes:
        field = find_field(messages, "Scenario", attribute.field)
        if field:
            field.attributes.append(attribute)
    mistakes += undescribed(reference)
    if mistakes:
        raise ReferenceError("\n".join(mistakes))
    return reference


def undescribed(reference):
    lacking = [f"{message.file}: {message.name}.{field.name} has no description"
               for message in reference.messages.values() for field in message.fields.values()
               if not field.is_described(reference.messages)]
    lacking += [f"attribute {attribute.model}.{attribute.name} has no description"
                for attribute in reference.attributes if not attribute.help]
    for rows in (*reference.keys.values(), *reference.columns.values()):
        lacking += [f"{row.place}: {', '.join(row.names)} has no description"
                    for row in rows if not row.meaning and not row.more]
    return lacking


def read_sources(railyard):
    models = subprocess.run([railyard, "help", "models"], capture_output=True, text=True, check=True)
    return read_reference({name: (SOURCE / name).read_text() for name in PROTOS},
                          {f"docs/{path.name}": path.read_text()
                           for path in sorted((SOURCE / "docs").glob("*.md"))}, models.stdout,
                          [path.read_text() for path in sorted((SOURCE / "simulator/ns3").glob("*.cc"))])


# ---- The page --------------------------------------------------------------------------------------

def inline(text):
    """Markdown of one line as HTML, without links: they lead to documents that may not be there."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text.replace("\\|", "|"))
    parts = re.split(r"`([^`]+)`", text)
    for index, part in enumerate(parts):
        part = html.escape(html.unescape(part), quote=False)
        if index % 2:
            parts[index] = f"<code>{part}</code>"
        else:
            part = re.sub(r"&lt;(/?)(sub|sup)&gt;", r"<\1\2>", part)
            parts[index] = re.sub(r"(?<![\w*])\*([^*]+)\*(?![\w*])", r"<em>\1</em>", part)
    return "".join(parts)


def plain(text):
    """Text of sources, in which only backquotes have a meaning."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))


def entry(name, kind, texts, anchor):
    """One row of the page, which the search box shows or hides as a whole."""
    body = "".join(f"<p>{text}</p>" for text in texts if text)
    return (f'<tr id="{html.escape(anchor)}"><th scope="row"><a href="#{html.escape(anchor)}">'
            f"<code>{plain(name)}</code></a></th><td>{kind}</td><td>{body}</td></tr>\n")


def section(title, about, rows, anchor):
    if not rows:
        return ""
    return (f'<section id="{anchor}"><h3>{title}</h3>{"".join(f"<p>{text}</p>" for text in about if text)}'
            f"<table>{''.join(rows)}</table></section>\n")


def described_by(row):
    return inline(row.meaning) + (f" <small>{inline(row.more)}</small>" if row.more else "")


def field_texts(field, messages, enums):
    message = messages.get(field.type)
    texts = [plain(field.comment or message.comment if message else field.comment)]
    texts += [described_by(row) for row in field.rows]
    texts += [f"{plain(a.help)} <small>Default: {plain(a.value)}; attribute "
              f"<code>railyard::{plain(a.model)}::{plain(a.name)}</code></small>" for a in field.attributes]
    if field.type in enums:
        for value in enums[field.type].values.values():
            if value.name.endswith("_UNSPECIFIED"):
                continue
            said = [plain(value.comment), *(described_by(row) for row in value.rows)]
            texts.append(f"<code>{value.name}</code> " + " ".join(said))
    return texts


def message_section(message, reference, users):
    rows = []
    for field in message.fields.values():
        kind = plain(field.type)
        if field.type in reference.messages and reference.messages[field.type].fields:
            kind = f'<a href="#{field.type}">{kind}</a>'
        rows.append(entry(field.name, ("repeated " if field.is_repeated else "") + kind,
                          field_texts(field, reference.messages, reference.enums), f"{message.name}.{field.name}"))
    used = ", ".join(f'<a href="#{user}"><code>{user}</code></a>' for user in users.get(message.name, []))
    return section(f"<code>{message.name}</code>",
                   [plain(message.comment), f"In {used}" if used else ""], rows, message.name)


def make_page(reference, template, version):
    users = {}
    for message in reference.messages.values():
        for field in message.fields.values():
            users.setdefault(field.type, []).append(f"{message.name}.{field.name}")
    parts = []
    for file, (title, _) in PROTOS.items():
        parts.append(f"<h2>{title}</h2><p>Protobuf text of <code>{file}</code>.</p>\n"
                     if title != "Trace files" else f"<h2>{title}</h2><p><code>{file}</code></p>\n")
        parts += [message_section(message, reference, users)
                  for message in reference.messages.values() if message.file == file]
    parts.append("<h2>Attributes</h2><p>Of ns-3's objects, as <code>railyard help models</code> prints "
                 "them.</p>\n")
    for model in dict.fromkeys(attribute.model for attribute in reference.attributes):
        rows = [entry(a.name, "trace source" if a.is_trace_source else "attribute",
                      [plain(a.help), f"<small>{'' if a.is_trace_source else 'Default: '}{plain(a.value)}"
                       + (f"; in a scenario: {plain(a.field)}" if a.field else "") + "</small>"],
                      f"{model}::{a.name}")
                for a in reference.attributes if a.model == model]
        parts.append(section(f"<code>railyard::{model}</code>", [], rows, f"{model}::"))
    for title, kind, tables in (("Figures", "key", reference.keys), ("Columns", "column", reference.columns)):
        parts.append(f"<h2>{title}</h2>\n")
        for file, rows in tables.items():
            made = []
            for row in rows:
                names = full_names(row)
                made.append(entry(", ".join(row.names), kind, [described_by(row)], f"{file}:{names[0]}"))
            parts.append(section(f"<code>{file}</code>", [], made, file))
    return template.replace("@VERSION@", html.escape(version)).replace("@BODY@", "".join(parts))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("railyard", help="the program, which knows its attributes")
    parser.add_argument("-o", required=True, metavar="FILE", help="the page")
    options = parser.parse_args()
    try:
        reference = read_sources(options.railyard)
    except ReferenceError as error:
        sys.exit(f"reference.py: {error}")
    version = subprocess.run([options.railyard, "--version"], capture_output=True, text=True, check=True)
    template = (SOURCE / "docs/reference/page.html").read_text()
    pathlib.Path(options.o).write_text(make_page(reference, template, version.stdout.strip()))


if __name__ == "__main__":
    main()
