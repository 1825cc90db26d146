// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/congestion/congestion_controls.h"

#include <utility>

#include "simulator/transport/congestion/cubic.h"
#include "simulator/transport/congestion/dcqcn.h"
#include "simulator/transport/congestion/dctcp.h"
#include "simulator/transport/congestion/hpcc.h"
#include "simulator/transport/congestion/no_congestion_control.h"
#include "simulator/transport/congestion/swift.h"
#include "simulator/transport/congestion/timely.h"

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
