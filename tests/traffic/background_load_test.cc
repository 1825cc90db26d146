// SPDX-License-Identifier: GPL-2.0-only
// Background load alone, over a transport that only tests have: flows of a fixed latency and rate.
#include "simulator/traffic/background_load.h"

#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <ns3/simulator.h>

#include "tests/transport/fixed_latency/fixed_latency_stack.h"
#include "topologies/generators/rail_optimized.h"

namespace railyard {
namespace {

constexpr int64_t kLatencyPs = kPsPerUs;
constexpr uint64_t kFlowRateBps = 100'000'000'000;
constexpr uint64_t kMessageBytes = 125'000;  // 10 us at 100 Gb/s
constexpr uint32_t kUnderWayMax = 8;

class BackgroundLoadTest : public ::testing::Test {
 protected:
  BackgroundLoadTest() {
    RailOptimizedSpec spec;
    spec.servers = 2;
    graph_ = MakeRailOptimized(spec);
    transport_.emplace(engine(), kLatencyPs, kFlowRateBps, true);
  }
  ~BackgroundLoadTest() override {
    load_.reset();
    transport_.reset();
    ns3::Simulator::Destroy();
  }

  static FabricSimulatorImpl& engine() { return FabricSimulatorImpl::Get(); }

  // One load from each of `senders` to each of `receivers`.
  void Make(const std::vector<GpuIndex>& senders, const std::vector<GpuIndex>& receivers,
            uint64_t rate_bps) {
    FaultSpec fault;
    fault.kind = FaultKind::kBackgroundLoad;
    fault.load = {.senders = senders,
                  .receivers = receivers,
                  .rate_bps = rate_bps,
                  .message_bytes = kMessageBytes};
    faults_ = {fault};
    load_.emplace(graph_, faults_, *transport_, engine(), [this] { return is_job_running_; });
  }
  static void RunUntil(int64_t time_ps) {
    ns3::Simulator::Stop(ns3::PicoSeconds(static_cast<uint64_t>(time_ps - engine().NowPs())));
    ns3::Simulator::Run();
  }

  FabricGraph graph_;
  std::vector<FaultSpec> faults_;
  bool is_job_running_ = true;
  std::optional<testing::FixedLatencyTransport> transport_;
  std::optional<BackgroundLoad> load_;
};

// At 10 Gb/s a message begins every 100 us; each has arrived 11 us after it began.
TEST_F(BackgroundLoadTest, MessagesBeginAtTheOfferedRate) {
  Make({GpuIndex{0}}, {GpuIndex{8}}, kFlowRateBps / 10);
  load_->Set(FaultIndex{0}, true);
  RunUntil(910 * kPsPerUs);
  EXPECT_EQ(transport_->delivered_bytes(), 9 * kMessageBytes);
  RunUntil(912 * kPsPerUs);
  EXPECT_EQ(transport_->delivered_bytes(), 10 * kMessageBytes);
}

// Offered four times what a flow carries, a message is delivered every 10 us, and eight more arrive
// after the end: those in flight.
TEST_F(BackgroundLoadTest, APairPausesWhileEightMessagesAreInFlight) {
  Make({GpuIndex{0}}, {GpuIndex{8}}, 4 * kFlowRateBps);
  load_->Set(FaultIndex{0}, true);
  RunUntil(1'000 * kPsPerUs + 2 * kLatencyPs);
  EXPECT_EQ(transport_->delivered_bytes(), 100 * kMessageBytes);
  load_->Set(FaultIndex{0}, false);
  RunUntil(2'000 * kPsPerUs);
  EXPECT_EQ(transport_->delivered_bytes(), (100 + kUnderWayMax) * kMessageBytes);
}

// GPUs 0 and 8 are in different servers; 0 to 0 would cross no network.
TEST_F(BackgroundLoadTest, EachPairOfGpusOnDifferentNicsHasAFlow) {
  Make({GpuIndex{0}, GpuIndex{8}}, {GpuIndex{0}, GpuIndex{8}}, kFlowRateBps / 10);
  load_->Set(FaultIndex{0}, true);
  RunUntil(50 * kPsPerUs);
  EXPECT_EQ(transport_->delivered_bytes(), 2 * kMessageBytes);
}

TEST_F(BackgroundLoadTest, NothingBeginsWhileNoJobRuns) {
  Make({GpuIndex{0}}, {GpuIndex{8}}, kFlowRateBps / 10);
  is_job_running_ = false;
  load_->Set(FaultIndex{0}, true);
  RunUntil(500 * kPsPerUs);
  EXPECT_EQ(transport_->delivered_bytes(), 0u);
  is_job_running_ = true;
  load_->GoOn();
  RunUntil(550 * kPsPerUs);
  EXPECT_EQ(transport_->delivered_bytes(), kMessageBytes);
}

TEST_F(BackgroundLoadTest, ABrokenFlowStaysSilent) {
  Make({GpuIndex{0}}, {GpuIndex{8}}, kFlowRateBps / 10);
  load_->Set(FaultIndex{0}, true);
  RunUntil(50 * kPsPerUs);
  load_->OnFailed(0, true, {.is_unanswered = true, .why = "no answer"});
  RunUntil(1'000 * kPsPerUs);
  EXPECT_EQ(transport_->delivered_bytes(), kMessageBytes);
}

}  // namespace
}  // namespace railyard
