// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/text_proto/text_proto.h"
#include "simulator/transport/nic/nic_settings.h"
#include "topologies/graph/fabric_graph.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {

// Loads `nics`, the NICs of a fabric that differ from the rest.
class NicsLoader {
 public:
  // Resolves the NICs that each entry names: at least one, and none that another entry names as
  // well. `fabric` is nullptr if it could not be loaded. All references must outlive this.
  NicsLoader(const ProtoCursor& scenario, const FabricGraph* fabric, Diagnostics& diagnostics);

  // Sets the stated rates of the NICs' cables, which must not exceed the fabric's. A cable between
  // two NICs has the lower rate.
  void ApplyRates(FabricGraph& fabric);
  // Returns the settings of each entry that states more than a rate, with `common` for settings
  // that it does not state. `net` is the result of LoadNet(): with TCP sockets, NICs can differ in
  // their rates only.
  std::vector<NicVariant> Load(NetPlugin net, const NicSettings& common);

 private:
  std::optional<uint64_t> RateOf(const ProtoCursor& entry, const std::vector<DeviceId>& nics,
                                 const FabricGraph& fabric);

  const ProtoCursor& scenario_;
  Diagnostics& diagnostics_;
  std::vector<std::vector<DeviceId>> named_;  // by entry
};

}  // namespace railyard
