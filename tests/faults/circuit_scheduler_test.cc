// SPDX-License-Identifier: GPL-2.0-only
// A timetable of circuits alone: two racks of one NIC, which one of two circuits joins at a time.
#include "simulator/faults/circuit_scheduler.h"

#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ns3/callback.h>

#include "simulator/units/units.h"
#include "tests/fabric/network_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kSlotPs = 10 * kPsPerUs;
constexpr int64_t kDarkPs = kPsPerUs;
constexpr int64_t kDrainPs = 2 * kPsPerUs;
constexpr int kNoCircuit = -1;

class CircuitSchedulerTest : public testing::NetworkFixture {
 protected:
  // Circuit i has these slots of so many.
  void Build(uint32_t slots,
             const std::vector<std::vector<uint32_t>>& slots_of_circuit = {{0}, {1}}) {
    const DeviceId racks[] = {AddSwitch("rack0"), AddSwitch("rack1")};
    for (const std::vector<uint32_t>& own : slots_of_circuit) {
      const auto cable = static_cast<uint32_t>(graph_.cables().size());
      graph_.AddCable(racks[0], racks[1], {Tier::kDirect, 100'000'000'000, 1'000, 1});
      if (!graph_.circuits) {
        graph_.circuits = {
            .slots = slots, .slot_ps = kSlotPs, .dark_ps = kDarkPs, .drain_ps = kDrainPs};
      }
      graph_.circuits->slots_of_cable[cable] = own;
    }
    for (int32_t server = 0; server < 2; ++server) {
      nics_.push_back(AddInServer(DeviceKind::kNic, server, 0));
      graph_.AddCable(nics_.back(), racks[server], {Tier::kNicLeaf, 100'000'000'000, 1'000, 1});
    }
    BuildNetwork();
    routing_.emplace(graph_, 1);
    scheduler_.emplace(graph_, network(), *routing_,
                       [this] { routes_.emplace_back(engine().NowPs(), Routed()); });
    network().TraceConnectWithoutContext(
        "LinkStateChanged", ns3::MakeCallback(&CircuitSchedulerTest::OnStateTraced, this));
  }
  LinkId Forward(int circuit) const {
    return graph_.cables()[static_cast<size_t>(circuit)].forward;
  }
  // Returns the circuit by which the first NIC reaches the other.
  int Routed() const {
    for (const LinkId link : routing_->Resolve(nics_[0], nics_[1], 5)) {
      if (graph_.link(link).tier == Tier::kDirect) {
        return static_cast<int>(graph_.link(link).cable);
      }
    }
    return kNoCircuit;
  }
  // Returns the circuit that has light.
  int Lit() {
    int lit = kNoCircuit;
    for (int circuit = 0; circuit < 2; ++circuit) {
      if (!network().IsLinkUp(Forward(circuit))) continue;
      EXPECT_EQ(lit, kNoCircuit);
      lit = circuit;
    }
    return lit;
  }
  // Something happens so often that the scheduler cannot pass over any step.
  void TickUntil(int64_t until_ps) {
    for (int64_t at_ps = 0; at_ps < until_ps; at_ps += kPsPerUs / 4) At(at_ps, [] {});
  }
  void OnStateTraced(const LinkStateChanged& event) {
    for (int circuit = 0; circuit < 2; ++circuit) {
      if (event.link == Forward(circuit)) states_.emplace_back(event.time_ps, circuit, event.up);
    }
  }

  std::vector<DeviceId> nics_;
  std::optional<EcmpRouting> routing_;
  std::optional<CircuitScheduler> scheduler_;
  std::vector<std::tuple<int64_t, int, bool>> states_;  // time, circuit, up
  std::vector<std::pair<int64_t, int>> routes_;         // time of a change, circuit from then on
};

TEST_F(CircuitSchedulerTest, ACircuitGetsDarkWithItsSlotAndTheNextGetsLightLater) {
  Build(2);
  EXPECT_EQ(Lit(), 0);
  EXPECT_EQ(Routed(), 0);
  TickUntil(2 * kSlotPs + 2 * kDarkPs);
  engine().Run();
  EXPECT_THAT(states_,
              ElementsAre(FieldsAre(kSlotPs, 0, false),  //
                          FieldsAre(kSlotPs + kDarkPs, 1, true), FieldsAre(2 * kSlotPs, 1, false),
                          FieldsAre(2 * kSlotPs + kDarkPs, 0, true)));
}

TEST_F(CircuitSchedulerTest, RoutesLeaveACircuitEarlyAndUseTheNextAtOnce) {
  Build(2);
  TickUntil(2 * kSlotPs);
  engine().Run();
  EXPECT_THAT(routes_, ElementsAre(std::pair(kSlotPs - kDrainPs, kNoCircuit),
                                   std::pair(kSlotPs + kDarkPs, 1),
                                   std::pair(2 * kSlotPs - kDrainPs, kNoCircuit)));
}

// Circuit 0 is there in slots 0 and 1 of three.
TEST_F(CircuitSchedulerTest, ACircuitThatStaysIsNotTouched) {
  Build(3, {{0, 1}, {2}});
  TickUntil(2 * kSlotPs + 2 * kDarkPs);
  engine().Run();
  EXPECT_THAT(states_, ElementsAre(FieldsAre(2 * kSlotPs, 0, false),
                                   FieldsAre(2 * kSlotPs + kDarkPs, 1, true)));
  EXPECT_THAT(routes_, ElementsAre(std::pair(2 * kSlotPs - kDrainPs, kNoCircuit),
                                   std::pair(2 * kSlotPs + kDarkPs, 1)));
}

// A hundred slots pass in which nothing happens but four events in the slots behind.
TEST_F(CircuitSchedulerTest, TheStateIsThatOfTheTimetableAfterALongSilence) {
  Build(2);
  constexpr int64_t kLatePs = 100 * kSlotPs;
  std::vector<std::pair<int, int>> seen;
  for (const int64_t at_ps :
       {kSlotPs / 2, kSlotPs - kDrainPs / 2, kSlotPs + kDarkPs / 2, kSlotPs + kSlotPs / 2}) {
    At(kLatePs + at_ps, [&] { seen.emplace_back(Lit(), Routed()); });
  }
  engine().Run();
  EXPECT_THAT(seen, ElementsAre(std::pair(0, 0), std::pair(0, kNoCircuit),
                                std::pair(kNoCircuit, kNoCircuit), std::pair(1, 1)));
  EXPECT_LT(engine().EventCount(), 30u) << "steps without effect are passed over";
}

// The packet is sent in time, and takes until after the slot's end: 1,250 B take 100 ns.
TEST_F(CircuitSchedulerTest, APacketOnACircuitThatEndsIsLost) {
  Build(2);
  const LinkId up = *graph_.FindLink(nics_[0], graph_.link_source(Forward(0)));
  const LinkId down = *graph_.FindLink(graph_.link_target(Forward(0)), nics_[1]);
  const PathRef path = network().AddPath({up, Forward(0), down});
  At(kSlotPs - 300'000, [&] { Inject(path, 1, 1'250, 1'000); });
  At(kSlotPs - 150'000, [&] { Inject(path, 2, 1'250, 1'000); });
  engine().Run();
  EXPECT_THAT(at_nic_, ElementsAre(FieldsAre(kSlotPs - 300'000 + 303'000, 0u, 1u)));
  ASSERT_THAT(dropped_, SizeIs(1));
  EXPECT_EQ(dropped_[0].sequence, 2u);
  EXPECT_EQ(dropped_[0].reason, DropReason::kLinkDown);
  EXPECT_EQ(dropped_[0].link, Forward(0));
}

TEST_F(CircuitSchedulerTest, ARunThatWaitsForNothingElseEnds) {
  Build(2);
  engine().Run();
  EXPECT_LE(engine().NowPs(), kSlotPs);
  EXPECT_THAT(states_, IsEmpty());
}

}  // namespace
}  // namespace railyard
