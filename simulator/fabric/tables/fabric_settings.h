// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

#include "simulator/fabric/tables/buffer_settings.h"
#include "simulator/units/units.h"

namespace railyard {

// Names the method that keeps a receiver's buffer from overflowing.
enum class FlowControl : uint8_t {
  kNone,     // packets that find no room are dropped
  kPfc,      // pause frames, IEEE 802.1Qbb
  kCredits,  // the sender counts the receiver's free space: InfiniBand, NVLink
};

// Names the method by which switches choose among equal-cost links.
enum class LoadBalancing : uint8_t {
  kEcmp,      // a hash of switch and queue pair, for all of its packets
  kFlowlet,   // drawn again after a pause of the flow (LetFlow: Vanini et al., NSDI 2017)
  kAdaptive,  // the link with the shortest queue, drawn at random among equals
  kSpraying,  // drawn for each packet (Dixit et al., INFOCOM 2013)
};

// Names the form that ports take. Results are the same in both forms.
enum class PortForm : uint8_t {
  kShort,    // the short form wherever it is exact
  kGeneral,  // always the general form
};

// Holds the settings of a network as a whole. FabricNetwork's ns-3 attributes are bound to these
// members; their meaning, ranges and sources stand with the attributes.
struct FabricSettings {
  PortForm form = PortForm::kShort;
  bool hashes_trajectory = false;
  uint64_t seed = 1;
  FlowControl flow_control = FlowControl::kPfc;  // between NICs and switches
  LoadBalancing load_balancing = LoadBalancing::kEcmp;
  int64_t flowlet_gap_ps = 20 * kPsPerUs;
  uint32_t credit_bytes = 256 << 10;
  uint32_t nvlink_credit_bytes = 64 << 10;
  uint32_t pcie_credit_bytes = 64 << 10;
  int64_t pause_response_ps = 614'400;
  int64_t storm_threshold_ps = 100 * kPsPerMs;
  BufferSettings receive_buffers = kReceiveBufferDefaults;  // no attribute
  // If true, each port of a NIC has an address, to which packets are sent. Is no attribute.
  bool ports_have_addresses = false;
};

}  // namespace railyard
