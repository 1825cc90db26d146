// SPDX-License-Identifier: GPL-2.0-only
// CollNetDirect as a run has it: what crosses the NICs where the network's switches gather and
// scatter, by closed forms.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

struct Case {
  const char* kind;
  const char* bytes;  // of all blocks
  uint64_t byte_count;
};

std::string NameOf(const ::testing::TestParamInfo<Case>& info) {
  return fmt::format("{}_{}", info.param.kind, info.param.bytes);
}

class CollnetTest : public ProgramTest, public ::testing::WithParamInterface<Case> {};

// Blocks of S / n on N servers: a NIC gives its GPU's block and gets those of its rail, or, of a
// ReduceScatter, the other way round. A byte more on the wire is a fault.
TEST_P(CollnetTest, NicsCarryTheirRailsBlocks) {
  constexpr uint64_t kServers = 3;
  const uint64_t block_bytes = GetParam().byte_count / (kServers * 8);
  const bool gathers = std::string(GetParam().kind) == "ALL_GATHER";
  const EndedRun run =
      RunText(RailOptimized(kServers) +
              fmt::format("workload {{ program {{ collectives {{ kind: {} bytes: \"{}\" }} }} "
                          "algorithm: COLLNET_DIRECT }}\n",
                          GetParam().kind, GetParam().bytes) +
              "nccl { COLLNET_ENABLE: 1 } network { network_flow_control: CREDITS }");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  uint64_t nic_wires = 0;
  for (size_t row = 0; row < run.links.size(); ++row) {
    if (run.links.Text(row, "tier") != "NIC_LEAF") continue;
    ++nic_wires;
    const bool is_outgoing = run.links.Text(row, "link").starts_with("server");
    EXPECT_EQ(static_cast<uint64_t>(run.links.Integer(row, "payload_bytes")),
              block_bytes * (is_outgoing == gathers ? 1 : kServers))
        << run.links.Text(row, "link");
  }
  EXPECT_EQ(nic_wires, 2 * (8 * kServers));
  // These bytes belong to no pair of GPUs; each GPU counts what it sends and receives.
  const Table in_network = run.Query("SELECT * FROM in_network WHERE switches = 'NETWORK'");
  ASSERT_EQ(in_network.size(), 8 * kServers);
  uint64_t received = 0;
  for (size_t row = 0; row < in_network.size(); ++row) {
    EXPECT_EQ(in_network.Text(row, "operation"), gathers ? "MULTICAST" : "REDUCE");
    EXPECT_EQ(in_network.Text(row, "tiers_crossed").substr(0, 13), "HOST+NIC_LEAF");
    EXPECT_EQ(static_cast<uint64_t>(in_network.Integer(row, "sent_bytes")),
              block_bytes * (gathers ? 1 : kServers));
    EXPECT_EQ(static_cast<uint64_t>(in_network.Integer(row, "received_bytes")),
              block_bytes * (gathers ? kServers : 1));
    received += static_cast<uint64_t>(in_network.Integer(row, "received_bytes"));
  }
  const auto total = static_cast<uint64_t>(run.Integer("payload.total_bytes"));
  EXPECT_EQ(static_cast<uint64_t>(run.pairs.Sum("payload_bytes")) + received, total);
  EXPECT_EQ(run.Real("payload.left_server_share"),
            static_cast<double>(received) / static_cast<double>(total));
}

INSTANTIATE_TEST_SUITE_P(Kinds, CollnetTest,
                         ::testing::Values(Case{"ALL_GATHER", "24MiB", 24 << 20},
                                           Case{"REDUCE_SCATTER", "24MiB", 24 << 20},
                                           Case{"ALL_GATHER", "96KiB", 96 << 10},
                                           Case{"REDUCE_SCATTER", "96KiB", 96 << 10}),
                         NameOf);

}  // namespace
}  // namespace railyard::testing
