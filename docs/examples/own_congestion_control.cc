// SPDX-License-Identifier: GPL-2.0-only
// Registers a congestion control, and compares it with none where eight senders share a NIC's port.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>

#include "railyard/congestion_control.h"
#include "railyard/result.h"
#include "railyard/run.h"
#include "railyard/scenario_builder.h"

namespace {

// Halves the rate of a queue pair at each ACK that brings marks, adds 1 Gb/s at each that brings
// none, and so keeps queues in switches short.
class HalvingControl : public railyard::QueuePairControl {
 public:
  explicit HalvingControl(const railyard::ControlledQueuePair& queue_pair)
      : line_rate_bps_(queue_pair.line_rate_bps), rate_bps_(queue_pair.line_rate_bps) {}

  void OnAcknowledged(const railyard::AckInfo& ack) override {
    constexpr uint64_t kStepBps = 1'000'000'000;
    rate_bps_ = ack.marked_packets > 0 ? std::max(rate_bps_ / 2, kStepBps)
                                       : std::min(rate_bps_ + kStepBps, line_rate_bps_);
    SetLimits({.rate_bps = rate_bps_});
  }

 private:
  uint64_t line_rate_bps_;
  uint64_t rate_bps_;
};

// A Gather over the network: the root's NICs receive from all other servers at once.
railyard::ScenarioBuilder Incast(const char* name) {
  railyard::ScenarioBuilder builder(name);
  builder.Fabric(railyard::scenario::RailOptimized{.servers = 9, .gpus_per_server = 1})
      .Add(railyard::scenario::Collective{.operation = railyard::scenario::Operation::kGather,
                                          .size = railyard::DataSize::MiB(36),
                                          .root = 0});
  return builder;
}

bool RunAndPrint(const railyard::ScenarioBuilder& builder) {
  railyard::Diagnostics diagnostics;
  const auto scenario = builder.Build(diagnostics);
  std::fputs(diagnostics.ToString().c_str(), stderr);
  if (!scenario) return false;
  const railyard::Result result = railyard::Run(*scenario);
  std::printf("%-8s %8.3f ms, %6llu packets came in marked, ports paused for %.3f ms\n",
              result.scenario.c_str(), static_cast<double>(result.simulated_time_ps) * 1e-9,
              static_cast<unsigned long long>(result.transport.ecn_marked),
              static_cast<double>(result.transport.pfc_pause_ps) * 1e-9);
  return result.status == railyard::RunStatus::kCompleted;
}

}  // namespace

int main() {
  railyard::RegisterCongestionControl("halving", {.acknowledgements = true},
                                      [](const railyard::ControlledQueuePair& queue_pair) {
                                        return std::make_unique<HalvingControl>(queue_pair);
                                      });
  try {
    railyard::ScenarioBuilder halving = Incast("halving");
    halving.Set("nic.congestion_control.registered", "halving");
    return RunAndPrint(Incast("none")) && RunAndPrint(halving) ? 0 : 3;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
