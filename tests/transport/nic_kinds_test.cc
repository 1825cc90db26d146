// SPDX-License-Identifier: GPL-2.0-only
// Kinds of NICs, and the congestion controls that they have.
#include "simulator/transport/nic/nic_kinds.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/transport/congestion/congestion_controls.h"

namespace railyard {
namespace {

// Three NICs and a switch, of which the second NIC is a variant.
class NicKindsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (ServerIndex server{0}; server < 3; ++server) {
      nics_.push_back(graph_.AddDevice({.name = "nic" + std::to_string(uint32_t{server}),
                                        .kind = DeviceKind::kNic,
                                        .server = server,
                                        .local_index = 0}));
    }
    switch_ = graph_.AddDevice({.name = "leaf",
                                .kind = DeviceKind::kSwitch,
                                .server = ServerIndex::kNone,
                                .local_index = -1});
  }
  NicVariant Variant(const char* control) const {
    NicVariant variant{.nics = {nics_[1]}, .settings = {.mtu_bytes = 1'024, .window_bytes = 9'999}};
    variant.settings.congestion_control = CongestionControlNamed(control).value();
    return variant;
  }

  FabricGraph graph_;
  std::vector<DeviceId> nics_;
  DeviceId switch_{0};
};

TEST_F(NicKindsTest, NicsHaveTheSettingsOfTheirVariantOrElseTheCommonOnes) {
  const std::vector<NicVariant> variants = {Variant("DCQCN")};
  const NicKinds kinds(graph_, {.mtu_bytes = 1'024, .window_bytes = 4'096}, variants);
  EXPECT_EQ(kinds.KindOf(nics_[0]), kinds.KindOf(nics_[2]));
  EXPECT_EQ(kinds[kinds.KindOf(nics_[0])].window_packets, 4u);
  EXPECT_EQ(kinds[kinds.KindOf(nics_[1])].window_packets, 9u) << "rounded down";
  EXPECT_EQ(kinds.nics()[nics_[0]]->settings().window_bytes, 4'096u);
  EXPECT_EQ(kinds.nics()[nics_[1]]->settings().window_bytes, 9'999u);
  EXPECT_EQ(kinds.nics()[switch_], nullptr);
  EXPECT_EQ(kinds.ControlNames(), "railyard::NoCongestionControl and railyard::Dcqcn");
}

TEST_F(NicKindsTest, NicsThatExistAreTakenOver) {
  const std::vector<NicVariant> variants = {Variant("DCQCN")};
  const std::vector<ns3::Ptr<Nic>> nics = MakeNics(graph_, {.window_bytes = 4'096}, variants);
  const NicKinds kinds(graph_, {.window_bytes = 4'096}, variants, nics);
  EXPECT_EQ(kinds.nics()[nics_[0]], nics[nics_[0]]);
  EXPECT_EQ(nics[nics_[0]]->settings().window_bytes, 4'096u);
  EXPECT_EQ(nics[nics_[1]]->settings().window_bytes, 9'999u);
  EXPECT_EQ(nics[switch_], nullptr);
}

TEST_F(NicKindsTest, NeedsAndReasonsAreThoseOfAnyKind) {
  EXPECT_FALSE(NicKinds(graph_, {}, {}).needs_telemetry());
  EXPECT_EQ(NicKinds(graph_, {}, {}).WhyNeverReplayed(), "");
  const std::vector<NicVariant> hpcc = {Variant("HPCC")};
  EXPECT_TRUE(NicKinds(graph_, {}, hpcc).needs_telemetry());
  const std::vector<NicVariant> swift = {Variant("SWIFT")};
  const NicKinds kinds(graph_, {}, swift);
  EXPECT_FALSE(kinds.needs_telemetry());
  EXPECT_EQ(kinds.WhyNeverReplayed(), kinds[1].control->WhyNeverReplayed());
  EXPECT_NE(kinds.WhyNeverReplayed(), "");
  EXPECT_TRUE(kinds[1].is_never_replayed);
  EXPECT_FALSE(kinds[0].is_never_replayed);
}

// A control may be asked for the limits of a queue pair as soon as it is open there.
TEST_F(NicKindsTest, EveryControlNumbersAllQueuePairs) {
  const std::vector<NicVariant> variants = {Variant("DCQCN")};
  const NicKinds kinds(graph_, {}, variants);
  for (int i = 0; i < 2; ++i) kinds.Open({.line_rate_bps = 400'000'000'000, .mtu_bytes = 1'024});
  for (uint8_t kind = 0; kind < 2; ++kind)
    EXPECT_EQ(kinds[kind].control->limits(FlowId{1}), SendLimits{});
}

}  // namespace
}  // namespace railyard
