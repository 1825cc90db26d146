// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <functional>

namespace railyard {

// Calls `count`, which adds to the network's counters the packets that would have crossed it from
// `from_ps` to `until_ps`.
using CountReplayed =
    std::function<void(int64_t from_ps, int64_t until_ps, const std::function<void()>& count)>;

inline void CountAtOnce(int64_t /*from_ps*/, int64_t /*until_ps*/,
                        const std::function<void()>& count) {
  count();
}

}  // namespace railyard
