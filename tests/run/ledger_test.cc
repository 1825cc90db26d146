// SPDX-License-Identifier: GPL-2.0-only
// Compares the bytes of collectives on links and between pairs, byte for byte, with NCCL's
// formulas.
#include <map>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

constexpr int64_t kGpusPerServer = 8;
constexpr int64_t kChannels = 16;
// Divisible by all numbers of ranks and channels used here.
constexpr int64_t kBytes = 12 << 20;
constexpr const char* kBytesText = "12MiB";

// GPUs of an even server in the order in which NCCL 2.30's ring 0..7 passes them (its graph search
// on DGX H100 with 400 Gb/s NICs, NCCL_CROSS_NIC=2); odd servers swap rings 2k and 2k+1.
constexpr const char* kRings[8] = {"07654321", "12345670", "21076543", "34567012",
                                   "43210765", "56701234", "65432107", "70123456"};

using PairBytes = std::map<std::pair<int64_t, int64_t>, int64_t>;

// The ring neighbours of a channel.
std::vector<std::pair<int64_t, int64_t>> EdgesOf(int64_t channel, int64_t servers) {
  std::vector<int64_t> ranks;
  for (int64_t server = 0; server < servers; ++server) {
    for (const char* gpu = kRings[(channel % 8) ^ (server & 1)]; *gpu != 0; ++gpu) {
      ranks.push_back(server * kGpusPerServer + (*gpu - '0'));
    }
  }
  std::vector<std::pair<int64_t, int64_t>> edges;
  for (size_t i = 0; i < ranks.size(); ++i) {
    edges.emplace_back(ranks[i], ranks[(i + 1) % ranks.size()]);
  }
  return edges;
}

class LedgerTest : public ProgramTest {
 protected:
  static bool SameServer(int64_t a, int64_t b) { return a / kGpusPerServer == b / kGpusPerServer; }
  static bool SameRail(int64_t a, int64_t b) { return a % kGpusPerServer == b % kGpusPerServer; }

  EndedRun RunKind(const std::string& kind, int64_t servers,
                   const std::vector<std::string>& arguments = {}) {
    EndedRun run = RunText(
        RailOptimized(static_cast<uint32_t>(servers)) + Program(kind, kBytesText), arguments);
    EXPECT_EQ(run.exit.status, 0) << run.exit.errors;
    return run;
  }

  // Conditions that hold for every ledger.
  static void ExpectLedgersAgree(const EndedRun& run) {
    EXPECT_TRUE(run.At("conservation.ok").GetBool());
    for (const auto& tier : run.At("tiers").GetArray()) {
      for (const char* figure : {"payload_bytes", "header_bytes", "retransmitted_bytes"}) {
        EXPECT_EQ(tier[figure].GetInt64(), run.links.Sum(figure, "tier", tier["tier"].GetString()))
            << tier["tier"].GetString() << " " << figure;
      }
    }
    EXPECT_EQ(run.pairs.Sum("payload_bytes"), run.Integer("payload.total_bytes"));
    std::set<std::pair<int64_t, int64_t>> active;
    for (const auto& [pair, bytes] : PairsOf(run)) active.insert(pair);
    EXPECT_EQ(run.Integer("pairs.active"), static_cast<int64_t>(active.size()));
  }

  // Each pair of different GPUs has one row, which names the tiers on its way.
  static PairBytes PairsOf(const EndedRun& run) {
    PairBytes pairs;
    for (size_t row = 0; row < run.pairs.size(); ++row) {
      const std::pair pair(run.pairs.Integer(row, "source_gpu"),
                           run.pairs.Integer(row, "destination_gpu"));
      EXPECT_NE(pair.first, pair.second);
      EXPECT_NE(run.pairs.Text(row, "tiers_crossed"), "");
      const auto [at, is_new] = pairs.emplace(pair, run.pairs.Integer(row, "payload_bytes"));
      EXPECT_TRUE(is_new) << pair.first << " to " << pair.second;
    }
    return pairs;
  }

  // One kind of switches and one operation: what they got from each GPU and what each got of them.
  static void ExpectInNetwork(const EndedRun& run, const std::string& switches,
                              const std::string& operation, int64_t sent, int64_t received) {
    SCOPED_TRACE(switches + " " + operation);
    const Table rows = run.Query("SELECT * FROM in_network WHERE switches = '" + switches +
                                 "' AND operation = '" + operation + "' ORDER BY gpu");
    for (size_t row = 0; row < rows.size(); ++row) {
      EXPECT_EQ(rows.Integer(row, "gpu"), static_cast<int64_t>(row));
      EXPECT_EQ(rows.Integer(row, "sent_bytes"), sent);
      EXPECT_EQ(rows.Integer(row, "received_bytes"), received);
    }
    const auto gpus = static_cast<int64_t>(rows.size());
    EXPECT_EQ(ReadCsv(run.directory + "/in_network.csv").Sum("sent_bytes", "operation", operation),
              gpus * sent);
    for (const auto& total : run.At("in_network").GetArray()) {
      if (total["switches"].GetString() != switches) continue;
      if (total["operation"].GetString() != operation) continue;
      EXPECT_EQ(total["sent_bytes"].GetInt64(), gpus * sent);
      EXPECT_EQ(total["received_bytes"].GetInt64(), gpus * received);
      return;
    }
    ADD_FAILURE() << "not in summary.json";
  }

  // Payload counts once per link: two NVLinks, or two PCIe links, two NIC cables and, where the
  // rail changes, two spine cables. `relayed` crosses NVLink first.
  static void ExpectTiers(const EndedRun& run, const PairBytes& pairs, bool pxn) {
    std::map<std::string, int64_t> expected = {
        {"NVLINK", 0}, {"HOST", 0}, {"NIC_LEAF", 0}, {"LEAF_SPINE", 0}};
    for (const auto& [pair, bytes] : pairs) {
      if (SameServer(pair.first, pair.second)) {
        expected["NVLINK"] += 2 * bytes;
        continue;
      }
      expected["HOST"] += 2 * bytes;
      expected["NIC_LEAF"] += 2 * bytes;
      if (SameRail(pair.first, pair.second)) continue;
      expected[pxn ? "NVLINK" : "LEAF_SPINE"] += 2 * bytes;
    }
    for (const auto& [tier, bytes] : expected) {
      EXPECT_EQ(run.OfTier(tier, "payload_bytes"), bytes) << tier;
    }
  }
};

class RingLedgerTest : public LedgerTest, public ::testing::WithParamInterface<int64_t> {
 protected:
  int64_t servers() const { return GetParam(); }
  int64_t ranks() const { return servers() * kGpusPerServer; }
};

// Every rank sends 2(n-1)/n S to the next, split evenly over the channels' rings.
TEST_P(RingLedgerTest, AllReduceMovesTwiceAllButOneShareAlongEachRing) {
  const EndedRun run = RunKind("ALL_REDUCE", servers());
  ExpectLedgersAgree(run);
  PairBytes expected;
  for (int64_t channel = 0; channel < kChannels; ++channel) {
    for (const auto& edge : EdgesOf(channel, servers())) {
      expected[edge] += 2 * (ranks() - 1) * (kBytes / kChannels) / ranks();
    }
  }
  EXPECT_EQ(PairsOf(run), expected);
  EXPECT_EQ(run.Integer("payload.total_bytes"), 2 * (ranks() - 1) * kBytes);
  EXPECT_EQ(run.Real("payload.left_server_share"), 1.0 / 8);
  EXPECT_EQ(run.Real("payload.reached_spine_share"),
            servers() % 2 == 1 ? 1.0 / 8 / static_cast<double>(servers()) : 0.0);
  ExpectTiers(run, expected, false);
}

// Every rank sends n-1 blocks of S/n; how a block splits over channels is not even for all n.
TEST_P(RingLedgerTest, AllGatherAndReduceScatterMoveAllButOneBlockAlongEachRing) {
  for (const char* kind : {"ALL_GATHER", "REDUCE_SCATTER"}) {
    SCOPED_TRACE(kind);
    const EndedRun run = RunKind(kind, servers());
    ExpectLedgersAgree(run);
    EXPECT_EQ(run.Integer("payload.total_bytes"), (ranks() - 1) * kBytes);
    std::map<int64_t, int64_t> sent;
    std::map<int64_t, int64_t> received;
    for (const auto& [pair, bytes] : PairsOf(run)) {
      sent[pair.first] += bytes;
      received[pair.second] += bytes;
    }
    for (int64_t rank = 0; rank < ranks(); ++rank) {
      EXPECT_EQ(sent[rank], (ranks() - 1) * kBytes / ranks());
      EXPECT_EQ(received[rank], (ranks() - 1) * kBytes / ranks());
    }
    EXPECT_EQ(run.Real("payload.left_server_share"), 1.0 / 8);
    ExpectTiers(run, PairsOf(run), false);
  }
}

// A chain without the edge into the root.
TEST_P(RingLedgerTest, BroadcastLeavesOutTheEdgeIntoTheRoot) {
  const EndedRun run = RunKind("BROADCAST", servers());
  ExpectLedgersAgree(run);
  PairBytes expected;
  for (int64_t channel = 0; channel < kChannels; ++channel) {
    for (const auto& edge : EdgesOf(channel, servers())) {
      if (edge.second != 0) expected[edge] += kBytes / kChannels;
    }
  }
  EXPECT_EQ(PairsOf(run), expected);
  ExpectTiers(run, expected, false);
}

TEST_P(RingLedgerTest, ReduceLeavesOutTheEdgeOutOfTheRoot) {
  const int64_t root = ranks() - 3;
  const EndedRun run = RunKind(
      "REDUCE", servers(), {"--set", fmt::format("workload.program.collectives[0].root={}", root)});
  ExpectLedgersAgree(run);
  PairBytes expected;
  for (int64_t channel = 0; channel < kChannels; ++channel) {
    for (const auto& edge : EdgesOf(channel, servers())) {
      if (edge.first != root) expected[edge] += kBytes / kChannels;
    }
  }
  EXPECT_EQ(PairsOf(run), expected);
  ExpectTiers(run, expected, false);
}

TEST_P(RingLedgerTest, AllToAllSendsABlockToEveryOtherRankOverItsRail) {
  const EndedRun run = RunKind("ALL_TO_ALL", servers());
  ExpectLedgersAgree(run);
  PairBytes expected;
  for (int64_t from = 0; from < ranks(); ++from) {
    for (int64_t to = 0; to < ranks(); ++to) {
      if (from != to) expected[{from, to}] = kBytes / ranks();
    }
  }
  EXPECT_EQ(PairsOf(run), expected);
  ExpectTiers(run, expected, true);
  for (size_t row = 0; row < run.pairs.size(); ++row) {
    const int64_t from = run.pairs.Integer(row, "source_gpu");
    const int64_t to = run.pairs.Integer(row, "destination_gpu");
    EXPECT_EQ(run.pairs.Text(row, "tiers_crossed"), SameServer(from, to) ? "NVLINK"
                                                    : SameRail(from, to) ? "HOST+NIC_LEAF"
                                                                         : "NVLINK+HOST+NIC_LEAF")
        << from << " to " << to;
  }
}

TEST_P(RingLedgerTest, WithoutPxnAllToAllCrossesTheSpine) {
  const EndedRun run = RunKind("ALL_TO_ALL", servers(), {"--set", "nccl.PXN_DISABLE=true"});
  ExpectLedgersAgree(run);
  ExpectTiers(run, PairsOf(run), false);
  for (size_t row = 0; row < run.pairs.size(); ++row) {
    const int64_t from = run.pairs.Integer(row, "source_gpu");
    const int64_t to = run.pairs.Integer(row, "destination_gpu");
    EXPECT_EQ(run.pairs.Text(row, "tiers_crossed"), SameServer(from, to) ? "NVLINK"
                                                    : SameRail(from, to)
                                                        ? "HOST+NIC_LEAF"
                                                        : "HOST+NIC_LEAF+LEAF_SPINE")
        << from << " to " << to;
  }
}

INSTANTIATE_TEST_SUITE_P(Servers, RingLedgerTest, ::testing::Values(2, 3, 4),
                         [](const auto& servers) { return fmt::format("{}x8", servers.param); });

// One server: 24 channels, all with the ring 0 1 ... 7, and nothing leaves it.
TEST_F(LedgerTest, OneServersRingIsItsGpusInOrder) {
  const std::map<std::string, int64_t> bytes_of_edge = {{"ALL_REDUCE", 14 * kBytes / 8},
                                                        {"ALL_GATHER", 7 * kBytes / 8},
                                                        {"REDUCE_SCATTER", 7 * kBytes / 8},
                                                        {"BROADCAST", kBytes},
                                                        {"REDUCE", kBytes}};
  for (const auto& [kind, bytes] : bytes_of_edge) {
    SCOPED_TRACE(kind);
    const EndedRun run = RunKind(kind, 1);
    ExpectLedgersAgree(run);
    PairBytes expected;
    for (int64_t gpu = 0; gpu < kGpusPerServer; ++gpu) {
      if (kind == "BROADCAST" && gpu == 7) continue;  // into the root
      if (kind == "REDUCE" && gpu == 0) continue;     // out of the root
      expected[{gpu, (gpu + 1) % kGpusPerServer}] = bytes;
    }
    EXPECT_EQ(PairsOf(run), expected);
    ExpectTiers(run, expected, false);
    EXPECT_EQ(run.Real("payload.left_server_share"), 0.0);
  }
}

// A DGX-1's hybrid cube mesh joins 16 of its 28 pairs of GPUs. The other 12 exchange over a third
// GPU, which NCCL calls NVB, so that what they send crosses two NVLinks.
TEST_F(LedgerTest, GpusThatNoNvlinkJoinsExchangeOverAThird) {
  const EndedRun run = RunText(
      "fabric { rail_optimized { mixed_servers { count: 1 platform: \"dgx-1-v100\" } } }\n"
      "workload { program { collectives { kind: ALL_TO_ALL bytes: \"8MiB\" } } }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  ExpectLedgersAgree(run);
  constexpr int64_t kPart = 8 << 20;
  PairBytes expected;
  for (int64_t from = 0; from < 8; ++from) {
    for (int64_t to = 0; to < 8; ++to) {
      if (from != to) expected[{from, to}] = kPart / 8;
    }
  }
  EXPECT_EQ(PairsOf(run), expected);
  EXPECT_EQ(run.OfTier("NVLINK", "payload_bytes"), (2 * 16 + 2 * 2 * 12) * kPart / 8);
}

// NVLS: every GPU is the head of an eighth of the data, S/8. It gets that part of each other GPU as
// an operand, and gives each its sum: 2 S/8 from each to each, as much in all as a ring's 2(n-1) S.
// A GPU hands its switches all of its data, and gets all of the sums. An AllToAll in the same job
// adds its blocks to the same pairs.
TEST_F(LedgerTest, WhatNvSwitchesAddUpAndCopyCountsBetweenDifferentGpusAndSeparately) {
  const EndedRun run = RunText(RailOptimized(1) +
                               "workload { algorithm: NVLS program {\n"
                               "  collectives { kind: ALL_REDUCE bytes: \"12MiB\" }\n"
                               "  collectives { kind: ALL_TO_ALL bytes: \"12MiB\" } } }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  ExpectLedgersAgree(run);
  PairBytes expected;
  for (int64_t from = 0; from < kGpusPerServer; ++from) {
    for (int64_t to = 0; to < kGpusPerServer; ++to) {
      if (from != to) expected[{from, to}] = 3 * kBytes / kGpusPerServer;
    }
  }
  EXPECT_EQ(PairsOf(run), expected);
  for (size_t row = 0; row < run.pairs.size(); ++row) {
    EXPECT_EQ(run.pairs.Text(row, "tiers_crossed"), "NVLINK");
  }
  EXPECT_EQ(run.Integer("payload.total_bytes"), 3 * (kGpusPerServer - 1) * kBytes);
  ExpectInNetwork(run, "NVSWITCH", "REDUCE", kBytes, kBytes / kGpusPerServer);
  ExpectInNetwork(run, "NVSWITCH", "MULTICAST", kBytes / kGpusPerServer, kBytes);
  EXPECT_THAT(run.exit.output,
              ::testing::HasSubstr("NVSwitches reduced 96 MiB that GPUs sent, and handed out 12 "
                                   "MiB.\n"));
}

// NVLSTree over two servers: inside each as above, and between the heads of a slice its sum once up
// and once down.
TEST_F(LedgerTest, NvlsTreeSendsEachSumOnceUpAndOnceDown) {
  const EndedRun run = RunText(RailOptimized(2) +
                               "workload { algorithm: NVLS_TREE program { collectives { kind: "
                               "ALL_REDUCE bytes: \"12MiB\" } } }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  ExpectLedgersAgree(run);
  const int64_t inside = int64_t{2} * 2 * (kGpusPerServer - 1) * kBytes;
  const int64_t between = 2 * kBytes;
  EXPECT_EQ(run.Integer("payload.total_bytes"), inside + between);
  EXPECT_EQ(run.Real("payload.left_server_share"),
            static_cast<double>(between) / static_cast<double>(inside + between));
  PairsOf(run);
}

// A ring's edge that changes rails crosses the spine, an AllToAll's block between the same two GPUs
// goes to the rail over NVLink: one pair, with both ways.
TEST_F(LedgerTest, APairWithTwoWaysHasOneRowThatNamesBoth) {
  const EndedRun run = RunText(RailOptimized(3) +
                               "workload { algorithm: RING program {\n"
                               "  collectives { kind: ALL_REDUCE bytes: \"12MiB\" }\n"
                               "  collectives { kind: ALL_TO_ALL bytes: \"12MiB\" } } }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  ExpectLedgersAgree(run);
  PairBytes expected;
  std::set<std::pair<int64_t, int64_t>> of_ring;
  for (int64_t channel = 0; channel < kChannels; ++channel) {
    for (const auto& edge : EdgesOf(channel, 3)) {
      expected[edge] += int64_t{2} * 23 * (kBytes / kChannels) / 24;
      of_ring.insert(edge);
    }
  }
  for (int64_t from = 0; from < 24; ++from) {
    for (int64_t to = 0; to < 24; ++to) {
      if (from != to) expected[{from, to}] += kBytes / 24;
    }
  }
  EXPECT_EQ(PairsOf(run), expected);
  for (size_t row = 0; row < run.pairs.size(); ++row) {
    const std::pair pair(run.pairs.Integer(row, "source_gpu"),
                         run.pairs.Integer(row, "destination_gpu"));
    if (!of_ring.contains(pair) || SameServer(pair.first, pair.second) ||
        SameRail(pair.first, pair.second)) {
      continue;
    }
    EXPECT_EQ(run.pairs.Text(row, "tiers_crossed"),
              "HOST+NIC_LEAF+LEAF_SPINE|NVLINK+HOST+NIC_LEAF");
  }
}

// One run repeats another's traffic pair by pair: its pairs.csv is the same.
TEST_F(LedgerTest, AnAllToAllVSendsWhatAnEarlierRunDid) {
  const EndedRun first = RunKind("ALL_REDUCE", 2);
  const EndedRun second = RunText(
      RailOptimized(2) + "workload { program { collectives { kind: ALL_TO_ALL_V pair_bytes: \"" +
      first.directory + "/pairs.csv\" } } }\n");
  ExpectLedgersAgree(second);
  EXPECT_EQ(PairsOf(second), PairsOf(first));
  EXPECT_EQ(second.collectives.Text(0, "kind"), "AllToAllv");
}

// Grouped Send and Recv from a log: every rank sends to the one 8 further on, and to its neighbour.
TEST_F(LedgerTest, GroupedSendsAndReceivesOfALogGoFromPeerToPeer) {
  constexpr int kRanks = 16;
  constexpr int kFarElements = 100'000;
  constexpr int kNearElements = 3'000;
  std::string log;
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::string prefix =
        fmt::format("node{}:{}:{} [{}] NCCL INFO ", rank / 8, 50 + rank, 50 + rank, rank % 8);
    log += fmt::format(
        "{}ncclCommInitRank comm 0xc{:02x} rank {} nranks {} cudaDev {} nvmlDev {} busId 1b000 "
        "commId 0xabc - Init COMPLETE\n",
        prefix, rank, rank, kRanks, rank % 8, rank % 8);
    const auto call = [&](const char* name, int peer, int elements) {
      log += fmt::format(
          "{}{}: opCount 0 sendbuff 0x1000 recvbuff 0x2000 count {} datatype 7 op 0 root {} comm "
          "0xc{:02x} [nranks={}] stream 0x7\n",
          prefix, name, elements, peer, rank, kRanks);
    };
    call("Send", (rank + 8) % kRanks, kFarElements);
    call("Recv", (rank + 8) % kRanks, kFarElements);
    call("Send", (rank + 1) % kRanks, kNearElements);
    call("Recv", (rank + kRanks - 1) % kRanks, kNearElements);
  }
  scratch_.Write("p2p.log", log);
  const EndedRun run = RunText(RailOptimized(2) + "workload { nccl_log { files: \"p2p.log\" } }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  ExpectLedgersAgree(run);
  PairBytes expected;
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    expected[{rank, (rank + 8) % kRanks}] += 4L * kFarElements;
    expected[{rank, (rank + 1) % kRanks}] += 4L * kNearElements;
  }
  EXPECT_EQ(PairsOf(run), expected);
  // Inside a server 12,000 B go as LL. The flags, half of every line, are no payload.
  ExpectTiers(run, expected, true);
}

class LineProtocolTest : public LedgerTest, public ::testing::WithParamInterface<const char*> {};

// In LL half of every line are flags, in LL128 a sixteenth. They count as headers on links, in
// tiers and in the conservation of bytes, on every transport. A size that does not fill the last
// lines shows that their unused rest is not payload either.
TEST_P(LineProtocolTest, FlagsAreHeaders) {
  const std::string protocol = GetParam();
  for (const char* network : {"", "NET: \"Socket\" ", "IB_QPS_PER_CONNECTION: 2 "}) {
    SCOPED_TRACE(network);
    const auto run_with = [&](const std::string& of_protocol) {
      return RunText(RailOptimized(2) + "workload { algorithm: RING protocol: " + of_protocol +
                     " program { collectives { kind: ALL_REDUCE bytes: \"1000004\" } } }\n" +
                     "nccl { version: \"2.27.5\" " + network + "}\n");
    };
    const EndedRun lines = run_with(protocol);
    ASSERT_EQ(lines.exit.status, 0) << lines.exit.errors;
    ExpectLedgersAgree(lines);
    const PairBytes pairs = PairsOf(lines);
    ExpectTiers(lines, pairs, false);
    EXPECT_EQ(lines.Integer("payload.total_bytes"), 2 * 15 * 1'000'004);
    EXPECT_EQ(lines.Integer("conservation.injected_bytes"), 2 * 15 * 1'000'004);
    // The flags are where they belong: on NVLink at least as many as the lines have.
    const double data_of_line = protocol == "LL" ? 8.0 / 16 : 120.0 / 128;
    const auto payload = static_cast<double>(lines.OfTier("NVLINK", "payload_bytes"));
    EXPECT_GE(static_cast<double>(lines.OfTier("NVLINK", "header_bytes")),
              payload / data_of_line - payload);
  }
}

INSTANTIATE_TEST_SUITE_P(Protocols, LineProtocolTest, ::testing::Values("LL", "LL128"));

}  // namespace
}  // namespace railyard::testing
