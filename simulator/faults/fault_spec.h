// SPDX-License-Identifier: GPL-2.0-only
// Describes a fault: its effect, its targets, and its time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/fabric/tables/packet.h"
#include "simulator/faults/fault_timeline.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

enum class FaultKind : uint8_t {
  kLinkDown,        // links carry nothing
  kSwitchReboot,    // a switch's cables carry nothing
  kDegrade,         // links send at a lower rate
  kLoss,            // links lose some of their packets
  kDelay,           // links delay their packets
  kPauseStorm,      // the device at a link's end sends pause frames continually
  kBackgroundLoad,  // GPUs outside the job send to others
  kStraggler,       // GPUs work more slowly, or halt
};
std::string_view FaultKindName(FaultKind kind);  // "LINK_DOWN", …

// Selects the packets that are lost among those that cross a link.
struct LossSpec {
  enum class Model : uint8_t {
    kUniform,         // each with `probability`
    kGilbertElliott,  // each with the probability of the link's state
    kBitErrors,       // each with 1 - (1 - bit_error_ratio)^bits
    kNumbered,        // `count` packets of `kind`, from the first_number-th on
  };
  Model model = Model::kUniform;
  double probability = 0;
  double bit_error_ratio = 0;
  // The transition probabilities per packet, from the good state to the bad and back, and the loss
  // probability in each state.
  double to_bad = 0;
  double to_good = 1;
  double loss_in_good = 0;
  double loss_in_bad = 1;
  std::optional<PacketKind> kind;  // not set: any kind with data
  uint64_t first_number = 1;
  uint64_t count = 1;
};

// Describes traffic of other jobs. Every sender keeps one message to every receiver in flight and
// begins messages at the offered rate.
struct LoadSpec {
  std::vector<GpuIndex> senders;    // GPUs
  std::vector<GpuIndex> receivers;  // GPUs
  uint64_t rate_bps = 0;            // of each pair
  uint64_t message_bytes = 0;
};

struct FaultSpec {
  std::string name;
  FaultKind kind = FaultKind::kLinkDown;
  std::string target;         // for people
  std::vector<LinkId> links;  // directions, ascending, without duplicates
  std::vector<GpuIndex> gpus;
  FaultTimeline timeline;
  bool is_noticed = true;  // links that are down are detected
  uint64_t seed = 0;       // of all its draws
  // For kDegrade, the rate, or the share of each link's rate; other faults have neither.
  uint64_t rate_bps = 0;
  double rate_share = 0;
  LossSpec loss;
  // For kDelay, the minimum delay and the largest random addition.
  int64_t delay_ps = 0;
  int64_t jitter_ps = 0;
  double speed = 1;  // kStraggler: share of full speed; 0 halts the GPU
  LoadSpec load;
  SourceLocation where;
};

}  // namespace railyard
