#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes h100_4x8_sample.log: a job on 4 servers x 8 H100 as NCCL 2.27.5 would have logged it.

A sample, not a capture: no machine ran it. The plan, stated here, decides every line; the forms are
those of NCCL 2.27 (src/debug.cc, src/init.cc, src/enqueue.cc) with NCCL_DEBUG=INFO,
NCCL_DEBUG_SUBSYS=INIT,COLL,TUNING,ENV, NCCL_ALGO=Ring and NCCL_PROTO=Simple.

The plan, per rank (32 ranks, rank = 8 x server + GPU):
  communicators   world: 32 ranks; tensor parallel: the 8 ranks of a server (split 1 of world, color =
                  server); data parallel: the 4 ranks of equal GPU number (split 2, color = GPU)
  2 iterations of
    forward       6 layers x 2 AllReduce of 1 x 2048 x 4096 bfloat16 (16 MiB), tensor parallel
    backward      6 layers x 2 AllReduce of the same size, tensor parallel
    gradients     2 buckets x ReduceScatter of 64 MiB in all, bfloat16, data parallel
    parameters    2 buckets x AllGather of 64 MiB in all, bfloat16, data parallel
    loss          1 AllReduce of 1 float32, world
  streams         one per rank, so every operation waits for the one before it

So 58 calls a rank, 1,856 in the log: 1,536 tensor parallel, 256 data parallel, 64 on world. opCount
stays 0 on communicators within a server, where no proxy takes part, and counts calls on the others.

Usage: generate_h100_4x8_sample.py [FILE]    (by default h100_4x8_sample.log beside this script)
"""

import os
import sys

SERVERS = 4
GPUS = 8
RANKS = SERVERS * GPUS
ITERATIONS = 2
LAYERS = 6
BUCKETS = 2
ACTIVATION_ELEMENTS = 1 * 2048 * 4096
BFLOAT16 = 9
FLOAT32 = 7
TYPE_BYTES = {BFLOAT16: 2, FLOAT32: 4}
# API counts of ReduceScatter and AllGather are per rank.
BUCKET_ELEMENTS_PER_RANK = (64 << 20) // TYPE_BYTES[BFLOAT16] // SERVERS
BUS_IDS = ["1b000", "43000", "52000", "61000", "9d000", "c3000", "d1000", "df000"]
# Lines by which a rank may be ahead of the slowest: ranks enqueue without waiting for each other.
LEAD_LINES_MAX = 6


class Random:
    """A linear congruential generator (Knuth, MMIX): the same numbers with every Python."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self.state >> 33) % limit


class Communicator:
    def __init__(self, name, ranks, channels, uses_proxy):
        self.name = name
        self.ranks = ranks
        self.channels = channels  # of a large operation
        self.uses_proxy = uses_proxy


def host_pointer(random):
    return "0x55%010x" % (random.below(1 << 31) * 512 % (1 << 40))


def device_pointer(random):
    return "0x7f%010x" % (random.below(1 << 31) * 512 % (1 << 40))


class Rank:
    """One process: its identity and the lines it prints, in order."""

    def __init__(self, rank, random):
        self.rank = rank
        self.server = rank // GPUS
        self.gpu = rank % GPUS
        pid = 31000 + 4100 * self.server + 57 * self.gpu
        self.prefix = "node%d:%d:%d [%d] NCCL INFO " % (self.server, pid, pid, self.gpu)
        self.random = random
        self.stream = host_pointer(random)
        self.pointers = {}  # by communicator
        self.op_counts = {}
        self.lines = []
        self.activation = device_pointer(random)
        self.gradients = [device_pointer(random) for _ in range(BUCKETS)]
        self.shards = [device_pointer(random) for _ in range(BUCKETS)]
        self.loss = device_pointer(random)

    def info(self, message):
        self.lines.append(self.prefix + message)

    def start(self):
        if self.gpu == 0:
            self.info("NCCL version 2.27.5+cuda12.9")
        self.info("NCCL_ALGO set by environment to Ring")
        self.info("NCCL_PROTO set by environment to Simple")

    def make(self, communicator, api, tail_start, tail_complete):
        pointer = host_pointer(self.random)
        self.pointers[communicator.name] = pointer
        self.op_counts[communicator.name] = 0
        index = communicator.ranks.index(self.rank)
        size = len(communicator.ranks)
        servers = len({rank // GPUS for rank in communicator.ranks})
        head = "%s comm %s rank %d nranks %d cudaDev %d nvmlDev %d busId %s " % (
            api, pointer, index, size, self.gpu, self.gpu, BUS_IDS[self.gpu])
        self.info(head + tail_start + " - Init START" if api == "ncclCommInitRank"
                  else head + tail_start + "- Init START")
        self.info("comm %s rank %d nRanks %d nNodes %d localRanks %d localRank %d MNNVL 0" % (
            pointer, index, size, servers, size // servers, index % (size // servers)))
        self.info(head + tail_complete + " - Init COMPLETE")
        self.info("Init timings - %s: rank %d nranks %d total 0.%02d (kernels 0.%02d, alloc 0.%02d, "
                  "bootstrap 0.01, allgathers 0.00, topo 0.05, graphs 0.01, connections 0.03, "
                  "rest 0.00)" % (api, index, size, 70 + self.random.below(20),
                                  20 + self.random.below(9), 30 + self.random.below(9)))

    def call(self, name, communicator, send, receive, count, datatype, channels):
        op_count = self.op_counts[communicator.name]
        self.info("%s: opCount %x sendbuff %s recvbuff %s count %d datatype %d op 0 root 0 comm %s "
                  "[nranks=%d] stream %s" % (
                      name, op_count, send, receive, count, datatype,
                      self.pointers[communicator.name], len(communicator.ranks), self.stream))
        if communicator.ranks[0] == self.rank:
            self.info("%s: %d Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..%d}" % (
                name, count * TYPE_BYTES[datatype], channels - 1))
        if communicator.uses_proxy:
            self.op_counts[communicator.name] += 1


def run_plan(rank, world, tensor, data):
    def tensor_all_reduce():
        rank.call("AllReduce", tensor, rank.activation, rank.activation, ACTIVATION_ELEMENTS,
                  BFLOAT16, tensor.channels)

    for _ in range(ITERATIONS):
        for _ in range(LAYERS):  # forward
            tensor_all_reduce()  # after attention
            tensor_all_reduce()  # after the feed-forward block
        for _ in range(LAYERS):  # backward
            tensor_all_reduce()
            tensor_all_reduce()
        for bucket in range(BUCKETS):
            rank.call("ReduceScatter", data, rank.gradients[bucket], rank.shards[bucket],
                      BUCKET_ELEMENTS_PER_RANK, BFLOAT16, data.channels)
        for bucket in range(BUCKETS):
            rank.call("AllGather", data, rank.shards[bucket], rank.gradients[bucket],
                      BUCKET_ELEMENTS_PER_RANK, BFLOAT16, data.channels)
        rank.call("AllReduce", world, rank.loss, rank.loss, 1, FLOAT32, 1)


def interleave(ranks, random):
    """The lines of all ranks in one stream, none of them far ahead of the others."""
    merged = []
    printed = [0] * len(ranks)
    longest = max(len(rank.lines) for rank in ranks)
    # Ranks that print more lines than others (TUNING) are compared by their share of the whole.
    while True:
        open_ranks = [i for i in range(len(ranks)) if printed[i] < len(ranks[i].lines)]
        if not open_ranks:
            return merged
        shares = {i: printed[i] * longest // len(ranks[i].lines) for i in open_ranks}
        slowest = min(shares.values())
        ready = [i for i in open_ranks if shares[i] < slowest + LEAD_LINES_MAX]
        chosen = ready[random.below(len(ready))]
        merged.append(ranks[chosen].lines[printed[chosen]])
        printed[chosen] += 1


def main(arguments):
    here = os.path.dirname(os.path.abspath(__file__))
    path = arguments[1] if len(arguments) > 1 else os.path.join(here, "h100_4x8_sample.log")
    random = Random(20270500)
    world = Communicator("world", list(range(RANKS)), 16, True)
    tensor = [Communicator("tensor%d" % s, list(range(s * GPUS, (s + 1) * GPUS)), 24, False)
              for s in range(SERVERS)]
    data = [Communicator("data%d" % g, list(range(g, RANKS, GPUS)), 4, True) for g in range(GPUS)]

    ranks = [Rank(rank, random) for rank in range(RANKS)]
    for rank in ranks:
        rank.start()
        rank.make(world, "ncclCommInitRank", "commId 0x5a3c9f1e7b20d486",
                  "commId 0x5a3c9f1e7b20d486")
        parent = rank.pointers["world"]
        for split, communicator, color in ((1, tensor[rank.server], rank.server),
                                           (2, data[rank.gpu], rank.gpu)):
            tail = "parent %s splitCount %d color %d key %d" % (parent, split, color, rank.rank)
            rank.make(communicator, "ncclCommSplit", tail, tail)
        run_plan(rank, world, tensor[rank.server], data[rank.gpu])

    with open(path, "w", encoding="ascii", newline="\n") as log:
        log.write("# Railyard sample, generated by generate_h100_4x8_sample.py from the plan stated "
                  "there.\n")
        log.write("# No machine printed this: hosts, process numbers and addresses are made up.\n")
        for line in interleave(ranks, random):
            log.write(line + "\n")


if __name__ == "__main__":
    main(sys.argv)
