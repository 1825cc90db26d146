// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/congestion_controls.h"

#include <utility>

#include "simulator/transport/cubic.h"
#include "simulator/transport/dcqcn.h"
#include "simulator/transport/dctcp.h"
#include "simulator/transport/hpcc.h"
#include "simulator/transport/no_congestion_control.h"
#include "simulator/transport/swift.h"
#include "simulator/transport/timely.h"

namespace railyard {
namespace {

// Naming the classes here also keeps a linker from leaving them out.
std::vector<std::pair<std::string, ns3::TypeId>> Controls() {
  return {{"NONE", NoCongestionControl::GetTypeId()},
          {"DCQCN", Dcqcn::GetTypeId()},
          {"DCTCP", Dctcp::GetTypeId()},
          {"TIMELY", Timely::GetTypeId()},
          {"HPCC", Hpcc::GetTypeId()},
          {"SWIFT", Swift::GetTypeId()},
          {"CUBIC", Cubic::GetTypeId()}};
}

}  // namespace

std::vector<std::string> CongestionControlNames() {
  std::vector<std::string> names;
  for (const auto& [name, type_id] : Controls()) names.push_back(name);
  return names;
}

std::optional<ns3::ObjectFactory> CongestionControlNamed(std::string_view name) {
  for (const auto& [known, type_id] : Controls()) {
    if (known != name) continue;
    ns3::ObjectFactory factory;
    factory.SetTypeId(type_id);
    return factory;
  }
  return std::nullopt;
}

}  // namespace railyard
