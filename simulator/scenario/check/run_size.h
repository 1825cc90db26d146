// SPDX-License-Identifier: GPL-2.0-only
// Checks that a run fits in memory.
#pragma once

#include <cstdint>
#include <string>

namespace railyard {

// Returns why a run with this number of connections is impossible: there are more than
// kConnectionsMax, or they need more memory than the machine has or this process may use
// (RLIMIT_AS). Returns an empty string if no obstacle is known; other data needs memory too.
std::string WhyTooLarge(uint64_t connections);

// A connection between two ranks takes at least this memory. An AllToAll over 1,024 GPUs took 1,750
// B for each of its pairs: connections, messages, queue pairs and paths together.
inline constexpr uint64_t kConnectionBytesMin = 1024;

}  // namespace railyard
