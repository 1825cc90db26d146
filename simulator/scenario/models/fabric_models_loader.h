// SPDX-License-Identifier: GPL-2.0-only
// Loads the blocks of a scenario that are attributes of the fabric's models: `network`, `switch`
// and `switches`.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/scenario/schema/model_attribute.h"
#include "simulator/scenario/schema/switch_variant.h"
#include "simulator/text_proto/text_proto.h"
#include "topologies/graph/fabric_graph.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {

struct FabricModels {
  std::vector<ModelAttribute> attributes;  // of the network and of every switch
  std::vector<SwitchVariant> switch_variants;
};

// Returns what the blocks state. `fabric` is their fabric, nullptr if it could not be loaded; `net`
// is the result of LoadNet(), `mtu_bytes` the payload of the NICs' packets. TCP is in a lossy class
// without ECN; EFA sprays packets over all paths.
FabricModels LoadFabricModels(const ProtoCursor& scenario, const FabricGraph* fabric, NetPlugin net,
                              uint32_t mtu_bytes, Diagnostics& diagnostics);

// Returns true if ns-3's default of the network's flow control was set to credits.
bool HasCreditsByDefault();

}  // namespace railyard
