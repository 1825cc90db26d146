// SPDX-License-Identifier: GPL-2.0-only
// Compares the bytes that each algorithm puts on the links with its closed form, and runs with both
// forms of ports.
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kBytes = 16 * kMiB;

std::string AllReduce(const std::string& algorithm, const std::string& protocol) {
  return fmt::format(
      "workload {{ program {{ collectives {{ kind: ALL_REDUCE bytes: \"{}B\" }} }} algorithm: {} "
      "protocol: {} }}\n",
      kBytes, algorithm, protocol);
}

class AlgorithmsTest : public ProgramTest {
 protected:
  EndedRun Run(uint32_t servers, const std::string& algorithm, const std::string& protocol,
               const std::string& more = "") {
    EndedRun run = RunText(RailOptimized(servers) + AllReduce(algorithm, protocol) + more);
    EXPECT_EQ(run.exit.status, 0) << run.exit.errors;
    EXPECT_EQ(run.Text("status"), "COMPLETED");
    EXPECT_TRUE(run.At("conservation.ok").GetBool());
    EXPECT_EQ(run.collectives.Text(0, "replayed"), algorithm + "/" + protocol);
    return run;
  }
};

// src/transport/nvls.cc: every GPU's data goes up once, as operands; the head of a slice gets its
// sum and sends it up again; the switches copy it to all.
TEST_F(AlgorithmsTest, NvlsSendsEveryVectorUpOnceAndEverySumToAll) {
  const EndedRun run = Run(1, "NVLS", "SIMPLE");
  std::map<std::string, int64_t> up;
  std::map<std::string, int64_t> down;
  for (size_t row = 0; row < run.links.size(); ++row) {
    if (run.links.Text(row, "tier") != "NVLINK") continue;
    const std::string name = run.links.Text(row, "link");
    const size_t arrow = name.find('>');
    const std::string from = name.substr(0, arrow);
    const std::string to = name.substr(arrow + 1);
    const int64_t bytes = run.links.Integer(row, "payload_bytes");
    if (from.find("gpu") != std::string::npos) up[from] += bytes;
    if (to.find("gpu") != std::string::npos) down[to] += bytes;
  }
  ASSERT_EQ(up.size(), 8u);
  ASSERT_EQ(down.size(), 8u);
  for (const auto& [gpu, bytes] : up) EXPECT_EQ(bytes, kBytes + kBytes / 8) << gpu;
  for (const auto& [gpu, bytes] : down) EXPECT_EQ(bytes, kBytes + kBytes / 8) << gpu;
}

// A tree over N servers has N - 1 edges, each of which carries the data up and down; a byte crosses
// a link from a NIC and one to a NIC.
TEST_F(AlgorithmsTest, TreesCrossTheNetworkOncePerEdgeAndDirection) {
  for (const uint32_t servers : {2u, 3u, 4u}) {
    const int64_t expected = int64_t{2} * 2 * (servers - 1) * kBytes;
    EXPECT_EQ(Run(servers, "TREE", "SIMPLE").OfTier("NIC_LEAF", "payload_bytes"), expected);
    EXPECT_EQ(Run(servers, "NVLS_TREE", "SIMPLE").OfTier("NIC_LEAF", "payload_bytes"), expected);
  }
}

// Everybody's block comes to all others once, whatever the way; a byte crosses a link from a NIC
// and one to a NIC. So does every part of direct exchange, twice.
TEST_F(AlgorithmsTest, ExchangesCrossTheNetworkAsOftenAsBlocksHaveReceivers) {
  constexpr int64_t kRanks = 5;
  const std::string fabric =
      "fabric { rail_optimized { servers: 5 gpus_per_server: 1 } }\nworkload { ";
  const auto run = [&](const char* kind, const char* algorithm, const std::string& more = "") {
    EndedRun ended =
        RunText(fmt::format("{} program {{ collectives {{ kind: {} bytes: \"{}B\" }} }} algorithm: "
                            "{} protocol: SIMPLE }}\n{}",
                            fabric, kind, kRanks * kMiB, algorithm, more));
    EXPECT_EQ(ended.exit.status, 0) << ended.exit.errors;
    EXPECT_TRUE(ended.At("conservation.ok").GetBool());
    return ended;
  };
  for (const char* kind : {"ALL_GATHER", "REDUCE_SCATTER"}) {
    for (const char* algorithm : {"PAT", "DIRECT", "RING"}) {
      const EndedRun ended = run(kind, algorithm);
      EXPECT_EQ(ended.OfTier("NIC_LEAF", "payload_bytes"), 2 * kRanks * (kRanks - 1) * kMiB)
          << algorithm << " " << kind;
      EXPECT_EQ(ended.Text("fingerprint"),
                run(kind, algorithm, "network { form: GENERAL }\n").Text("fingerprint"));
    }
  }
  EXPECT_EQ(run("ALL_REDUCE", "DIRECT").OfTier("NIC_LEAF", "payload_bytes"),
            int64_t{2} * 2 * (kRanks - 1) * kRanks * kMiB);
  // Four places exchange 2 x 3/4 of it each; the fifth rank's goes to its neighbour and back.
  EXPECT_EQ(run("ALL_REDUCE", "HALVING_DOUBLING").OfTier("NIC_LEAF", "payload_bytes"),
            2 * (int64_t{4} * 2 * 3 * kRanks * kMiB / 4 + 2 * kRanks * kMiB));
}

// LL: 8 bytes of flags for 8 of data. LL128: 8 for 120.
TEST_F(AlgorithmsTest, FlagsOfLlAndLl128TravelToo) {
  for (const char* algorithm : {"RING", "TREE"}) {
    SCOPED_TRACE(algorithm);
    const EndedRun simple = Run(2, algorithm, "SIMPLE");
    const EndedRun ll = Run(2, algorithm, "LL");
    const EndedRun ll128 = Run(2, algorithm, "LL128");
    const int64_t data = simple.OfTier("NVLINK", "payload_bytes");
    EXPECT_EQ(ll.OfTier("NVLINK", "payload_bytes"), data);
    EXPECT_EQ(ll128.OfTier("NVLINK", "payload_bytes"), data);
    // Packets with flags have headers in the same proportion as those with data.
    const double header_share =
        static_cast<double>(simple.OfTier("NVLINK", "header_bytes")) / static_cast<double>(data);
    const auto overhead = [&](const EndedRun& run) {
      return static_cast<double>(run.OfTier("NVLINK", "header_bytes")) / static_cast<double>(data);
    };
    EXPECT_NEAR(overhead(ll), 2 * (1 + header_share) - 1, 0.01);
    // Lines at the end of chunks are not full.
    EXPECT_NEAR(overhead(ll128), 16.0 / 15 * (1 + header_share) - 1, 0.01);
  }
}

TEST_F(AlgorithmsTest, BothFormsOfPortsGiveOneFingerprint) {
  for (const auto& [servers, algorithm, protocol] :
       {std::tuple(2u, "RING", "LL"), std::tuple(2u, "TREE", "LL128"),
        std::tuple(3u, "TREE", "SIMPLE"), std::tuple(1u, "NVLS", "SIMPLE"),
        std::tuple(2u, "NVLS_TREE", "SIMPLE")}) {
    EXPECT_EQ(Run(servers, algorithm, protocol).Text("fingerprint"),
              Run(servers, algorithm, protocol, "network { form: GENERAL }\n").Text("fingerprint"))
        << algorithm;
  }
}

// Lost packets are sent again, whatever the algorithm.
TEST_F(AlgorithmsTest, AFlapIsRiddenOut) {
  for (const auto& [algorithm, protocol] :
       {std::pair("TREE", "LL"), std::pair("TREE", "SIMPLE"), std::pair("NVLS_TREE", "SIMPLE")}) {
    const EndedRun run =
        Run(2, algorithm, protocol,
            "nccl { IB_TIMEOUT: 10 }\n" + LinkDown("server0/nic3--leaf3", "60us", "600us"));
    EXPECT_GT(run.Drops()["LINK_DOWN"], 0) << algorithm;
    EXPECT_GT(run.Real("collectives.stretch.max"), 1) << algorithm;
  }
}

}  // namespace
}  // namespace railyard::testing
