// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/state/state_archive.h"
#include "simulator/transport/contract/transport.h"

namespace railyard {

// Counts the payload that some of a transport's flows deliver (Transport::CountPayload).
class PayloadCount {
 public:
  // Counts the flow's payload from now on.
  void Follow(FlowId flow) {
    is_followed_.resize(std::max<size_t>(is_followed_.size(), flow + size_t{1}));
    is_followed_[flow] = true;
  }
  bool follows_any() const { return !is_followed_.empty(); }
  // Must be called when a flow delivers payload, unless no flow is followed.
  void Add(FlowId flow, uint64_t payload_bytes) {
    if (flow < is_followed_.size() && is_followed_[flow]) bytes_ += payload_bytes;
  }
  uint64_t bytes() const { return bytes_; }

  void Visit(StateArchive& archive) { archive.Named("counted_payload_bytes").Count(bytes_); }

 private:
  std::vector<bool> is_followed_;  // by flow
  uint64_t bytes_ = 0;
};

}  // namespace railyard
