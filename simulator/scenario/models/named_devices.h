// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string_view>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/text_proto/text_proto.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Finds the devices of one kind that the entries of a block name by patterns in their field
// `device`: at least one each, and no device twice.
class NamedDevices {
 public:
  struct Words {
    DeviceKind kind;
    std::string_view noun;     // "NIC"
    std::string_view example;  // "\"server1/nic3\" or \"*/nic3\""
  };
  // `fabric` is nullptr if it could not be loaded. All references must outlive this.
  NamedDevices(const FabricGraph* fabric, const Words& words, Diagnostics& diagnostics);

  // Returns the devices of an entry, in the order of its patterns, and adds its findings.
  std::vector<DeviceId> Resolve(const ProtoCursor& entry);

 private:
  void AddFitting(const ProtoCursor& entry, int pattern, std::vector<DeviceId>& devices);

  const FabricGraph* fabric_;
  Words words_;
  Diagnostics& diagnostics_;
  std::vector<bool> is_named_;  // by device
};

}  // namespace railyard
