// SPDX-License-Identifier: GPL-2.0-only
// Resolves the targets of a fault, which are names of cables and devices, patterns, domains and
// draws, to links.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "simulator/text_proto/text_proto.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Describes a cable, or a device with all of its cables that a fault may affect. `forward` links
// lead away from the end that is named first (for a device, from the device), `backward` links
// towards it.
struct FaultTarget {
  std::string name;
  std::optional<DeviceId> device;
  std::vector<LinkId> forward;
  std::vector<LinkId> backward;
};

class FaultTargets {
 public:
  // `fabric` is nullptr if it could not be loaded; nothing is looked up then.
  FaultTargets(const ProtoCursor& scenario, const FabricGraph* fabric, Diagnostics& diagnostics);

  // Returns the targets that a fault's `link`, `device` or `domain` names. Empty after a finding.
  std::vector<FaultTarget> Load(const ProtoCursor& fault);
  // Returns GPUs by name or pattern. Empty after a finding.
  std::vector<GpuIndex> LoadGpus(const ProtoCursor& message, const char* field);
  // Returns a cable or device by its name, without patterns; nullopt if there is none.
  std::optional<FaultTarget> Find(const std::string& name) const;

 private:
  void AddLinks(const ProtoCursor& cursor, const char* field, int index, const std::string& name,
                std::vector<FaultTarget>& targets);
  void AddLinksThatFit(const std::string& pattern, std::vector<FaultTarget>& targets);
  void AddDevices(const ProtoCursor& cursor, const char* field, int index, const std::string& name,
                  std::vector<FaultTarget>& targets);
  void AddDomain(const ProtoCursor& fault, std::vector<FaultTarget>& targets);
  bool IsCircuit(uint32_t cable) const;
  FaultTarget CableFrom(uint32_t cable, DeviceId from, const std::string& name) const;
  FaultTarget DeviceTarget(DeviceId device) const;
  std::optional<uint32_t> FirstCableOfNic(const std::string& name) const;
  const std::vector<std::string>& CableNames();
  std::vector<std::string> DeviceNames() const;

  const ProtoCursor& scenario_;
  const FabricGraph* fabric_;
  Diagnostics& diagnostics_;
  std::map<std::string, int> domains_;  // by name
  std::vector<std::string> cable_names_;
  size_t compared_names_ = 0;
};

// Returns true if the pattern, in which * matches any letters, matches the whole name.
bool FitsPattern(std::string_view pattern, std::string_view name);

}  // namespace railyard
