// SPDX-License-Identifier: GPL-2.0-only
// Adds servers, switches, and cables of different lengths to a fabric; all generators use it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/graph/server.h"

namespace railyard {

// Describes a NIC of a fabric under construction.
struct BuiltNic {
  DeviceId device{0};
  ServerIndex server{};
  uint32_t index = 0;     // within the server
  uint64_t rate_bps = 0;  // of one port
  uint32_t ports = 1;
};

class FabricBuilder {
 public:
  // Uses the name and the spread of `network`, which must outlive this.
  explicit FabricBuilder(const NetworkSpec& network);

  // Adds all servers, numbered from 0 in the order of `network`. Returns their NICs by server, then
  // by index.
  std::vector<BuiltNic> AddServers();
  DeviceId AddSwitch(std::string name, std::vector<uint16_t> coordinates = {});
  // Adds `links.count` parallel cables.
  void Join(DeviceId a, DeviceId b, Tier tier, const LinkSpec& links);
  // Adds one NIC_LEAF cable at the NIC's rate for each of its ports.
  void Attach(const BuiltNic& nic, DeviceId leaf);
  // Cables the first `nics_per_switch` NICs to the first switch, the next to the second, and so on.
  // Precondition: there are enough switches.
  void AttachInOrder(std::span<const BuiltNic> nics, std::span<const DeviceId> switches,
                     uint32_t nics_per_switch);

  FabricGraph& fabric() { return fabric_; }
  FabricGraph Take() && { return std::move(fabric_); }

 private:
  void AddServer(ServerIndex server, const ServerSpec& spec, std::vector<BuiltNic>& nics);
  // Adds NVSwitches, NICs and cables of a server that has a ServerLayout. Its GPUs exist already.
  void AddLaidOut(ServerIndex server, const ServerSpec& spec, const std::vector<DeviceId>& gpus,
                  std::vector<BuiltNic>& nics);
  // Adds the PCIe tree of a server that has one.
  void AddPcie(ServerIndex server, const ServerSpec& spec, const std::vector<DeviceId>& gpus,
               std::span<const BuiltNic> nics);
  DeviceId AddPart(ServerIndex server, DeviceKind kind, const char* noun, uint32_t index,
                   int64_t latency_ps);
  void AddCable(DeviceId a, DeviceId b, CableSpec cable);

  const NetworkSpec& network_;
  FabricGraph fabric_;
};

}  // namespace railyard
