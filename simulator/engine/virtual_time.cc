// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/engine/virtual_time.h"

#include <ns3/global-value.h>
#include <ns3/nstime.h>
#include <ns3/simulator.h>
#include <ns3/string.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/engine/fabric_simulator_impl.h"

namespace railyard {

void InitVirtualTime() {
  static bool done = false;
  if (done) {
    return;
  }
  // Naming the type would not keep the linker from dropping it out of a static library, and ns-3
  // then crashes without a message; calling it does.
  const ns3::TypeId type = FabricSimulatorImpl::GetTypeId();
  ns3::GlobalValue::Bind("SimulatorImplementationType", ns3::StringValue(type.GetName()));
  // ns-3 ignores the binding without a word when a simulator exists already.
  const ns3::TypeId bound = ns3::Simulator::GetImplementation()->GetInstanceTypeId();
  if (bound != type) {
    throw EnvironmentError("ns-3 had made its simulator, " + bound.GetName() +
                           ", before the first run (expected a process that has not used it)");
  }
  // A second SetResolution crashes ns-3.
  if (ns3::Time::GetResolution() != ns3::Time::PS) {
    ns3::Time::SetResolution(ns3::Time::PS);
  }
  done = true;
}

}  // namespace railyard
