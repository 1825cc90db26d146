// SPDX-License-Identifier: GPL-2.0-only
// Builds a railyard.protos.Topology from the parts of a graph file, so that all formats are checked
// by the same rules and each finding is at the line of its part.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "simulator/text_proto/text_proto.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {
namespace protos {
class Topology;
}

class TopologyMessage {
 public:
  enum class Part { kFabric, kDevice, kLink };

  explicit TopologyMessage(const std::string& path);

  // Begins a device or a link that was found at `line`; the following calls of Set() fill it.
  void StartDevice(int line);
  void StartLink(int line);
  int device_count() const;
  int link_count() const;
  const std::string& DeviceName() const;  // of the device started last

  // Returns true if the part has a field of that name.
  bool Knows(Part part, const std::string& field) const;
  // Sets a field from its text. Returns an empty string on success, else a description of the
  // values that are accepted.
  std::string Set(Part part, const std::string& field, const std::string& text);
  bool Has(Part part, const std::string& field) const;

  // Returns the checked fabric, or nullopt after an error. The object must not be used afterwards.
  std::optional<FabricGraph> Load(Diagnostics& diagnostics);

 private:
  TopologyMessage(const std::string& path, std::unique_ptr<protos::Topology> topology);
  google::protobuf::Message& MessageOf(Part part) const;

  TextProtoFile file_;
  protos::Topology& topology_;  // the message of the file
};

}  // namespace railyard
