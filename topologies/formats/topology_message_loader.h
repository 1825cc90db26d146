// SPDX-License-Identifier: GPL-2.0-only
// A railyard.protos.Topology put together from the parts of a graph file, so that every format is
// checked by the same rules and each finding is at the part's line.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "simulator/text_proto/text_proto.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

class TopologyMessage {
 public:
  enum class Part { kFabric, kDevice, kLink };

  explicit TopologyMessage(std::string path);

  // The following Set() calls are about this device or link, found at that line.
  void StartDevice(int line);
  void StartLink(int line);
  int device_count() const;
  int link_count() const;
  const std::string& DeviceName() const;  // of the device started last

  // Whether the part has a field of that name.
  bool Knows(Part part, const std::string& field) const;
  // Sets a field from its text; empty if it did, else what would have been right.
  std::string Set(Part part, const std::string& field, const std::string& text);
  bool Has(Part part, const std::string& field) const;

  // The fabric, checked; nullopt after an error. Ends the use of this.
  std::optional<FabricGraph> Load(Diagnostics& diagnostics);

 private:
  google::protobuf::Message& MessageOf(Part part) const;

  TextProtoFile file_;
};

}  // namespace railyard
