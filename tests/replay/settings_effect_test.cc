// SPDX-License-Identifier: GPL-2.0-only
// No setting is inert: each field of the blocks gpu, nic, nccl, network, routing and switch, and of
// a fabric's servers, changes the fingerprint of a scenario in which it matters.
#include <algorithm>
#include <cctype>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/scenario/schema/scenario.pb.h"
#include "tests/run/program.h"
#include "topologies/formats/topology.pb.h"

namespace railyard::testing {
namespace {

struct Setting {
  std::string field;  // by its path
  const char* value;  // other than the default, or what the scenario says
  std::string scenario;
};
void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.field; }

const char* const kAllReduce =
    "fabric { rail_optimized { servers: 2 } }\n"
    "workload { program { collectives { kind: ALL_REDUCE bytes: \"4MiB\" } } algorithm: RING "
    "protocol: SIMPLE }\n";
const char* const kLargeAllReduce =
    "fabric { rail_optimized { servers: 2 } }\n"
    "workload { program { collectives { kind: ALL_REDUCE bytes: \"64MiB\" } } algorithm: RING "
    "protocol: SIMPLE }\n";
const char* const kInOneServer =
    "fabric { rail_optimized { servers: 1 } }\n"
    "workload { program { collectives { kind: ALL_REDUCE bytes: \"4MiB\" } } algorithm: RING "
    "protocol: SIMPLE }\n";
const char* const kTuned =
    "fabric { rail_optimized { servers: 2 } }\n"
    "workload { program { collectives { kind: ALL_REDUCE bytes: \"4MiB\" } } }\n";
// Blocks of 1 MiB: 2.29 splits them over more channels than its predecessors, which shows where the
// proxy is not what everything waits for.
const char* const kAllToAll =
    "fabric { rail_optimized { servers: 2 } }\n"
    "workload { program { collectives { kind: ALL_TO_ALL bytes: \"16MiB\" } } }\n"
    "gpu { proxy_post_latency: \"0s\" }\n";
const char* const kAllToAllInOneServer =
    "fabric { rail_optimized { servers: 1 } }\n"
    "workload { program { collectives { kind: ALL_TO_ALL bytes: \"64MiB\" } } }\n";
const char* const kNvls =
    "fabric { rail_optimized { servers: 1 } }\n"
    "workload { program { collectives { kind: ALL_REDUCE bytes: \"64MiB\" } } algorithm: NVLS }\n";
const char* const kNvlsTree =
    "fabric { rail_optimized { servers: 2 } }\n"
    "workload { program { collectives { kind: ALL_REDUCE bytes: \"64MiB\" } } algorithm: NVLS_TREE "
    "}\n";
// Without latency of the NICs NCCL takes Tree or NVLSTree.
const std::string kOverEfa = std::string(kTuned) + "nccl { NET: \"AWS Libfabric\" }\n";
const char* const kInfiniBand =
    "fabric { rail_optimized { servers: 2 } }\n"
    "workload { program { collectives { kind: ALL_REDUCE bytes: \"16MiB\" } } }\n"
    "network { network_flow_control: CREDITS }\n";
// A scenario in which NCCL chooses PAT: one GPU per server.
const char* const kPat =
    "fabric { rail_optimized { servers: 4 gpus_per_server: 1 } }\n"
    "workload { program { collectives { kind: ALL_GATHER bytes: \"1MiB\" } } }\n";
// A ring's way off a server is down for 2 ms.
const char* const kFlap =
    "fabric { rail_optimized { servers: 2 } }\n"
    "workload { program { collectives { kind: ALL_REDUCE bytes: \"16MiB\" } } algorithm: RING "
    "protocol: SIMPLE }\n"
    "nccl { IB_TIMEOUT: 8 IB_RETRY_CNT: 7 }\n"
    "routing { detection_delay: \"100us\" convergence_delay: \"1ms\" }\n"
    "faults { kind: LINK_DOWN link: \"server0/nic2--leaf2\" at: \"100us\" until: \"2100us\" }\n";

// Eight GPUs send to one, over one leaf: blocks of 4 MiB.
std::string Incast(const std::string& more, const char* bytes = "36MiB") {
  return std::string("fabric { rail_optimized { servers: 9 gpus_per_server: 1 } }\n") +
         "workload { program { collectives { kind: GATHER bytes: \"" + bytes + "\" } } }\n" + more;
}
std::string IncastWith(const std::string& control, const char* bytes = "36MiB") {
  return Incast("nic { congestion_control { " + control + " } }\n", bytes);
}
// The leaf pauses its senders.
const std::string kPaused = Incast("switch { buffer: \"2MiB\" }\n");
// The leaf drops.
const std::string kLossy =
    Incast("switch { buffer: \"256KiB\" } network { network_flow_control: NONE }\n");
const std::string kDcqcn = IncastWith("dcqcn {}");
const std::string kSockets = std::string(kAllReduce) + "nccl { NET: \"Socket\" }\n";
// The leaf drops what TCP sends.
std::string LossySockets(const std::string& cubic) {
  return Incast(
      "nccl { NET: \"Socket\" SOCKET_NTHREADS: 2 } switch { buffer: \"1MiB\" } nic { "
      "congestion_control { cubic { " +
          cubic + " } } }\n",
      "180MiB");
}
const std::string kLossySockets = LossySockets("");
// From rail to rail, so over the spines.
const std::string kAcrossRails =
    "fabric { rail_optimized { servers: 4 gpus_per_server: 4 } }\n"
    "workload { program { collectives { kind: PERMUTATION bytes: \"4MiB\" } } }\n"
    "nccl { PXN_DISABLE: true }\n";
// The only cable of a leaf to a spine that carries much.
const std::string kCutSpine =
    "fabric { rail_optimized { servers: 2 } }\n"
    "workload { program { collectives { kind: ALL_TO_ALL bytes: \"32MiB\" } } }\n"
    "nccl { PXN_DISABLE: true IB_TIMEOUT: 4 }\n"
    "routing { detection_delay: \"50us\" convergence_delay: \"100us\" }\n"
    "faults { kind: LINK_DOWN link: \"leaf0--spine0\" at: \"100us\" }\n";
// Cut often enough that it does not simply go back to the rate before the cut.
const std::string kLongDcqcn = IncastWith(
    "dcqcn { fast_recovery_iterations: 1 increase_timer: \"20us\" byte_counter: \"200KB\" "
    "alpha_gain: 0.01 }",
    "180MiB");

// NICs of two ports that NCCL merges, one of which is down permanently or until it can recover.
std::string MergedPorts(const std::string& nccl, const std::string& until = "",
                        const std::string& compute_before = "20ms") {
  return "fabric { dual_tor { servers { count: 2 platform: \"single-gpu\" nic_rate: \"100Gbps\" } "
         "aggs_per_plane: 2 } }\n"
         "workload { program { collectives { kind: ALL_REDUCE bytes: \"1MiB\" compute_before: \"" +
         compute_before +
         "\" repeat: 40 } } algorithm: RING protocol: SIMPLE }\n"
         "nic { link_aggregation: false }\n"
         "routing { detection_delay: \"100us\" convergence_delay: \"1ms\" }\n"
         "nccl { version: \"2.30.7\" IB_TIMEOUT: 6 IB_RESILIENCY_PORT_FAILOVER: true " +
         nccl +
         "}\n"
         "faults { kind: LINK_DOWN link: \"server1/nic0--segment0/rail0/tor0\" when { number: 1 "
         "kind: ALL_REDUCE } at: \"30us\" " +
         (until.empty() ? "" : "until: \"" + until + "\" ") + "}\n";
}
const std::string kTwoPorts =
    "fabric { dual_tor { servers { count: 2 platform: \"single-gpu\" } aggs_per_plane: 2 } }\n"
    "workload { program { collectives { kind: ALL_REDUCE bytes: \"1MiB\" } } algorithm: RING "
    "protocol: SIMPLE }\n";
const std::string kTwoQueuePairs =
    std::string(kLargeAllReduce) + "nccl { IB_QPS_PER_CONNECTION: 2 }\n";
const std::string kFailedOver = MergedPorts("");
const std::string kRecovered = MergedPorts(
    "IB_RESILIENCY_PORT_RECOVERY: true IB_RESILIENCY_PORT_RECOVERY_START_DELAY: 20 "
    "IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT: 50 ",
    "100ms");

// Inside a PCIe switch P2P, between them SHM.
std::string OverPcie(const std::string& kind) {
  return "fabric { rail_optimized { mixed_servers { count: 1 platform: \"pcie-8xa100\" } } }\n"
         "workload { program { collectives { kind: " +
         kind + " bytes: \"4MiB\" } } }\n";
}

const char* const kTwoServers =
    "fabric { rail_optimized { mixed_servers { count: 2 } } }\n"
    "workload { program { collectives { kind: ALL_REDUCE bytes: \"4MiB\" } } algorithm: RING "
    "protocol: SIMPLE }\n";
const char* const kOneServer =
    "fabric { rail_optimized { mixed_servers { count: 1 } } }\n"
    "workload { program { collectives { kind: ALL_REDUCE bytes: \"4MiB\" } } algorithm: RING "
    "protocol: SIMPLE }\n";
const std::string kServers = "fabric.rail_optimized.mixed_servers[0]";

const std::vector<Setting> kSettings = {
    {"gpu.launch_latency", "\"9us\"", kAllReduce},
    {"gpu.nvlink_step_latency", "\"3us\"", kInOneServer},
    {"gpu.network_step_latency", "\"9us\"", kAllReduce},
    {"gpu.channel_rate", "\"100Gbps\"", kAllReduce},
    {"gpu.proxy_post_latency", "\"2us\"", kAllReduce},
    {"gpu.proxy_arrival_latency", "\"2us\"", kAllReduce},
    {"gpu.generation", "VOLTA", kInOneServer},
    {"gpu.launch_latency_scale", "1.1", kInOneServer},
    {"gpu.step_latency_scale", "1.1", kInOneServer},
    {"gpu.channel_rate_scale", "0.5", kInOneServer},
    {"nccl.ALGO", "\"^NVLSTree\"", kTuned},
    {"nccl.PROTO", "\"LL128\"", kTuned},
    {"nccl.IB_QPS_PER_CONNECTION", "2", kAcrossRails},
    {"nccl.IB_SPLIT_DATA_ON_QPS", "true", kTwoQueuePairs},
    {"nccl.IB_RESILIENCY_PORT_FAILOVER", "false", kFailedOver},
    {"nccl.IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY", "1", kFailedOver},
    {"nccl.IB_RESILIENCY_PORT_RECOVERY", "true", MergedPorts("", "2ms", "400ms")},
    {"nccl.IB_RESILIENCY_PORT_RECOVERY_START_DELAY", "150", kRecovered},
    {"nccl.IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT", "80", kRecovered},
    {"nccl.IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_TIMEOUT", "10", kRecovered},
    {"nccl.IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX", "2", kRecovered},
    {"nic.link_aggregation", "false", kTwoPorts},
    {"nic.mtu_bytes", "1024", kAllReduce},
    {"nic.window", "\"16KiB\"", kLargeAllReduce},
    {"nic.ack_every_packets", "1", kAllReduce},
    {"nic.burst_packets", "4", kPaused},
    {"nic.recovery", "SELECTIVE_REPEAT", kLossy},
    {"nic.reorder_tolerance_packets", "16", kLossy},
    {"nic.cnp_interval", "\"5us\"", kDcqcn},
    {"nic.congestion_control", "{ none {} }", kDcqcn},
    {"nic.congestion_control", "{ dctcp {} }", kDcqcn},
    {"nic.congestion_control", "{ timely {} }", kDcqcn},
    {"nic.congestion_control", "{ hpcc {} }", kDcqcn},
    {"nic.congestion_control", "{ swift {} }", kDcqcn},
    {"nic.congestion_control.dcqcn.alpha_gain", "0.1", kDcqcn},
    {"nic.congestion_control.dcqcn.alpha_timer", "\"5us\"", kDcqcn},
    {"nic.congestion_control.dcqcn.increase_timer", "\"20us\"", kDcqcn},
    {"nic.congestion_control.dcqcn.byte_counter", "\"100KB\"", kDcqcn},
    {"nic.congestion_control.dcqcn.fast_recovery_iterations", "1", kDcqcn},
    {"nic.congestion_control.dcqcn.additive_increase", "\"10Gbps\"", kLongDcqcn},
    {"nic.congestion_control.dcqcn.hyper_increase", "\"10Gbps\"", kLongDcqcn},
    {"nic.congestion_control.dcqcn.min_rate", "\"50Gbps\"", kDcqcn},
    {"nic.congestion_control.dctcp.gain", "0.5", IncastWith("dctcp {}")},
    {"nic.congestion_control.dctcp.initial_alpha", "0.5", IncastWith("dctcp {}")},
    {"nic.congestion_control.timely.difference_weight", "0.1", IncastWith("timely {}")},
    {"nic.congestion_control.timely.beta", "0.2", IncastWith("timely {}")},
    {"nic.congestion_control.timely.delta", "\"1Gbps\"", IncastWith("timely {}")},
    {"nic.congestion_control.timely.hyper_samples", "2", IncastWith("timely {}")},
    {"nic.congestion_control.timely.low_threshold", "\"5us\"", IncastWith("timely {}")},
    {"nic.congestion_control.timely.high_threshold", "\"60us\"", IncastWith("timely {}")},
    {"nic.congestion_control.timely.min_rate", "\"20Gbps\"", IncastWith("timely {}")},
    {"nic.congestion_control.hpcc.eta", "0.5", IncastWith("hpcc {}")},
    {"nic.congestion_control.hpcc.max_stage", "0", IncastWith("hpcc {}")},
    {"nic.congestion_control.hpcc.additive_increase", "\"8KiB\"", IncastWith("hpcc {}")},
    {"nic.congestion_control.swift.base_target", "\"30us\"", IncastWith("swift {}")},
    {"nic.congestion_control.swift.hop_target", "\"3us\"", IncastWith("swift {}")},
    {"nic.congestion_control.swift.scaling_range", "\"1us\"", IncastWith("swift {}")},
    {"nic.congestion_control.swift.scaling_window_min", "5", IncastWith("swift {}")},
    {"nic.congestion_control.swift.scaling_window_max", "20", IncastWith("swift {}")},
    {"nic.congestion_control.swift.additive_increase", "4", IncastWith("swift {}")},
    {"nic.congestion_control.swift.beta", "0.2", IncastWith("swift {}")},
    {"nic.congestion_control.swift.max_decrease", "0.1", IncastWith("swift {}")},
    {"nic.congestion_control.swift.min_window", "30", IncastWith("swift { base_target: \"2us\" }")},
    {"nic.congestion_control.cubic.beta", "0.3", kLossySockets},
    {"nic.congestion_control.cubic.scaling", "1e9", kLossySockets},
    {"nic.congestion_control.cubic.initial_window_packets", "2", kLossySockets},
    {"gpu.socket_send_rate", "\"10Gbps\"", kSockets},
    {"gpu.socket_receive_rate", "\"10Gbps\"", kSockets},
    {"nccl.NET", "\"Socket\"", kAllReduce},
    {"nccl.NET", "\"AWS Libfabric\"", kAllReduce},
    {"nccl.OFI_NCCL_NET_LATENCY", "0", kOverEfa},
    {"nccl.IB_DISABLE", "true", kAllReduce},
    {"nccl.SOCKET_NTHREADS", "4", kSockets},
    {"nccl.NSOCKS_PERTHREAD", "2", kLossySockets},
    {"nccl.version", "\"2.30.7\"", kAllToAll},
    {"nccl.IB_TIMEOUT", "9", kFlap},
    {"nccl.IB_RETRY_CNT", "1", kFlap},
    {"nccl.CROSS_NIC", "0", kAllReduce},
    {"nccl.BUFFSIZE", "\"64KiB\"", kAllReduce},
    {"nccl.MIN_NCHANNELS", "24", kAllReduce},
    {"nccl.MAX_NCHANNELS", "8", kAllReduce},
    {"nccl.PXN_DISABLE", "true", kAllToAll},
    {"nccl.MIN_CTAS", "24", kAllReduce},
    {"nccl.MAX_CTAS", "8", kAllReduce},
    {"nccl.NCHANNELS_PER_NET_PEER", "1", kAllToAll},
    {"nccl.P2P_NET_CHUNKSIZE", "\"64KiB\"", kAllToAll},
    {"nccl.P2P_NVL_CHUNKSIZE", "\"64KiB\"", kAllToAllInOneServer},
    {"nccl.P2P_LL_THRESHOLD", "\"4MiB\"", kAllToAllInOneServer},
    {"nccl.P2P_PCI_CHUNKSIZE", "\"64KiB\"", OverPcie("ALL_TO_ALL")},
    {"nccl.P2P_LEVEL", "\"SYS\"", OverPcie("ALL_REDUCE")},
    {"nccl.P2P_DISABLE", "true", OverPcie("ALL_REDUCE")},
    {"nccl.NVLS_ENABLE", "false", kTuned},
    {"nccl.NVLS_CHUNKSIZE", "\"32KiB\"", kNvls},
    {"nccl.NVLSTREE_MAX_CHUNKSIZE", "\"64KiB\"", kNvlsTree},
    {"nccl.COLLNET_ENABLE", "1", kInfiniBand},
    {"nccl.PAT_ENABLE", "0", kPat},
    {"network.network_flow_control", "NONE", kPaused},
    {"network.credit", "\"32KiB\"", Incast("network { network_flow_control: CREDITS }\n")},
    {"network.nvlink_credit", "\"8KiB\"", kInOneServer},
    {"network.pcie_credit", "\"8KiB\"", OverPcie("ALL_REDUCE")},
    {"network.pause_response", "\"5us\"", kPaused},
    {"network.load_balancing", "FLOWLET", kAcrossRails},
    {"network.load_balancing", "ADAPTIVE", kAcrossRails},
    {"network.load_balancing", "SPRAYING", kAcrossRails},
    {"network.flowlet_gap", "\"0s\"", kAcrossRails + "network { load_balancing: FLOWLET }\n"},
    {"network.storm_threshold", "\"10us\"", kPaused},
    {"routing.detection_delay", "\"1ms\"", kFlap},
    {"routing.convergence_delay", "\"3ms\"", kFlap},
    {"routing.hop_share", "0", kCutSpine},
    {"switch.buffer", "\"1MiB\"", kPaused},
    {"switch.alpha", "1", kPaused},
    {"switch.lossless_data", "false", kPaused},
    {"switch.headroom", "\"4KiB\"", kPaused},
    {"switch.headroom_scale", "0", kPaused},
    {"switch.mtu", "\"4200B\"",
     Incast("switch { buffer: \"2MiB\" headroom_scale: 0.5 }\nnccl { IB_TIMEOUT: 8 IB_RETRY_CNT: 7 "
            "}\n")},
    {"switch.xon_offset", "\"64KiB\"", kPaused},
    {"switch.ecn_enabled", "false", kDcqcn},
    {"switch.ecn_kmin", "\"200KiB\"", kDcqcn},
    {"switch.ecn_kmax", "\"1MiB\"", kDcqcn},
    {"switch.ecn_pmax", "1", kDcqcn},
    {"switches", "[{ device: \"leaf*\" switch { buffer: \"1MiB\" } }]", kPaused},
    {kServers + ".count", "3", kTwoServers},
    {kServers + ".platform", "\"dgx-a100\"", kTwoServers},
    {kServers + ".gpus", "4", kTwoServers},
    {kServers + ".nics", "4", kTwoServers},
    {kServers + ".nic_rate", "\"200Gbps\"", kTwoServers},
    {kServers + ".nic_ports", "2", kTwoServers},
    {kServers + ".host_rate", "\"100Gbps\"", kTwoServers},
    {kServers + ".nvlink_rate", "\"100GBps\"", kOneServer},
    {kServers + ".compute_capability", "80", kOneServer},
    {kServers + ".cpu", "\"AMD\"", kTwoServers},
    {kServers + ".host_delay", "\"2us\"", kTwoServers},
    {kServers + ".nvlink_delay", "\"1us\"", kOneServer},
    {kServers + ".nvswitch_latency", "\"1us\"", kOneServer},
};

class SettingsEffectTest : public ProgramTest, public ::testing::WithParamInterface<Setting> {};

TEST_P(SettingsEffectTest, TheFieldChangesTheFingerprint) {
  const Setting& setting = GetParam();
  const EndedRun before = RunText(setting.scenario, {"--no-baseline"});
  const EndedRun after =
      RunText(setting.scenario, {"--no-baseline", "--set", setting.field + "=" + setting.value});
  ASSERT_TRUE(before.has_result()) << before.exit.errors;
  ASSERT_TRUE(after.has_result()) << after.exit.errors;
  EXPECT_NE(before.Text("fingerprint"), after.Text("fingerprint"));
}

// "nic.congestion_control={ swift {} }" as "nic_congestion_control_swift".
std::string TestName(const ::testing::TestParamInfo<Setting>& setting) {
  std::string name = setting.param.field;
  const std::string value = setting.param.value;
  if (setting.param.field == "network.load_balancing" || setting.param.field == "nccl.NET") {
    name.append("_").append(value);
  }
  if (value.starts_with("{ ")) name.append("_").append(value, 2, value.find(' ', 2) - 2);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Settings, SettingsEffectTest, ::testing::ValuesIn(kSettings), TestName);

// Variables of NCCL's that are not modelled (tests/scenario/settings_loader_test.cc).
bool IsRefused(const std::string& path) {
  static const std::set<std::string> kRefused = {"nccl.NTHREADS",
                                                 "nccl.SHM_DISABLE"};  // tests/run/pcie_test.cc
  return kRefused.contains(path);
}

void ExpectCovered(const std::string& block, const google::protobuf::Descriptor& message) {
  for (int i = 0; i < message.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *message.field(i);
    const std::string path = block + "." + field.name();
    if (path == "network.form") continue;  // must not have an effect: the test below
    // Hashes packets and changes none: tests/run/outcome_test.cc.
    if (path == "network.trajectory_hash") continue;
    if (IsRefused(path)) continue;  // any other value than the default
    // A file, of which tests/topologies/nccl_topology_test.cc has the effect.
    if (path == kServers + ".nccl_topology") continue;
    // Names a control of a program: tests/api/run_test.cc has the effect.
    if (path == "nic.congestion_control.registered") continue;
    // tests/scenarios/reroute_test.cc tests the effect for named devices.
    if (path == "routing.devices") continue;
    if (field.cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
      ExpectCovered(path, *field.message_type());
      continue;
    }
    EXPECT_TRUE(std::any_of(kSettings.begin(), kSettings.end(), [&](const Setting& setting) {
      return setting.field == path;
    })) << path;
  }
}

TEST(SettingsEffectTableTest, HoldsEveryFieldThereIs) {
  ExpectCovered("gpu", *protos::Gpu::descriptor());
  ExpectCovered("nic", *protos::Nic::descriptor());
  ExpectCovered("nccl", *protos::Nccl::descriptor());
  ExpectCovered("network", *protos::Network::descriptor());
  ExpectCovered("routing", *protos::Routing::descriptor());
  ExpectCovered("switch", *protos::Switch::descriptor());
  ExpectCovered(kServers, *protos::Servers::descriptor());
}

// The general form is another way to the same results: pauses, drops, marks, losses, credits.
class FormTest : public ProgramTest, public ::testing::WithParamInterface<std::string> {};

TEST_P(FormTest, NoResultDependsOnThePortsForm) {
  const EndedRun in_short = RunText(GetParam(), {"--no-baseline"});
  const EndedRun in_general =
      RunText(GetParam(), {"--no-baseline", "--set", "network.form=GENERAL"});
  ASSERT_TRUE(in_short.has_result()) << in_short.exit.errors;
  ASSERT_TRUE(in_general.has_result()) << in_general.exit.errors;
  EXPECT_EQ(in_short.Text("fingerprint"), in_general.Text("fingerprint"));
  EXPECT_GT(in_general.Integer("events"), in_short.Integer("events"));
}

INSTANTIATE_TEST_SUITE_P(Scenarios, FormTest,
                         ::testing::Values(kAllReduce, kAllToAll, kFlap, kPaused, kLossy, kDcqcn,
                                           kLossySockets, IncastWith("hpcc {}"),
                                           kAcrossRails + "network { load_balancing: ADAPTIVE }\n",
                                           Incast("network { network_flow_control: CREDITS }\n"),
                                           OverPcie("ALL_REDUCE"), OverPcie("ALL_TO_ALL")),
                         [](const auto& scenario) { return std::to_string(scenario.index); });

// Each counter of the transport is non-zero where what it counts happens.
TEST_F(ProgramTest, EveryTransportCounterCounts) {
  const EndedRun marked = RunText(kDcqcn);
  EXPECT_GT(marked.Integer("transport.ecn_marked"), 0);
  EXPECT_GT(marked.Integer("transport.cnp"), 0);
  EXPECT_LE(marked.Integer("transport.cnp"), marked.Integer("transport.ecn_marked"));
  EXPECT_EQ(marked.Integer("transport.retransmitted_packets"), 0);
  const EndedRun paused = RunText(kPaused);
  EXPECT_GT(paused.Integer("transport.pfc_pause_ps"), 0);
  EXPECT_THAT(paused.Drops(), ::testing::IsEmpty());
  const EndedRun lossy = RunText(kLossy);
  EXPECT_EQ(lossy.Integer("transport.pfc_pause_ps"), 0);
  EXPECT_GT(lossy.Integer("transport.retransmitted_packets"), 0);
  EXPECT_GT(lossy.Drops().at("BUFFER_FULL"), 0);
  const EndedRun recovered = RunText(kRecovered);
  EXPECT_GT(recovered.Integer("transport.port_failovers"), 0);
  EXPECT_GT(recovered.Integer("transport.port_recoveries"), 0);
  EXPECT_LE(recovered.Integer("transport.port_recoveries"),
            recovered.Integer("transport.port_failovers"));
  // Without room for what arrives after a pause frame, a lossless class loses packets.
  const EndedRun without_headroom = RunText(kPaused, {"--set", "switch.headroom_scale=0"});
  EXPECT_GT(without_headroom.Drops().at("HEADROOM_FULL"), 0);
}

// Two GPUs send one 4 MiB each, 2,048 packets. Where everything that finds a queue is marked, that
// is all but the first; and where every mark is answered, as many notifications come back.
TEST_F(ProgramTest, MarksAndTheirNotificationsAreCounted) {
  const std::string gather =
      "fabric { rail_optimized { servers: 3 gpus_per_server: 1 } }\n"
      "workload { program { collectives { kind: GATHER bytes: \"12MiB\" } } }\n"
      "switch { ecn_kmin: \"0B\" ecn_kmax: \"0B\" }\n";
  const EndedRun marked = RunText(gather);
  EXPECT_EQ(marked.Integer("transport.ecn_marked"), (8 << 20) / 4096 - 1);
  EXPECT_EQ(marked.Integer("transport.cnp"), 0);
  const EndedRun notified =
      RunText(gather + "nic { congestion_control { dcqcn {} } cnp_interval: \"0s\" }\n");
  EXPECT_GT(notified.Integer("transport.cnp"), 0);
  EXPECT_EQ(notified.Integer("transport.cnp"), notified.Integer("transport.ecn_marked"));
}

TEST_F(ProgramTest, InPlaceChangesTheFingerprint) {
  const std::string text =
      "fabric { rail_optimized { servers: 2 gpus_per_server: 1 } }\n"
      "workload { program { collectives { kind: ALL_TO_ALL bytes: \"64MiB\" } } }\n"
      "nccl { version: \"2.29.2\" }\n";
  const EndedRun out_of_place = RunText(text, {"--no-baseline"});
  const EndedRun in_place =
      RunText(text, {"--no-baseline", "--set", "workload.program.collectives[0].in_place=true"});
  EXPECT_NE(out_of_place.Text("fingerprint"), in_place.Text("fingerprint"));
}

TEST_F(ProgramTest, APauseStormIsNoted) {
  const EndedRun run = RunText(kPaused, {"--set", "network.storm_threshold=\"10us\""});
  EXPECT_THAT(run.exit.output,
              ::testing::ContainsRegex("PAUSE_STORM at .* had to wait for longer than the storm "
                                       "threshold"));
}

}  // namespace
}  // namespace railyard::testing
