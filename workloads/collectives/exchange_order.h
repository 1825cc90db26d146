// SPDX-License-Identifier: GPL-2.0-only
// Determines the order in which a lane sends and receives the messages of an exchange, which is the
// same on all ranks. Sends run ahead of receives by at most the number of messages that may be in
// flight, so that every rank reaches the receive for which another rank's next send waits.
#pragma once

#include <algorithm>
#include <cstdint>

namespace railyard {

struct ExchangeOrder {
  uint64_t sends = 0;
  uint64_t receives = 0;
  uint64_t ahead = 1;  // sends before the first receive

  struct Place {
    bool is_send = false;
    uint64_t number = 0;  // of the send or the receive, from 0
  };
  uint64_t count() const { return sends + receives; }
  // Returns the index-th message: first come the sends that run ahead, then alternating receives
  // and sends, then the remaining ones of either kind.
  Place At(uint64_t index) const {
    const uint64_t first = std::min(ahead, sends);
    if (index < first) return {true, index};
    index -= first;
    const uint64_t turns = std::min(receives, sends - first);
    if (index < 2 * turns) return {index % 2 == 1, index / 2 + (index % 2 == 1 ? first : 0)};
    index -= 2 * turns;
    const bool sends_left = sends - first > turns;
    return {sends_left, index + turns + (sends_left ? first : 0)};
  }
};

}  // namespace railyard
