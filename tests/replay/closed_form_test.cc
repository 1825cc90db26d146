// SPDX-License-Identifier: GPL-2.0-only
// Rings at the speed of their slowest wire. With the GPU's, the launch's and the proxy's costs
// zero, a ring collective takes as long as the busiest wire needs for everything that crosses it,
// headers and control included, plus the time to fill the pipeline:
//
//   T = wire_bytes / rate + fill
//
// Every figure below is the wire's, the protocol's or NCCL's; none is the simulator's.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

constexpr double kPsPerSecondReal = 1e12;
// Tolerances for what the formula leaves out: on the network hardly anything; over NVLink the
// instants at which a GPU's links idle because the slices of all channels arrive at once.
constexpr double kNetworkTolerance = 0.002;
constexpr double kNvlinkTolerance = 0.015;

constexpr uint64_t kGpusPerServer = 8;
constexpr uint64_t kSlicesPerChunk = 2;  // chunkSteps 4, sliceSteps 2

// RoCE v2: Ethernet with preamble, gap and FCS 38, IPv4 20, UDP 8, BTH 12, ICRC 4; RETH 16 in the
// first packet of a message, AETH 4 in an ACK.
constexpr uint64_t kMtuBytes = 4096;
constexpr uint64_t kRoceBytes = 82;
constexpr uint64_t kRethBytes = 16;
constexpr uint64_t kAckWireBytes = kRoceBytes + 4;
constexpr uint64_t kClearToSendWireBytes = 64 + kRoceBytes + kRethBytes;
constexpr uint64_t kPacketsPerAck = 4;
constexpr double kNicBps = 400e9;
constexpr double kHostBps = 440e9;

// The load of one ring collective on each connection of a channel.
struct RingLoad {
  uint64_t chunks = 0;       // sent by each rank on each channel
  uint64_t chunk_bytes = 0;  // all equal for the sizes chosen here
};

// AllReduce: 2(n-1) chunks of S/(channels n). AllGather and ReduceScatter of S bytes in total: n-1
// chunks of the block's S/n over the channels. Sizes are such that no chunk exceeds NCCL's 2 MiB.
RingLoad LoadOf(const std::string& kind, uint64_t bytes, uint64_t ranks, uint64_t channels) {
  return {kind == "ALL_REDUCE" ? 2 * (ranks - 1) : ranks - 1, bytes / channels / ranks};
}

uint64_t Unsigned(int64_t value) { return static_cast<uint64_t>(value); }

double WireTimePs(uint64_t bytes, double bps) {
  return static_cast<double>(bytes) * 8 / bps * kPsPerSecondReal;
}

struct Case {
  const char* kind;
  const char* bytes;
  uint64_t byte_count;
  uint64_t servers;
};

std::string NameOf(const ::testing::TestParamInfo<Case>& info) {
  return fmt::format("{}_{}_{}x8", info.param.kind, info.param.bytes, info.param.servers);
}

class RingClosedFormTest : public ProgramTest, public ::testing::WithParamInterface<Case> {
 protected:
  EndedRun RunCase() {
    return RunText(RailOptimized(static_cast<uint32_t>(GetParam().servers)) +
                   Program(GetParam().kind, GetParam().bytes) + kFreeGpu);
  }
  RingLoad Load(uint64_t channels) const {
    return LoadOf(GetParam().kind, GetParam().byte_count, GetParam().servers * kGpusPerServer,
                  channels);
  }
};

// Between servers. Sixteen channels on eight NICs: each NIC carries two of them out and two in. On
// its outgoing wire are, for every slice sent, the data and the ACK of the slice's clear-to-send;
// for every slice received, its ACKs, one for 4 packets, and its clear-to-send.
class NetworkRingTest : public RingClosedFormTest {
 protected:
  static constexpr uint64_t kChannels = 16;
  static constexpr uint64_t kChannelsPerNic = 2;

  struct Wire {
    uint64_t payload_bytes = 0;
    uint64_t overhead_bytes = 0;
  };
  Wire OutgoingWire() const {
    const RingLoad load = Load(kChannels);
    const uint64_t slices = kChannelsPerNic * load.chunks * kSlicesPerChunk;
    const uint64_t packets = load.chunk_bytes / kSlicesPerChunk / kMtuBytes;
    const uint64_t acks = (packets + kPacketsPerAck - 1) / kPacketsPerAck;
    return {slices * packets * kMtuBytes,
            slices * (packets * kRoceBytes + kRethBytes + kAckWireBytes + acks * kAckWireBytes +
                      kClearToSendWireBytes)};
  }

  // First a clear-to-send comes from the next NIC; at the end the last packet goes from memory to
  // memory. Both pass a leaf (300 ns) between two cables (145 ns each); the packet crosses two PCIe
  // links (450 ns each) as well, and is serialised again on each.
  static double FillPs() {
    const double leaf_ps = 145e3 + 300e3 + 145e3;
    const uint64_t packet_bytes = kMtuBytes + kRoceBytes;
    return leaf_ps + 2 * WireTimePs(kClearToSendWireBytes, kNicBps) + leaf_ps + 2 * 450e3 +
           2 * WireTimePs(packet_bytes, kHostBps) + WireTimePs(packet_bytes, kNicBps);
  }
};

TEST_P(NetworkRingTest, TakesTheBusiestWiresTimeAndThePipelinesFill) {
  const EndedRun run = RunCase();
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  const Wire wire = OutgoingWire();
  const double serialization_ps = WireTimePs(wire.payload_bytes + wire.overhead_bytes, kNicBps);
  const double duration_ps = run.collectives.Real(0, "duration_ps");
  EXPECT_GT(duration_ps, serialization_ps);
  EXPECT_NEAR(duration_ps, serialization_ps + FillPs(),
              kNetworkTolerance * (serialization_ps + FillPs()));
}

TEST_P(NetworkRingTest, PutsTheProtocolsBytesOnEveryNicsWire) {
  const EndedRun run = RunCase();
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  const Wire wire = OutgoingWire();
  uint64_t nic_wires = 0;
  for (size_t row = 0; row < run.links.size(); ++row) {
    if (run.links.Text(row, "tier") != "NIC_LEAF") continue;
    ++nic_wires;
    EXPECT_EQ(Unsigned(run.links.Integer(row, "payload_bytes")), wire.payload_bytes);
    // The job ends when the last slice is in memory; its ACK has left the NIC then, but need not
    // have come out of the leaf again.
    const uint64_t overhead_bytes = Unsigned(run.links.Integer(row, "header_bytes"));
    const bool is_outgoing = run.links.Text(row, "link").starts_with("server");
    EXPECT_LE(overhead_bytes, wire.overhead_bytes);
    EXPECT_GE(overhead_bytes + (is_outgoing ? 0 : kChannelsPerNic * kAckWireBytes),
              wire.overhead_bytes);
  }
  EXPECT_EQ(nic_wires, 2 * kGpusPerServer * GetParam().servers);
}

INSTANTIATE_TEST_SUITE_P(Sizes, NetworkRingTest,
                         ::testing::Values(Case{"ALL_REDUCE", "64MiB", 64u << 20, 4},
                                           Case{"ALL_GATHER", "64MiB", 64u << 20, 4},
                                           Case{"REDUCE_SCATTER", "64MiB", 64u << 20, 4},
                                           Case{"ALL_REDUCE", "64MiB", 64u << 20, 2},
                                           Case{"ALL_GATHER", "64MiB", 64u << 20, 2},
                                           Case{"REDUCE_SCATTER", "64MiB", 64u << 20, 2}),
                         NameOf);

// Inside one server. Twenty-four channels, and each GPU sends all of its data over its 18 NVLinks:
// 450 GB/s of which 82.4 % are payload (NCCL's 20.6 GB/s of 25 per link).
class NvlinkRingTest : public RingClosedFormTest {
 protected:
  static constexpr uint64_t kChannels = 24;
  static constexpr uint64_t kPacketWireBytes = (kMtuBytes * 1000 + 823) / 824;
  static constexpr double kGpuBps = 450e9 * 8;
  static constexpr double kPlaneBps = 4 * 200e9;  // the slower of the planes: 4 links

  uint64_t PayloadBytes() const {
    const RingLoad load = Load(kChannels);
    return kChannels * load.chunks * load.chunk_bytes;
  }
  // The last packet crosses two links of 200 ns and the switch of 100 ns, serialised on each.
  static double FillPs() { return 500e3 + 2 * WireTimePs(kPacketWireBytes, kPlaneBps); }
};

TEST_P(NvlinkRingTest, TakesTheGpusLinksTimeAndThePipelinesFill) {
  const EndedRun run = RunCase();
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  const double serialization_ps =
      WireTimePs(PayloadBytes() / kMtuBytes * kPacketWireBytes, kGpuBps);
  const double duration_ps = run.collectives.Real(0, "duration_ps");
  EXPECT_GT(duration_ps, serialization_ps);
  EXPECT_NEAR(duration_ps, serialization_ps + FillPs(),
              kNvlinkTolerance * (serialization_ps + FillPs()));
  // All links of a GPU together carry what its ring neighbour gets.
  int64_t sent_bytes = 0;
  for (int plane = 0; plane < 4; ++plane) {
    sent_bytes += run.links.Sum("payload_bytes", "link",
                                fmt::format("server0/gpu5>server0/nvswitch{}", plane));
  }
  EXPECT_EQ(Unsigned(sent_bytes), PayloadBytes());
}

INSTANTIATE_TEST_SUITE_P(Sizes, NvlinkRingTest,
                         ::testing::Values(Case{"ALL_REDUCE", "48MiB", 48u << 20, 1},
                                           Case{"ALL_GATHER", "96MiB", 96u << 20, 1},
                                           Case{"REDUCE_SCATTER", "96MiB", 96u << 20, 1}),
                         NameOf);

}  // namespace
}  // namespace railyard::testing
