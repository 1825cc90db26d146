// SPDX-License-Identifier: GPL-2.0-only
// No setting is inert: each field of the blocks gpu, nic, nccl and routing changes the fingerprint
// of a scenario in which it matters.
#include <set>

#include <gtest/gtest.h>

#include "simulator/scenario/scenario.pb.h"
#include "tests/run/program.h"

namespace railyard::testing {
namespace {

struct Setting {
  const char* block;
  const char* field;
  const char* value;  // other than the default, or what the scenario says
  const char* scenario;
};

const char* const kAllReduce =
    "fabric { rail_optimized { servers: 2 } }\n"
    "workload { program { collectives { kind: ALL_REDUCE bytes: \"4MiB\" } } }\n";
const char* const kLargeAllReduce =
    "fabric { rail_optimized { servers: 2 } }\n"
    "workload { program { collectives { kind: ALL_REDUCE bytes: \"64MiB\" } } }\n";
const char* const kInOneServer =
    "fabric { rail_optimized { servers: 1 } }\n"
    "workload { program { collectives { kind: ALL_REDUCE bytes: \"4MiB\" } } }\n";
// Blocks of 1 MiB: 2.29 splits them over more channels than its predecessors, which shows where the
// proxy is not what everything waits for.
const char* const kAllToAll =
    "fabric { rail_optimized { servers: 2 } }\n"
    "workload { program { collectives { kind: ALL_TO_ALL bytes: \"16MiB\" } } }\n"
    "gpu { proxy_post_latency: \"0s\" }\n";
// A ring's way off a server is down for 2 ms.
const char* const kFlap =
    "fabric { rail_optimized { servers: 2 } }\n"
    "workload { program { collectives { kind: ALL_REDUCE bytes: \"16MiB\" } } }\n"
    "nccl { IB_TIMEOUT: 8 IB_RETRY_CNT: 7 }\n"
    "routing { detection_delay: \"100us\" convergence_delay: \"1ms\" }\n"
    "faults { kind: LINK_DOWN link: \"server0/nic2--leaf2\" at: \"100us\" until: \"2100us\" }\n";

const Setting kSettings[] = {
    {"gpu", "launch_latency", "\"9us\"", kAllReduce},
    {"gpu", "nvlink_step_latency", "\"3us\"", kInOneServer},
    {"gpu", "network_step_latency", "\"9us\"", kAllReduce},
    {"gpu", "channel_rate", "\"100Gbps\"", kAllReduce},
    {"gpu", "proxy_post_latency", "\"2us\"", kAllReduce},
    {"nic", "mtu_bytes", "1024", kAllReduce},
    {"nic", "window", "\"16KiB\"", kLargeAllReduce},
    {"nic", "ack_every_packets", "1", kAllReduce},
    {"nccl", "version", "\"2.30.7\"", kAllToAll},
    {"nccl", "IB_TIMEOUT", "9", kFlap},
    {"nccl", "IB_RETRY_CNT", "1", kFlap},
    {"nccl", "CROSS_NIC", "0", kAllReduce},
    {"nccl", "BUFFSIZE", "\"64KiB\"", kAllReduce},
    {"nccl", "MIN_NCHANNELS", "24", kAllReduce},
    {"nccl", "MAX_NCHANNELS", "8", kAllReduce},
    {"nccl", "PXN_DISABLE", "true", kAllToAll},
    {"routing", "detection_delay", "\"1ms\"", kFlap},
    {"routing", "convergence_delay", "\"3ms\"", kFlap},
};

class SettingsEffectTest : public ProgramTest, public ::testing::WithParamInterface<Setting> {};

TEST_P(SettingsEffectTest, TheFieldChangesTheFingerprint) {
  const Setting& setting = GetParam();
  const EndedRun before = RunText(setting.scenario, {"--no-baseline"});
  const EndedRun after = RunText(
      setting.scenario, {"--no-baseline", "--set",
                         std::string(setting.block) + "." + setting.field + "=" + setting.value});
  ASSERT_TRUE(before.has_result()) << before.exit.errors;
  ASSERT_TRUE(after.has_result()) << after.exit.errors;
  EXPECT_NE(before.Text("fingerprint"), after.Text("fingerprint"));
}

INSTANTIATE_TEST_SUITE_P(Settings, SettingsEffectTest, ::testing::ValuesIn(kSettings),
                         [](const ::testing::TestParamInfo<Setting>& setting) {
                           return std::string(setting.param.block) + "_" + setting.param.field;
                         });

TEST(SettingsEffectTableTest, HoldsEveryFieldThereIs) {
  std::set<std::string> covered;
  for (const Setting& setting : kSettings) {
    covered.insert(std::string(setting.block) + "." + setting.field);
  }
  const auto expect_covered = [&](const char* block, const google::protobuf::Descriptor* message) {
    for (int i = 0; i < message->field_count(); ++i) {
      EXPECT_TRUE(covered.contains(std::string(block) + "." + message->field(i)->name()))
          << block << "." << message->field(i)->name();
    }
  };
  expect_covered("gpu", protos::Gpu::descriptor());
  expect_covered("nic", protos::Nic::descriptor());
  expect_covered("nccl", protos::Nccl::descriptor());
  expect_covered("routing", protos::Routing::descriptor());
}

}  // namespace
}  // namespace railyard::testing
