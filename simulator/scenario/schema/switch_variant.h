// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <vector>

#include "simulator/scenario/schema/model_attribute.h"
#include "topologies/graph/graph_ids.h"

namespace railyard {

// Holds the attributes in which some switches of a fabric differ from the rest.
struct SwitchVariant {
  std::vector<DeviceId> switches;
  std::vector<ModelAttribute> attributes;  // of railyard::Switch
};

}  // namespace railyard
