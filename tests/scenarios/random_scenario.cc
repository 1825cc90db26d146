// SPDX-License-Identifier: GPL-2.0-only
#include "tests/scenarios/random_scenario.h"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace railyard::testing {
namespace {

using ::testing::AnyOf;

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  std::string Generate() {
    servers_ = 1 + Below(3);
    std::string text =
        RailOptimized(servers_) + "workload { algorithm: RING protocol: SIMPLE program {\n";
    for (uint32_t i = 1 + Below(3); i > 0; --i) text += Collective();
    text += "} }\n";
    // Timeouts of 262 us and more: shorter ones break queue pairs that only wait in a queue.
    text +=
        fmt::format("nccl {{ IB_TIMEOUT: {} IB_RETRY_CNT: {} CROSS_NIC: {} PXN_DISABLE: {} }}\n",
                    6 + Below(3), Below(8), Below(3), Below(2) == 1);
    text += fmt::format("routing {{ detection_delay: \"{}us\" convergence_delay: \"{}us\" }}\n",
                        Below(300), Below(300));
    text += fmt::format("nic {{ window: \"{}KiB\" ack_every_packets: {} }}\n", 64 << Below(4),
                        1 + Below(8));
    for (uint32_t i = 1 + Below(4); i > 0; --i) text += Fault();
    return text;
  }

 private:
  uint32_t Below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }

  std::string Collective() {
    static const char* const kKinds[] = {"ALL_REDUCE", "ALL_GATHER", "REDUCE_SCATTER",
                                         "BROADCAST",  "REDUCE",     "ALL_TO_ALL"};
    const std::string kind = kKinds[Below(6)];
    const uint32_t ranks = servers_ * 8;
    // From some KiB to some MiB.
    const uint64_t bytes = uint64_t{4} * ranks * (1 + Below(1u << (6 + Below(11))));
    std::string text = fmt::format("  collectives {{ kind: {} bytes: \"{}B\" ", kind, bytes);
    if (kind == "BROADCAST" || kind == "REDUCE") text += fmt::format("root: {} ", Below(ranks));
    return text + "}\n";
  }

  std::string Fault() {
    std::string link;
    do {
      link = Link();
    } while (!links_.insert(link).second);
    const uint32_t at_us = Below(250);
    const std::string until =
        Below(4) == 0 ? "" : fmt::format("{}us", at_us + 1 + Below(1u << Below(12)));
    static const char* const kDirections[] = {"BOTH", "FORWARD", "BACKWARD"};
    const char* const direction = kDirections[Below(3)];
    if (Below(2) == 0) return LinkDown(link, fmt::format("{}us", at_us), until, direction);
    return fmt::format("faults {{ name: \"{}\" at: \"{}us\" {}{} }}\n", link, at_us,
                       until.empty() ? "" : fmt::format("until: \"{}\" ", until),
                       OtherKind(link, direction));
  }

  std::string OtherKind(const std::string& link, const char* direction) {
    const std::string on = fmt::format("link: \"{}\" direction: {} ", link, direction);
    switch (Below(7)) {
      case 0:
        return fmt::format("kind: LOSS {}loss {{ probability: 0.0{}1 }}", on, Below(100));
      case 1:
        return fmt::format(
            "kind: LOSS {}loss {{ gilbert_elliott {{ to_bad: 0.0{} to_good: 0.{} }} }}", on,
            Below(100), 1 + Below(9));
      case 2:
        return fmt::format("kind: DEGRADE {}rate_share: 0.{}", on, 1 + Below(9));
      case 3:
        return fmt::format("kind: DELAY {}delay: \"{}us\" jitter: \"{}us\"", on, Below(30),
                           Below(10));
      case 4:
        return fmt::format("kind: PAUSE_STORM device: \"server{}/nic{}\"", Below(servers_),
                           Below(8));
      case 5:
        return fmt::format(
            "kind: BACKGROUND_LOAD load {{ from: \"server0/gpu*\" to: \"server{}/gpu{}\" rate: "
            "\"{}Gbps\" message: \"64KiB\" }}",
            servers_ - 1, Below(8), 1 + Below(60));
      default:
        return fmt::format("kind: STRAGGLER device: \"server{}/gpu{}\" speed: 0.{}",
                           Below(servers_), Below(8), 1 + Below(9));
    }
  }

  std::string Link() {
    const uint32_t server = Below(servers_);
    const uint32_t gpu = Below(8);
    switch (Below(8)) {
      case 0:
        return fmt::format("server{}/gpu{}--server{}/nvswitch{}", server, gpu, server, Below(4));
      case 1:
        return fmt::format("server{}/gpu{}--server{}/nic{}", server, gpu, server, gpu);
      case 2:
      case 3:
        return fmt::format("leaf{}--spine{}", gpu, Below(servers_));
      default:
        return fmt::format("server{}/nic{}--leaf{}", server, gpu, gpu);
    }
  }

  std::mt19937 random_;
  uint32_t servers_ = 1;
  std::set<std::string> links_;
};

}  // namespace

std::string RandomScenario(uint32_t seed) { return Generator(seed).Generate(); }

void RandomScenarioTest::Check(uint32_t seed) {
  const std::string scenario = RandomScenario(seed);
  SCOPED_TRACE(fmt::format("seed {}:\n{}", seed, scenario));
  const EndedRun run = RunText(scenario);
  ASSERT_THAT(run.exit.status, AnyOf(0, 3, 4)) << run.exit.errors;
  ASSERT_TRUE(run.has_result());
  EXPECT_EQ(run.Text("status"), run.exit.status == 0   ? "COMPLETED"
                                : run.exit.status == 3 ? "JOB_ABORTED"
                                                       : "STALLED");
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
  for (const auto& [reason, packets] : run.Drops()) {
    EXPECT_THAT(reason,
                AnyOf("LINK_DOWN", "NO_ROUTE", "OUT_OF_SEQUENCE", "DUPLICATE", "BIT_ERROR"));
  }
  for (const auto& tier : run.At("tiers").GetArray()) {
    EXPECT_EQ(tier["payload_bytes"].GetInt64(),
              run.links.Sum("payload_bytes", "tier", tier["tier"].GetString()));
  }

  const EndedRun free = RunText(scenario, {"--set", "faults=[]"});
  ASSERT_EQ(free.exit.status, 0) << free.exit.errors;
  EXPECT_EQ(free.Text("status"), "COMPLETED");
  EXPECT_EQ(free.Real("collectives.stretch.max"), 1);
  ASSERT_EQ(free.collectives.size(), run.collectives.size());
  bool is_hit = false;
  for (size_t row = 0; row < free.collectives.size(); ++row) {
    EXPECT_EQ(run.collectives.Text(row, "baseline_duration_ps"),
              free.collectives.Text(row, "duration_ps"));
    EXPECT_GE(free.collectives.Real(row, "slowdown"), 1);
    is_hit |= run.collectives.Text(row, "stretch") != "1";
  }
  // Without losses or delays nothing is disturbed; a run that survived moved the same bytes.
  bool delays = false;
  for (const char* kind : {"DEGRADE", "DELAY", "PAUSE_STORM", "BACKGROUND_LOAD", "STRAGGLER"}) {
    delays |= scenario.find(kind) != std::string::npos;
  }
  EXPECT_FALSE(run.Drops().empty() && is_hit && !delays);
  if (run.exit.status == 0) {
    EXPECT_EQ(run.Integer("payload.total_bytes"), free.Integer("payload.total_bytes"));
    EXPECT_EQ(run.pairs.Sum("payload_bytes"), free.pairs.Sum("payload_bytes"));
  }
}

}  // namespace railyard::testing
