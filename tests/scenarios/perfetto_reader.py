# SPDX-License-Identifier: GPL-2.0-only
"""Reads a Perfetto trace by the public numbers of its fields, and knows nothing of who wrote it."""

import struct


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    """(number, value) of each field of a message: an integer, or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value = data[at:at + 8]
            at += 8
        elif kind == 2:
            size, at = varint(data, at)
            value = data[at:at + size]
            at += size
            if len(value) != size:
                raise ValueError("a field ends beyond its message")
        else:
            raise ValueError(f"wire type {kind} of field {key >> 3}")
        yield key >> 3, value


def one(message, number, default=None):
    found = [value for key, value in message if key == number]
    return found[-1] if found else default


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def arguments(event):
    found = {}
    for number, value in event:
        if number != 4:
            continue
        annotation = list(fields(value))
        name = one(annotation, 10).decode()
        for key, parse in ((2, bool), (3, int), (4, signed), (6, lambda text: text.decode())):
            if (given := one(annotation, key)) is not None:
                found[name] = parse(given)
    return found


def flows(event, number):
    return [struct.unpack("<Q", value)[0] for key, value in event if key == number]


class Trace:
    """Tracks by number; slices, instants and values in the order of the file."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        self.tracks = {}     # number: {name, parent, pid, is_counter}
        self.slices = []     # {track, begin_ns, end_ns or None, name, args, begins, ends}
        self.instants = []   # {track, time_ns, name, args}
        self.values = []     # (track, time_ns, value)
        open_slices = {}
        events = []
        for order, (number, packet) in enumerate(fields(data)):
            if number != 1:
                raise ValueError(f"field {number} of a trace")
            packet = list(fields(packet))
            if one(packet, 10) is None:
                raise ValueError("a packet of no sequence")
            if (descriptor := one(packet, 60)) is not None:
                self.add_track(list(fields(descriptor)))
            if (event := one(packet, 11)) is not None:
                events.append((one(packet, 8), order, list(fields(event))))
        # As trace_processor sorts them: by time, then as they came.
        for time_ns, _, event in sorted(events, key=lambda event: event[:2]):
            track, kind = one(event, 11), one(event, 9)
            if track not in self.tracks:
                raise ValueError(f"an event of track {track}, which nobody describes")
            if kind == 1:
                slice_ = {"track": track, "begin_ns": time_ns, "end_ns": None,
                          "name": one(event, 23).decode(), "args": arguments(event),
                          "begins": flows(event, 47), "ends": flows(event, 48),
                          "depth": len(open_slices.setdefault(track, []))}
                open_slices[track].append(slice_)
                self.slices.append(slice_)
            elif kind == 2:
                open_slices[track].pop()["end_ns"] = time_ns
            elif kind == 3:
                self.instants.append({"track": track, "time_ns": time_ns,
                                      "name": one(event, 23).decode(), "args": arguments(event)})
            elif kind == 4:
                value = struct.unpack("<d", one(event, 44))[0]
                self.values.append((track, time_ns, value))
            else:
                raise ValueError(f"an event of type {kind}")

    def add_track(self, descriptor):
        process = one(descriptor, 3)
        process = list(fields(process)) if process is not None else []
        name = one(descriptor, 2) or one(process, 6, b"")
        self.tracks[one(descriptor, 1)] = {
            "name": name.decode(), "parent": one(descriptor, 5), "pid": one(process, 1),
            "is_counter": one(descriptor, 8) is not None}
