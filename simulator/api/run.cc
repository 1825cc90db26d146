// SPDX-License-Identifier: GPL-2.0-only
#include "railyard/run.h"

#include <atomic>
#include <stdexcept>
#include <string>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/engine/virtual_time.h"
#include "simulator/run/packet_capture.h"
#include "simulator/run/run_scenario.h"
#include "simulator/scenario/schema/scenario.h"

namespace railyard {
namespace {

enum class Simulator { kFree, kInUse, kBroken };
std::atomic<Simulator> simulator_state = Simulator::kFree;

// Has the process's one simulator while it exists.
class SimulatorInUse {
 public:
  SimulatorInUse() {
    Simulator state = Simulator::kFree;
    if (simulator_state.compare_exchange_strong(state, Simulator::kInUse)) return;
    throw EnvironmentError(
        state == Simulator::kInUse
            ? "Run() was called while another run goes on in this process, which "
              "has one simulator (expected one run after the other, or processes)"
            : "Run() was called after a run of this process had failed in the "
              "middle (expected another process)");
  }
  SimulatorInUse(const SimulatorInUse&) = delete;
  SimulatorInUse& operator=(const SimulatorInUse&) = delete;
  ~SimulatorInUse() { simulator_state = ended_ ? Simulator::kFree : Simulator::kBroken; }

  void End() { ended_ = true; }

 private:
  bool ended_ = false;
};

void CheckCaptures(const Scenario& scenario, const RunOptions& options) {
  for (const LinkCapture& capture : options.captures) {
    try {
      FindCapturedLinks(scenario.fabric, capture.name);
    } catch (const std::invalid_argument& error) {
      throw EnvironmentError(std::string("RunOptions::captures: ") + error.what());
    }
  }
}

}  // namespace

Result Run(const Scenario& scenario, const RunOptions& options) {
  if (options.threads == 0) throw EnvironmentError("RunOptions::threads is 0 (expected 1 or more)");
  CheckCaptures(scenario, options);
  SimulatorInUse simulator;
  InitVirtualTime();
  if (!FabricSimulatorImpl::Get().IsUnused()) {
    simulator.End();
    throw EnvironmentError(
        "ns-3's simulator has events, a fabric or a time of something else (expected Run() before "
        "them, or after Simulator::Destroy())");
  }
  Result result = RunScenario(scenario, options);
  simulator.End();
  return result;
}

}  // namespace railyard
