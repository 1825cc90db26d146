// SPDX-License-Identifier: GPL-2.0-only
// Checks that a run fits in memory.
#pragma once

#include <cstdint>
#include <string>

namespace railyard {

// Returns why a run with so many connections is impossible: they are more than it can number, or
// need more memory than the machine, or the limit of this process (RLIMIT_AS), has. Empty if no
// obstacle is known; connections are not all that takes memory.
std::string WhyTooLarge(uint64_t connections);

// Least memory of a connection between two ranks. An AllToAll over 1,024 GPUs took 1,750 B for each
// of its pairs: connections, messages, queue pairs and paths together.
inline constexpr uint64_t kConnectionBytesMin = 1024;

}  // namespace railyard
