// SPDX-License-Identifier: GPL-2.0-only
// Numbers calls by their effect: calls with equal numbers make the same transfers at the same
// costs, for one rank or for equivalent ranks.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "simulator/replay/streams/call_table.h"
#include "simulator/replay/streams/plan_cache.h"

namespace railyard {

class PlanNumbers {
 public:
  // `calls` must outlive this. No calls are numbered yet.
  explicit PlanNumbers(const CallTable& calls) : calls_(calls) {}

  // Numbers all calls anew. `class_of_communicator` is equal for communicators whose collectives of
  // one kind and size have the same effect.
  void Number(const PlanCache& plans, std::vector<uint32_t> class_of_communicator);

  // Returns the number of a call. Precondition: Number() was called, and the call is not
  // computation.
  uint32_t Of(const Call& call) const {
    const uint32_t plan = of_collective_[calls_.CollectiveNumberOf(call)];
    return plan != kP2p ? plan : of_p2p_.at(P2pKey(call));
  }

 private:
  static constexpr uint32_t kP2p = UINT32_MAX;

  void NumberP2pLists();
  uint64_t P2pKey(const Call& call) const;

  const CallTable& calls_;
  std::vector<uint32_t> of_collective_;  // kP2p if its calls have separate numbers
  // The numbers by a hash of a call's sends and receives and its communicator's class.
  std::unordered_map<uint64_t, uint32_t> of_p2p_;
  std::vector<std::vector<uint32_t>> p2p_lists_;  // by program and index
  std::vector<uint32_t> class_of_communicator_;
};

}  // namespace railyard
