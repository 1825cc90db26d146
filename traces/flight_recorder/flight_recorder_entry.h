// SPDX-License-Identifier: GPL-2.0-only
// Describes an entry of PyTorch's Flight Recorder (torch/csrc/distributed/c10d/FlightRecorder.hpp),
// versions 2.0 to 2.x.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/pytorch/comms_record.h"
#include "traces/reading/value.h"

namespace railyard {

struct FlightRecorderEntry {
  enum class State : uint8_t {
    kScheduled,  // the process has enqueued it, but the GPU has not begun it
    kStarted,
    kCompleted,
  };

  std::optional<uint64_t> record_id;
  std::optional<uint64_t> sequence;  // among the group's collectives; absent for Send and Recv
  // Among the group's Sends and Recvs; those of one batch share a number.
  std::optional<uint64_t> message_sequence;
  bool is_message = false;
  bool states_point_to_point = false;  // the entry says whether it is of Sends and Recvs
  bool is_point_to_point = false;      // and that it is
  State state = State::kCompleted;
  int64_t measured_ps = 0;        // 0: not recorded
  bool duration_is_none = false;  // recorded, but NaN, infinite, negative or beyond 11 days
  CommsRecord record;             // without the group's members
  // The elements of each tensor, where there are several: of an AllToAll of lists, its parts.
  std::vector<uint64_t> inputs;
  std::vector<uint64_t> outputs;
};

// Returns nullopt if the entry has no name; sizes may be absent.
std::optional<FlightRecorderEntry> ParseFlightRecorderEntry(const Value& value);

}  // namespace railyard
