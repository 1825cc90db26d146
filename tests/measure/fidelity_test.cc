// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/fidelity.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/collectives/collective_sizes.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

MeasuredRow Row() {
  MeasuredRow row;
  row.source_id = "somewhere-2n";
  row.collective = "all_reduce";
  row.nodes = 2;
  row.gpus_per_node = 8;
  row.gpu = "H100-SXM5-80GB";
  row.nics = "8x400 IB NDR";
  row.nccl_version = "unknown";
  row.algorithm_hint = "auto";
  row.bytes = 1 << 20;
  row.time_us = 100;
  return row;
}

std::string TextOf(const FidelityPoint& point) { return point.point.scenario.ToText(); }

TEST(FidelityTest, ARowIsModelledByWhatItSaysOfTheMachine) {
  const FidelityPoint point = PointOf(Row());
  EXPECT_EQ(point.reason, "");
  EXPECT_EQ(point.modelled_as, "dgx-h100, 2 x 8 GPUs, InfiniBand");
  EXPECT_EQ(point.point.collective, PerfCollective::kAllReduce);
  EXPECT_THAT(TextOf(point), HasSubstr("platform: \"dgx-h100\""));
  EXPECT_THAT(TextOf(point), HasSubstr("count: 2\n"));
  EXPECT_THAT(TextOf(point), HasSubstr("gpus: 8\n"));
  EXPECT_THAT(TextOf(point), HasSubstr("network_flow_control: CREDITS"));
  EXPECT_THAT(TextOf(point), Not(HasSubstr("nccl")));
  EXPECT_THAT(TextOf(point), Not(HasSubstr("workload")));
}

// NVL72: all GPUs of a rack are one node to NCCL; racks are taken to be equally full.
TEST(FidelityTest, HostsOfARackAreOneNode) {
  MeasuredRow row = Row();
  row.gpu = "GB300";
  row.nics = "";
  row.gpus_per_node = 4;
  row.nodes = 9;
  EXPECT_EQ(PointOf(row).modelled_as, "gb300-nvl72, 1 x 36 GPUs, NVLink only");
  row.nodes = 20;
  EXPECT_EQ(PointOf(row).modelled_as,
            "gb300-nvl72, 2 x 40 GPUs, RoCE, NICs not stated: the platform's");
  row.nodes = 37;
  EXPECT_EQ(PointOf(row).reason, "racks of NVL72 that are not filled equally");
  row.gpu = "GH200 120GB";
  row.nodes = 2;
  EXPECT_THAT(PointOf(row).modelled_as, HasSubstr("gh200, 2 x 4 GPUs"));
}

TEST(FidelityTest, AColumnThatNamesSeveralGpusHasTheFirst) {
  MeasuredRow row = Row();
  row.gpu = "H200 or B200 (not stated)";
  EXPECT_THAT(PointOf(row).modelled_as, HasSubstr("dgx-h200"));
  row.gpu = "H20-3e";
  EXPECT_THAT(PointOf(row).modelled_as, HasSubstr("h20,"));
}

// Four NICs of eight GPUs: GPUs 0 and 1 share the first, 2 and 3 the second.
TEST(FidelityTest, PartsOfAServerHaveTheNicsOfTheirGpus) {
  MeasuredRow row = Row();
  row.nics = "4x400 IB";
  const std::vector<uint32_t> nics_of_gpus = {1, 1, 2, 2, 3, 3, 4, 4};
  for (uint32_t gpus = 1; gpus <= 8; ++gpus) {
    row.gpus_per_node = gpus;
    EXPECT_THAT(TextOf(PointOf(row)), HasSubstr(fmt::format("nics: {}", nics_of_gpus[gpus - 1])));
  }
}

TEST(FidelityTest, ForcedAlgorithmsAreNccls) {
  MeasuredRow row = Row();
  const std::pair<const char*, const char*> hints[] = {
      {"NVLS_TREE forced", "algorithm: NVLS_TREE"},
      {"NVLSTree forced; NCCL_MIN_CTAS=24", "algorithm: NVLS_TREE"},
      {"NCCL 2.27, PAT forced", "algorithm: PAT"},
      {"Tree forced", "algorithm: TREE"}};
  for (const auto& [hint, field] : hints) {
    row.algorithm_hint = hint;
    EXPECT_THAT(TextOf(PointOf(row)), HasSubstr(field)) << hint;
  }
  row.algorithm_hint = "Magic forced";
  EXPECT_EQ(PointOf(row).reason, "no algorithm \"Magic\" of NCCL");
}

TEST(FidelityTest, GooglesPlugInSetsNcclsVariables) {
  MeasuredRow row = Row();
  row.algorithm_hint = "vendor profile (gIB)";
  row.nics = "8x400 RoCE";
  EXPECT_THAT(TextOf(PointOf(row)), HasSubstr("CROSS_NIC: 0"));
  EXPECT_THAT(TextOf(PointOf(row)), HasSubstr("IB_QPS_PER_CONNECTION: 4"));
  EXPECT_EQ(PointOf(row).modelled_as, "dgx-h100, 2 x 8 GPUs, RoCE with gIB, latencies assumed");
}

// The variables of Google's recipes for A3 Mega.
TEST(FidelityTest, TcpxoHasGooglesVariablesAndIsSaidToBeAssumed) {
  MeasuredRow row = Row();
  row.algorithm_hint = "FasTrak";
  row.nics = "8x200";
  const std::string text = TextOf(PointOf(row));
  for (const char* field : {"CROSS_NIC: 0", "ALGO: \"Ring,Tree\"", "PROTO: \"Simple\"",
                            "P2P_NET_CHUNKSIZE: \"512KiB\"", "BUFFSIZE: \"8MiB\""}) {
    EXPECT_THAT(text, HasSubstr(field));
  }
  EXPECT_EQ(PointOf(row).modelled_as,
            "dgx-h100, 2 x 8 GPUs, RoCE for GPUDirect-TCPXO, transport and latencies assumed");
}

TEST(FidelityTest, Mi300xIsAPlatform) {
  MeasuredRow row = Row();
  row.gpu = "AMD Instinct MI300X";
  EXPECT_THAT(PointOf(row).modelled_as, HasSubstr("mi300x, 2 x 8 GPUs"));
}

TEST(FidelityTest, NeitherTheSourceNorTheTimeChangesTheModel) {
  MeasuredRow other = Row();
  other.source_id = "elsewhere";
  other.time_us = 7;
  EXPECT_EQ(TextOf(PointOf(other)), TextOf(PointOf(Row())));
}

TEST(FidelityTest, HintsVersionsAndNicsAreHeeded) {
  MeasuredRow row = Row();
  row.algorithm_hint = "Ring forced; NCCL_MIN_CTAS=24; 2 QPs per connection";
  row.nccl_version = "2.29.2";
  row.nics = "16x200 RoCE";
  const FidelityPoint point = PointOf(row);
  EXPECT_THAT(TextOf(point), HasSubstr("algorithm: RING"));
  EXPECT_THAT(TextOf(point), HasSubstr("MIN_NCHANNELS: 24"));
  EXPECT_THAT(TextOf(point), HasSubstr("version: \"2.29.2\""));
  EXPECT_THAT(TextOf(point), HasSubstr("nic_rate: \"400000000000bps\""));
  EXPECT_THAT(TextOf(point), HasSubstr("dcqcn"));
  row.nics = "4x100";
  row.gpu = "A100-SXM4-80GB";
  EXPECT_THAT(TextOf(PointOf(row)), HasSubstr("platform: \"dgx-a100\""));
  EXPECT_THAT(TextOf(PointOf(row)), HasSubstr("nics: 4"));
}

TEST(FidelityTest, EfasInstallerImpliesAVersionUnlessOneIsStated) {
  MeasuredRow row = Row();
  row.nics = "32x100";
  row.notes = "EFA (SRD) transport, older stack (EFA installer 1.28.0)";
  EXPECT_THAT(TextOf(PointOf(row)), HasSubstr("version: \"2.18.5\""));
  row.nccl_version = "2.20.5";
  EXPECT_THAT(TextOf(PointOf(row)), HasSubstr("version: \"2.20.5\""));
}

TEST(FidelityTest, WhatCannotBeModelledSaysWhy) {
  const auto reason = [](auto change) {
    MeasuredRow row = Row();
    change(row);
    return PointOf(row).reason;
  };
  EXPECT_EQ(reason([](MeasuredRow& row) { row.collective = "hypercube"; }),
            "no collective \"hypercube\"");
  EXPECT_EQ(reason([](MeasuredRow& row) { row.gpu = "MI250X"; }), "no platform with \"MI250X\"");
  EXPECT_EQ(reason([](MeasuredRow& row) {
              row.algorithm_hint = "SHARP";
              row.nics = "8x400 RoCE";
            }),
            "SHARP over a network that is not InfiniBand");
  EXPECT_EQ(reason([](MeasuredRow& row) {
              row.nodes = 1;
              row.nics = "";
            }),
            "");
}

TEST(FidelityTest, NicsThatAreNotStatedAreThePlatforms) {
  MeasuredRow row = Row();
  row.nics = "unknown";
  const FidelityPoint point = PointOf(row);
  EXPECT_EQ(point.modelled_as, "dgx-h100, 2 x 8 GPUs, RoCE, NICs not stated: the platform's");
  EXPECT_THAT(TextOf(point), Not(HasSubstr("nic_rate")));
}

TEST(FidelityTest, EfaIsAmazonsPlugIn) {
  MeasuredRow row = Row();
  row.nics = "32x100";
  EXPECT_THAT(TextOf(PointOf(row)), HasSubstr("dcqcn"));
  EXPECT_THAT(TextOf(PointOf(row)), Not(HasSubstr("nic_ports")));
  row.notes = "out-of-place; float; EFA (SRD) transport";
  const FidelityPoint point = PointOf(row);
  EXPECT_EQ(point.modelled_as, "dgx-h100, 2 x 8 GPUs, EFA");
  EXPECT_THAT(TextOf(point), HasSubstr("NET: \"AWS Libfabric\""));
  // The four NICs of a GPU are four ports.
  EXPECT_THAT(TextOf(point), HasSubstr("nic_ports: 4"));
  EXPECT_THAT(TextOf(point), HasSubstr("nic_rate: \"100000000000bps\""));
  // EC2's P5 and P4 instances.
  EXPECT_THAT(TextOf(point), HasSubstr("cpu: \"AMD\""));
  row.gpu = "A100-SXM4-80GB";
  EXPECT_THAT(TextOf(PointOf(row)), HasSubstr("cpu: \"INTEL\""));
  EXPECT_THAT(TextOf(point), Not(HasSubstr("dcqcn")));
}

TEST(FidelityTest, AHintsQueuePairsAreNccls) {
  MeasuredRow row = Row();
  row.algorithm_hint = "Ring forced; NCCL_MIN_CTAS=24; 2 QPs per connection";
  EXPECT_THAT(TextOf(PointOf(row)), HasSubstr("IB_QPS_PER_CONNECTION: 2"));
  EXPECT_THAT(TextOf(PointOf(row)), HasSubstr("MIN_NCHANNELS: 24"));
}

TEST(FidelityTest, SharpIsCollNetOverInfiniBand) {
  MeasuredRow row = Row();
  row.nics = "8x400 IB";
  EXPECT_THAT(TextOf(PointOf(row)), Not(HasSubstr("COLLNET_ENABLE")));
  row.algorithm_hint = "IB SHARP job (in-network reduction)";
  EXPECT_THAT(TextOf(PointOf(row)), HasSubstr("COLLNET_ENABLE: 1"));
  EXPECT_THAT(TextOf(PointOf(row)), HasSubstr("network_flow_control: CREDITS"));
  EXPECT_THAT(PointOf(row).modelled_as, HasSubstr("InfiniBand with SHARP"));
}

TEST(FidelityTest, HalvesOfATableDifferWhereARankCopies) {
  MeasuredRow row = Row();
  row.notes = "in-place; float";
  EXPECT_FALSE(PointOf(row).point.in_place);
  row.collective = "alltoall";
  EXPECT_TRUE(PointOf(row).point.in_place);
  row.notes = "out-of-place; float";
  EXPECT_FALSE(PointOf(row).point.in_place);
}

TEST(FidelityTest, CallsMeasuredOneByOneFromPyTorchHoldTheirLaunch) {
  MeasuredRow row = Row();
  EXPECT_EQ(PointOf(row).harness_ps, 0);
  row.notes = "torch.distributed bench, not nccl-tests";
  EXPECT_EQ(PointOf(row).harness_ps, 20'000'000);
  EXPECT_EQ(TextOf(PointOf(row)), TextOf(PointOf(Row())));
  EXPECT_THAT(PointOf(row).modelled_as, HasSubstr("launches not hidden"));
}

TEST(FidelityTest, QuantilesAreOfAbsoluteErrors) {
  const std::vector<double> errors = {0.1, -0.4, 0.2, -0.3, 0.0};
  EXPECT_EQ(ErrorQuantile(errors, 0.5), 0.2);
  EXPECT_EQ(ErrorQuantile(errors, 0.9), 0.4);
  EXPECT_EQ(ErrorQuantile({-0.5}, 0.5), 0.5);
}

TEST(FidelityTest, BusBandwidthFactorsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(BusbwFactor(KindOf(PerfCollective::kAllReduce), 8), 1.75);
  EXPECT_DOUBLE_EQ(BusbwFactor(KindOf(PerfCollective::kAllGather), 8), 0.875);
  EXPECT_DOUBLE_EQ(BusbwFactor(KindOf(PerfCollective::kAllToAll), 16), 0.9375);
  EXPECT_DOUBLE_EQ(BusbwFactor(KindOf(PerfCollective::kBroadcast), 8), 1);
  EXPECT_DOUBLE_EQ(BusbwFactor(KindOf(PerfCollective::kSendRecv), 8), 1);
}

}  // namespace
}  // namespace railyard
