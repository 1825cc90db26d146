// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/faults/fault_injector.h"

#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ns3/callback.h>
#include <ns3/nstime.h>

#include "tests/fabric/network_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::IsEmpty;

constexpr int64_t kDetectionPs = 10'000;
constexpr int64_t kConvergencePs = 100'000;
constexpr int64_t kRoutingPs = kDetectionPs + kConvergencePs;

// Links are numbered as they are made, two for each cable.
FaultSpec Cut(uint32_t cable, int64_t at_ps, int64_t until_ps = kNeverPs) {
  FaultSpec fault;
  fault.links = {LinkId{2 * cable}, LinkId{2 * cable + 1}};
  fault.timeline.at_ps = at_ps;
  fault.timeline.until_ps = until_ps;
  return fault;
}
FaultSpec ForwardOnly(FaultSpec fault) {
  fault.links.pop_back();
  return fault;
}
FaultSpec BackwardOnly(FaultSpec fault) {
  fault.links.erase(fault.links.begin());
  return fault;
}

// nic0 - leaf - nic1; cable 0 is nic0--leaf, forward from the NIC; cable 1 nic1--leaf.
class FaultInjectorTest : public testing::NetworkFixture {
 protected:
  // Asks about a packet between GPUs of the two servers; -1 stands for none.
  int64_t CauseOf(DropReason reason, LinkId link) const {
    const auto fault = injector_->FaultOfLoss(reason, link, GpuIndex{0}, GpuIndex{1});
    return fault ? int64_t{*fault} : -1;
  }
  void SetUp() override {
    const DeviceId leaf = AddSwitch("leaf");
    for (int32_t server = 0; server < 2; ++server) {
      const DeviceId nic = AddInServer(DeviceKind::kNic, server, 0);
      AddInServer(DeviceKind::kGpu, server, 0);
      graph_.AddCable(nic, leaf, {Tier::kNicLeaf, 400'000'000'000, 1'000, 1});
    }
    BuildNetwork();
    routing_.emplace(graph_, 1);
    out_ = Link("server0/nic0", "leaf");
    in_ = Link("leaf", "server0/nic0");
    ASSERT_TRUE(network().TraceConnectWithoutContext(
        "LinkStateChanged", ns3::MakeCallback(&FaultInjectorTest::OnStateTraced, this)));
  }

  void Inject(std::vector<FaultSpec> faults, FaultInjector::Hooks hooks = {}) {
    faults_ = std::move(faults);
    if (!hooks.on_routes_changed) {
      hooks.on_routes_changed = [this] {
        routes_.emplace_back(engine().NowPs(), HasRoute(0, 1), HasRoute(1, 0));
      };
    }
    injector_.emplace(graph_, faults_,
                      RoutingDelays{.detection_ps = kDetectionPs,
                                    .convergence_ps = kConvergencePs,
                                    .hop_share = hop_share_},
                      network(), *routing_, std::move(hooks));
  }
  // `probe` happens after all else at that picosecond.
  void Probe(int64_t time_ps, std::function<void()> probe) {
    ns3::Simulator::Schedule(ns3::PicoSeconds(static_cast<uint64_t>(time_ps)),
                             &FaultInjectorTest::Call, std::move(probe));
  }
  bool HasRoute(int from, int to) const {
    const auto nic = [this](int server) {
      return graph_.FindDevice("server" + std::to_string(server) + "/nic0").value();
    };
    return !routing_->Resolve(nic(from), nic(to), 5).empty();
  }

  double hop_share_ = 0;  // all at one instant
  LinkId out_{0};
  LinkId in_{0};
  std::optional<EcmpRouting> routing_;
  std::vector<FaultSpec> faults_;
  std::optional<FaultInjector> injector_;
  std::vector<std::tuple<int64_t, LinkId, bool>> states_;  // time, link, up
  std::vector<std::tuple<int64_t, bool, bool>> routes_;    // time, 0 reaches 1, 1 reaches 0

 private:
  static void Call(const std::function<void()>& probe) { probe(); }
  void OnStateTraced(const LinkStateChanged& event) {
    states_.emplace_back(event.time_ps, event.link, event.up);
  }
};

TEST_F(FaultInjectorTest, BothDirectionsGoDownAndComeBackAtTheirInstants) {
  Inject({Cut(0, 1'000'000, 3'000'000)});
  engine().Run();
  EXPECT_THAT(states_,
              ElementsAre(FieldsAre(1'000'000, out_, false), FieldsAre(1'000'000, in_, false),
                          FieldsAre(3'000'000, out_, true), FieldsAre(3'000'000, in_, true)));
}

TEST_F(FaultInjectorTest, OneDirectionAloneMayFail) {
  Inject({ForwardOnly(Cut(0, 1'000'000, 2'000'000)), BackwardOnly(Cut(0, 4'000'000, 5'000'000))});
  engine().Run();
  EXPECT_THAT(states_,
              ElementsAre(FieldsAre(1'000'000, out_, false), FieldsAre(2'000'000, out_, true),
                          FieldsAre(4'000'000, in_, false), FieldsAre(5'000'000, in_, true)));
  EXPECT_THAT(routes_, ElementsAre(FieldsAre(1'000'000 + kRoutingPs, false, true),
                                   FieldsAre(2'000'000 + kRoutingPs, true, true),
                                   FieldsAre(4'000'000 + kRoutingPs, true, false),
                                   FieldsAre(5'000'000 + kRoutingPs, true, true)));
}

TEST_F(FaultInjectorTest, RoutesFollowAfterDetectionAndConvergence) {
  Inject({Cut(0, 1'000'000, 3'000'000)});
  Probe(1'000'000 + kRoutingPs - 1, [this] { EXPECT_TRUE(HasRoute(0, 1)); });
  Probe(1'000'000 + kRoutingPs, [this] { EXPECT_FALSE(HasRoute(0, 1)); });
  Probe(3'000'000 + kRoutingPs - 1, [this] { EXPECT_FALSE(HasRoute(0, 1)); });
  Probe(3'000'000 + kRoutingPs, [this] { EXPECT_TRUE(HasRoute(0, 1)); });
  engine().Run();
  EXPECT_THAT(routes_, ElementsAre(FieldsAre(1'000'000 + kRoutingPs, false, false),
                                   FieldsAre(3'000'000 + kRoutingPs, true, true)));
}

// The farther NIC is one hop from the cable's ends.
TEST_F(FaultInjectorTest, DevicesFurtherAwayHaveNewRoutesLater) {
  hop_share_ = 0.25;
  constexpr int64_t kHopPs = kConvergencePs / 4;
  Inject({Cut(0, 1'000'000, 3'000'000)});
  engine().Run();
  EXPECT_THAT(routes_, ElementsAre(FieldsAre(1'000'000 + kRoutingPs, false, false),
                                   FieldsAre(1'000'000 + kRoutingPs + kHopPs, false, false),
                                   FieldsAre(3'000'000 + kRoutingPs, true, false),
                                   FieldsAre(3'000'000 + kRoutingPs + kHopPs, true, true)));
}

// A hop takes longer than the link is down: both notifications travel at once.
TEST_F(FaultInjectorTest, NewsOfALinkDoNotOvertakeEachOther) {
  hop_share_ = 1;
  const int64_t down_ps = kDetectionPs + 1;
  Inject({Cut(0, 0, down_ps), Cut(0, 2 * down_ps, 3 * down_ps)});
  engine().Run();
  std::vector<std::tuple<int64_t, bool, bool>> expected;
  bool near_knows_up = true;
  bool far_knows_up = true;
  for (int64_t change = 0; change < 4; ++change) {
    near_knows_up = change % 2 == 1;
    expected.emplace_back(change * down_ps + kRoutingPs, near_knows_up,
                          near_knows_up && far_knows_up);
  }
  for (int64_t change = 0; change < 4; ++change) {
    far_knows_up = change % 2 == 1;
    expected.emplace_back(change * down_ps + kRoutingPs + kConvergencePs, near_knows_up,
                          near_knows_up && far_knows_up);
  }
  EXPECT_EQ(routes_, expected);
}

TEST_F(FaultInjectorTest, AFaultForGoodNeverComesBack) {
  Inject({Cut(0, 7)});
  engine().Run();
  EXPECT_THAT(states_, ElementsAre(FieldsAre(7, out_, false), FieldsAre(7, in_, false)));
  EXPECT_THAT(routes_, ElementsAre(FieldsAre(7 + kRoutingPs, false, false)));
  EXPECT_FALSE(network().IsLinkUp(out_));
}

TEST_F(FaultInjectorTest, AFlapNoLongerThanItsDetectionChangesNoRoute) {
  Inject({Cut(0, 1'000, 1'000 + kDetectionPs)});
  engine().Run();
  EXPECT_EQ(states_.size(), 4u);
  EXPECT_THAT(routes_, IsEmpty());
}

TEST_F(FaultInjectorTest, AFlapOnePicosecondLongerChangesRoutesTwice) {
  Inject({Cut(0, 1'000, 1'001 + kDetectionPs)});
  engine().Run();
  EXPECT_THAT(routes_, ElementsAre(FieldsAre(1'000 + kRoutingPs, false, false),
                                   FieldsAre(1'001 + kDetectionPs + kRoutingPs, true, true)));
}

TEST_F(FaultInjectorTest, TheHookBeforeTheFirstFaultIsCalledOnceBeforeAnythingChanges) {
  std::vector<int64_t> called_ps;
  Inject({Cut(1, 2'000'000, 3'000'000), Cut(0, 1'000'000, 2'500'000), Cut(1, 1'000'000, 1'500'000)},
         {.before_first_fault =
              [&] {
                called_ps.push_back(engine().NowPs());
                EXPECT_THAT(states_, IsEmpty());
                EXPECT_TRUE(injector_->has_begun());
              },
          .on_routes_changed = {}});
  EXPECT_FALSE(injector_->has_begun());
  Probe(999'999, [this] { EXPECT_FALSE(injector_->has_begun()); });
  engine().Run();
  EXPECT_THAT(called_ps, ElementsAre(1'000'000));
}

TEST_F(FaultInjectorTest, DisarmedInTheHookNothingHappens) {
  Inject({Cut(0, 1'000'000, 3'000'000)},
         {.before_first_fault = [this] { injector_->Disarm(); }, .on_routes_changed = {}});
  engine().Run();
  EXPECT_THAT(states_, IsEmpty());
  EXPECT_THAT(routes_, IsEmpty());
  EXPECT_EQ(CauseOf(DropReason::kLinkDown, out_), -1);
}

TEST_F(FaultInjectorTest, DisarmedBeforehandNotEvenTheHookIsCalled) {
  bool called = false;
  Inject({Cut(0, 1'000'000)},
         {.before_first_fault = [&] { called = true; }, .on_routes_changed = {}});
  injector_->Disarm();
  engine().Run();
  EXPECT_FALSE(called);
  EXPECT_FALSE(injector_->has_begun());
  EXPECT_THAT(states_, IsEmpty());
}

TEST_F(FaultInjectorTest, WithoutHooksFaultsHappenAllTheSame) {
  faults_ = {Cut(0, 1'000)};
  injector_.emplace(graph_, faults_, RoutingDelays{}, network(), *routing_, FaultInjector::Hooks{});
  engine().Run();
  EXPECT_EQ(states_.size(), 2u);
  // The default delays: 10 ms, 100 ms, and 10 ms for the hop to the other NIC.
  EXPECT_EQ(engine().NowPs(), 1'000 + 120 * kPsPerMs);
}

TEST_F(FaultInjectorTest, ALossIsDueToTheLastFaultOfItsLink) {
  Inject(
      {Cut(0, 1'000'000, 2'000'000), ForwardOnly(Cut(1, 1'500'000)), Cut(0, 3'000'000, 4'000'000)});
  const LinkId other_out = Link("server1/nic0", "leaf");
  const LinkId other_in = Link("leaf", "server1/nic0");
  Probe(999'999, [&] { EXPECT_EQ(CauseOf(DropReason::kLinkDown, out_), -1); });
  Probe(1'000'000, [&] {
    EXPECT_EQ(CauseOf(DropReason::kLinkDown, out_), 0);
    EXPECT_EQ(CauseOf(DropReason::kLinkDown, in_), 0);
    EXPECT_EQ(CauseOf(DropReason::kLinkDown, other_out), -1);
  });
  Probe(2'999'999,
        [&] { EXPECT_EQ(CauseOf(DropReason::kLinkDown, out_), 0); });  // what was in flight
  Probe(3'000'000, [&] { EXPECT_EQ(CauseOf(DropReason::kLinkDown, out_), 2); });
  engine().Run();
  EXPECT_EQ(CauseOf(DropReason::kLinkDown, other_out), 1);
  EXPECT_EQ(CauseOf(DropReason::kLinkDown, other_in), -1);
}

TEST_F(FaultInjectorTest, OfFaultsThatOverlapTheOneThatHoldsTheLinkDownCausesItsLosses) {
  Inject({Cut(0, 1'000'000, 3'000'000), Cut(0, 500'000, 1'500'000)});
  const auto cause = [this] { return CauseOf(DropReason::kLinkDown, out_); };
  Probe(999'999, [&] { EXPECT_EQ(cause(), 1); });
  Probe(1'499'999, [&] { EXPECT_EQ(cause(), 0); });
  Probe(1'500'001, [&] { EXPECT_EQ(cause(), 0); });
  engine().Run();
  EXPECT_EQ(cause(), 0);
}

TEST_F(FaultInjectorTest, ABufferThatOverflowsIsNoFaults) {
  Inject({Cut(0, 1'000'000, 2'000'000)});
  engine().Run();
  for (const DropReason reason :
       {DropReason::kBufferFull, DropReason::kHeadroomFull, DropReason::kBitError}) {
    EXPECT_EQ(CauseOf(reason, out_), -1) << DropReasonName(reason);
  }
}

TEST_F(FaultInjectorTest, AMissingRouteIsDueToTheLastFaultThatChangedRoutes) {
  Inject({Cut(0, 1'000'000), Cut(1, 1'050'000)});
  Probe(1'000'000 + kRoutingPs - 1,
        [&] { EXPECT_EQ(CauseOf(DropReason::kNoRoute, LinkId::kNone), -1); });
  Probe(1'000'000 + kRoutingPs,
        [&] { EXPECT_EQ(CauseOf(DropReason::kNoRoute, LinkId::kNone), 0); });
  engine().Run();
  EXPECT_EQ(CauseOf(DropReason::kNoRoute, LinkId::kNone), 1);
}

TEST_F(FaultInjectorTest, AMissingRouteIsRatherDueToAFaultAtAnEnd) {
  Inject({Cut(0, 1'000'000), Cut(1, 1'050'000, 2'000'000)});
  const auto within_first_server = [this] {
    return injector_->FaultOfLoss(DropReason::kNoRoute, LinkId::kNone, GpuIndex{0}, GpuIndex{0});
  };
  Probe(1'900'000, [&] {
    EXPECT_EQ(CauseOf(DropReason::kNoRoute, LinkId::kNone), 1);  // the last one
    EXPECT_EQ(within_first_server(), FaultIndex{0});
  });
  engine().Run();
  EXPECT_EQ(CauseOf(DropReason::kNoRoute, LinkId::kNone), 0);  // the only one that holds
}

// One fault begins at the instant the other one of its cable ends, in either order of the list.
class TouchingFaultsTest : public FaultInjectorTest, public ::testing::WithParamInterface<bool> {};

TEST_P(TouchingFaultsTest, TheLinkIsDownAndUnroutedThroughoutBoth) {
  const FaultSpec first = Cut(0, 1'000'000, 2'000'000);
  const FaultSpec second = Cut(0, 2'000'000, 3'000'000);
  Inject(GetParam() ? std::vector{first, second} : std::vector{second, first});
  Probe(2'000'000, [this] { EXPECT_FALSE(network().IsLinkUp(out_)); });
  Probe(2'999'999, [this] { EXPECT_FALSE(network().IsLinkUp(in_)); });
  Probe(3'000'000, [this] { EXPECT_TRUE(network().IsLinkUp(in_)); });
  Probe(2'000'000 + kRoutingPs, [this] { EXPECT_FALSE(HasRoute(0, 1)); });
  Probe(3'000'000 + kRoutingPs - 1, [this] { EXPECT_FALSE(HasRoute(0, 1)); });
  Probe(3'000'000 + kRoutingPs, [this] { EXPECT_TRUE(HasRoute(0, 1)); });
  engine().Run();
  EXPECT_EQ(CauseOf(DropReason::kLinkDown, out_), GetParam() ? 1 : 0);
}

INSTANTIATE_TEST_SUITE_P(BothOrders, TouchingFaultsTest, ::testing::Bool());

}  // namespace
}  // namespace railyard
