#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Captures of `railyard run --capture`, as tshark dissects them, held to the links' counters."""

import json
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

RAILYARD = sys.argv.pop(1)
FABRIC = ('fabric { rail_optimized { servers: 2 gpus_per_server: 8 nic_rate: "400Gbps" } }\n'
          'workload { program { collectives { kind: ALL_REDUCE bytes: "4MiB" } } }\n')
CABLE, FILE = "server0/nic0--leaf0", "server0_nic0--leaf0.pcapng"
UP, UP_FILE = "server0/nic0>leaf0", "server0_nic0_leaf0.pcapng"
DOWN = "leaf0>server0/nic0"
LOSSES = ('faults { name: "losses" kind: LOSS link: "server0/nic0--leaf0" at: "0s" '
          'loss { packets { kind: DATA number: 20 count: 3 } } }\n')
ETHERNET_REST = 24  # bytes of preamble, gap and frame check sequence, which no capture has
WARNING, ERROR = 0x600000, 0x800000  # severities of tshark's expert
RDMA_DATA = "infiniband.bth.opcode >= 6 && infiniband.bth.opcode <= 10"


@unittest.skipUnless(shutil.which("tshark") or os.environ.get("CI"), "tshark is not installed")
class Captures(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name
        self.out = os.path.join(self.scratch, "out")

    def run_scenario(self, text, *options):
        path = os.path.join(self.scratch, "s.textproto")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return subprocess.run([RAILYARD, "run", path, "--out", self.out, "--quiet", "--no-report",
                               *options], stderr=subprocess.PIPE, text=True, check=False)

    def run_and_complete(self, text, *options):
        ended = self.run_scenario(text, *options)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        with open(os.path.join(self.out, "summary.json"), encoding="utf-8") as file:
            return json.load(file)

    def captures(self):
        return sorted(name for name in os.listdir(self.out) if name.endswith(".pcapng"))

    def packets(self, *fields, where="", file=FILE):
        """The fields of each packet, as tshark has them."""
        command = ["tshark", "-n", "-r", os.path.join(self.out, file), "-T", "fields",
                   "-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"]
        for field in fields:
            command += ["-e", field]
        if where:
            command += ["-Y", where]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               check=True)
        return [line.split("\t") for line in ended.stdout.splitlines()]

    def expect_no_error(self, severity=WARNING, file=FILE):
        wrong = self.packets("frame.number", "_ws.col.Info", "_ws.expert.message", file=file,
                             where=f"_ws.malformed || _ws.expert.severity >= {severity} || "
                                   '_ws.unreassembled || ip.checksum.status == "Bad" || '
                                   'tcp.checksum.status == "Bad"')
        self.assertEqual(wrong, [])

    def query(self, sql, *values):
        with sqlite3.connect(os.path.join(self.out, "results.sqlite")) as database:
            return database.execute(sql, values).fetchall()

    def expect_all_of(self, link, rest=ETHERNET_REST, file=FILE, snap=65535):
        """Every packet that the link counted is there, with as many bytes; and those it lost."""
        there = self.packets("frame.len", "frame.cap_len", "frame.comment", "frame.time_epoch",
                             where=f'frame.interface_name == "{link}"', file=file)
        (packets, size, dropped, rate_bps), = self.query(
            "SELECT packets, payload_bytes + header_bytes + retransmitted_bytes, dropped_packets, "
            "rate_bps FROM links WHERE link = ?", link)
        arrived = [int(length) + rest for length, _, comment, _ in there if not comment]
        self.assertEqual((len(arrived), sum(arrived), len(there) - len(arrived)),
                         (packets, size, dropped))
        self.assertTrue(packets)
        last_ns = 0
        for length, captured, _, time in there:
            self.assertEqual(int(captured), min(int(length), snap))
            # As far apart as the link needs for the later one, to the nanosecond.
            seconds, nanoseconds = time.split(".")
            time_ns = int(seconds) * 10**9 + int(nanoseconds)
            self.assertGreaterEqual(time_ns - last_ns + 1,
                                    (int(length) + rest) * 8 * 10**9 // rate_bps)
            last_ns = time_ns
        return dropped

    def expect_writes(self, link, repeats=False, file=FILE):
        """In one direction of each queue pair sequence numbers count up by one, first packets
        have the message's length, and the packets up to the last carry just so much. Returns
        the packets that are there again."""
        packets = self.packets("infiniband.bth.destqp", "infiniband.bth.psn",
                               "infiniband.bth.opcode", "infiniband.reth.dmalen", "frame.len",
                               where=f'frame.interface_name == "{link}" && {RDMA_DATA}', file=file)
        self.assertTrue(packets)
        seen, messages = {}, {}
        again = 0
        for queue_pair, sequence, opcode, length, size in packets:
            sequence, opcode = int(sequence, 0), int(opcode, 0)
            queue, message = seen.setdefault(queue_pair, {}), messages.setdefault(queue_pair, [0])
            packet = (opcode, length, size)
            if sequence in queue:
                self.assertTrue(repeats)
                self.assertEqual(queue[sequence], packet, "it is sent again as it was")
                again += 1
                continue
            self.assertEqual(sequence, len(queue), "packets are numbered from 0 on")
            queue[sequence] = packet
            if opcode in (6, 10):
                self.assertEqual(message[0], 0, "the message before has ended")
                message[0] = int(length, 0)
            message[0] -= int(size) - 58 - (16 if opcode in (6, 10) else 0)
            self.assertGreaterEqual(message[0], 0)
            if opcode in (8, 10):
                self.assertEqual(message[0], 0, "all of it came")
        return again

    def expect_acks(self):
        """An ACK has the number of a packet that has come, and no fewer messages than before."""
        acks = self.packets("infiniband.bth.destqp", "infiniband.bth.psn",
                            "infiniband.aeth.syndrome", "infiniband.aeth.msn",
                            where="infiniband.bth.opcode == 17")
        self.assertTrue(acks)
        last = {}
        naks = 0
        for queue_pair, sequence, syndrome, messages in acks:
            syndrome, now = int(syndrome, 0), (int(messages, 0), int(sequence, 0))
            if syndrome == 0x60:  # its number is the missing one, after the last
                naks += 1
                now = (now[0], now[1] - 1)
            else:
                self.assertEqual(syndrome, 0x1F)
            self.assertGreaterEqual(now, last.get(queue_pair, (0, -1)))
            last[queue_pair] = now
        return naks

    def icrc_of(self, frame):
        """Annex A17: over the packet from IP on, behind 64 bits of ones, with ones where a router
        may change it."""
        masked = bytearray(b"\xFF" * 8 + frame[14:-4])
        for at in (8 + 1, 8 + 8, 8 + 10, 8 + 11, 28 + 6, 28 + 7, 36 + 4):
            masked[at] = 0xFF
        return struct.pack("<I", zlib.crc32(masked))

    def frames(self):
        """The bytes of all frames, by the blocks of the format's draft."""
        with open(os.path.join(self.out, FILE), "rb") as file:
            data = file.read()
        at = 0
        while at < len(data):
            kind, size = struct.unpack_from("<II", data, at)
            self.assertEqual(struct.unpack_from("<I", data, at + size - 4), (size,))
            if kind == 6:
                captured, length = struct.unpack_from("<II", data, at + 20)
                self.assertEqual(captured, length)
                yield data[at + 28:at + 28 + length]
            at += size

    def test_roce(self):
        expected = self.run_and_complete(FABRIC)
        self.assertEqual(self.captures(), [])
        summary = self.run_and_complete(FABRIC, "--capture", CABLE)
        self.assertEqual(summary["fingerprint"], expected["fingerprint"])
        self.assertEqual(self.captures(), [FILE])
        self.assertIn("The replay cache was off, so that all packets could be captured.",
                      [note for note, in self.query("SELECT note FROM notes")])
        self.expect_no_error()
        for link in (UP, DOWN):
            self.assertEqual(self.expect_all_of(link), 0)
            self.assertEqual(self.expect_writes(link), 0)
        self.assertEqual({port for port, in self.packets("udp.dstport")}, {"4791"})
        self.assertEqual(self.expect_acks(), 0)
        times = [float(time) for time, in self.packets("frame.time_epoch")]
        self.assertEqual(times, sorted(times))
        self.assertEqual({info for info, in self.packets("_ws.col.Info")
                          if "Malformed" in info or "Invalid" in info}, set())
        frames = list(self.frames())
        self.assertTrue(frames)
        for frame in frames:
            self.assertEqual(frame[-4:], self.icrc_of(frame))

    # Packets that the link loses are there, and come again; a NAK asks for them.
    def test_losses(self):
        expected = self.run_and_complete(FABRIC + LOSSES)
        summary = self.run_and_complete(FABRIC + LOSSES, "--capture", CABLE)
        self.assertEqual(summary["fingerprint"], expected["fingerprint"])
        self.expect_no_error()
        self.assertEqual([self.expect_all_of(link) for link in (UP, DOWN)], [3, 3])
        lost = self.packets("infiniband.bth.destqp", "infiniband.bth.psn", "frame.comment",
                            where="frame.comment")
        self.assertEqual({comment for _, _, comment in lost}, {"lost on this link: BIT_ERROR"})
        again = sum(self.expect_writes(link, repeats=True) for link in (UP, DOWN))
        self.assertEqual(again, summary["transport"]["retransmitted_packets"])
        self.assertGreaterEqual(again, 3)
        (nacks,), = self.query("SELECT value FROM run WHERE key = 'nacks'")
        self.assertGreater(nacks, 0)
        self.assertEqual(self.expect_acks(), nacks)

    # Two options are two files; one of them has a single direction.
    def test_a_direction(self):
        self.run_and_complete(FABRIC, "--capture", UP, "--capture", CABLE, "--capture", UP)
        self.assertEqual(self.captures(), sorted([UP_FILE, FILE]))
        self.expect_all_of(UP, file=UP_FILE)
        self.assertEqual({name for name, in self.packets("frame.interface_name", file=UP_FILE)},
                         {UP})
        self.expect_all_of(UP)
        self.expect_all_of(DOWN)

    # Headers alone are a small part of the bytes; all that is checked of them holds.
    def test_headers_alone(self):
        self.run_and_complete(FABRIC, "--capture", CABLE, "--capture-bytes", "96")
        self.expect_no_error()
        for link in (UP, DOWN):
            self.expect_all_of(link, snap=96)
            self.expect_writes(link)
        self.expect_acks()
        ended = self.run_scenario(FABRIC, "--capture", CABLE, "--capture-bytes", "95")
        self.assertEqual(ended.returncode, 2)
        self.assertIn("--capture-bytes", ended.stderr)

    # Marks and CNPs of an incast.
    def test_congestion(self):
        self.run_and_complete(
            'fabric { rail_optimized { servers: 17 gpus_per_server: 1 } }\n'
            'workload { program { collectives { kind: GATHER bytes: "17MiB" } } }\n'
            'nic { congestion_control { dcqcn {} } }\n', "--capture", CABLE)
        self.expect_no_error()
        self.expect_all_of(DOWN)
        self.expect_all_of(UP)
        self.assertTrue(self.packets("frame.number", where="ip.dsfield.ecn == 3"))
        (cnps,), = self.query("SELECT value FROM run WHERE key = 'cnp'")
        self.assertGreater(cnps, 0)
        self.assertEqual(len(self.packets("frame.number", where="infiniband.bth.opcode == 129")),
                         cnps)

    def test_infiniband(self):
        self.run_and_complete(FABRIC + "network { network_flow_control: CREDITS }\n", "--capture", CABLE)
        self.expect_no_error()
        self.expect_all_of(UP, 0)
        self.expect_all_of(DOWN, 0)
        for words, size in self.packets("infiniband.lrh.pktlen", "frame.len"):
            self.assertEqual(4 * int(words) + 2, int(size))

    # TCP's own analysis finds no segment missing, out of order or acknowledged before it came.
    def test_tcp(self):
        self.run_and_complete(FABRIC + 'nccl { NET: "Socket" }\n', "--capture", CABLE)
        self.expect_no_error()
        self.expect_all_of(UP)
        self.expect_all_of(DOWN)
        self.assertTrue(self.packets("tcp.len", where="tcp.len > 0"))
        self.assertEqual(self.packets("frame.number", where="tcp.analysis.lost_segment || "
                                      "tcp.analysis.ack_lost_segment || "
                                      "tcp.analysis.out_of_order || tcp.analysis.retransmission"),
                         [])

    # It finds the segments that were lost and sent again.
    def test_tcp_losses(self):
        self.run_and_complete(FABRIC + LOSSES + 'nccl { NET: "Socket" }\n', "--capture", CABLE)
        self.expect_no_error(ERROR)
        self.assertEqual([self.expect_all_of(link) for link in (UP, DOWN)], [3, 3])
        lost = self.packets("tcp.stream", "tcp.seq", "tcp.len", where="frame.comment")
        self.assertEqual(len(lost), 6)
        again = self.packets("tcp.stream", "tcp.seq", "tcp.len", where="!frame.comment")
        for segment in lost:
            self.assertIn(segment, again)
        self.assertTrue(self.packets("frame.number", where="tcp.analysis.retransmission"))
        self.assertEqual(self.packets("frame.number", where="tcp.analysis.ack_lost_segment"), [])

    def test_names(self):
        for name, message in (
                ("server0/nic0--leaf9",
                 '--capture: error: unknown link or cable "server0/nic0--leaf9" (did you mean '
                 '"server0/nic0--leaf0"?)\n'),
                ("leaf0>server0/nic9",
                 '--capture: error: unknown link or cable "leaf0>server0/nic9" (did you mean '
                 '"leaf0>server0/nic0"?)\n'),
                ("server0/gpu0--server0/nvswitch0",
                 '--capture: error: "server0/gpu0--server0/nvswitch0" is inside a server (expected '
                 'a link between servers, e.g. of a NIC)\n')):
            ended = self.run_scenario(FABRIC, "--capture", name)
            self.assertEqual((ended.returncode, ended.stderr), (2, message))
            self.assertFalse(os.path.exists(self.out))

    # A result is replaced with its captures, but not with one that another program has written.
    def test_captures_of_others_are_kept(self):
        self.run_and_complete(FABRIC, "--capture", UP)
        self.run_and_complete(FABRIC, "--capture", CABLE)
        self.assertEqual(self.captures(), [FILE])
        mine = os.path.join(self.out, "mine.pcapng")
        subprocess.run(["editcap", os.path.join(self.out, FILE), mine], check=True)
        ended = self.run_scenario(FABRIC)
        self.assertEqual(ended.returncode, 2)
        self.assertIn("it holds mine.pcapng, which is not a result of railyard", ended.stderr)


if __name__ == "__main__":
    unittest.main()
