// SPDX-License-Identifier: GPL-2.0-only
// Whether a run can fit in memory.
#pragma once

#include <cstdint>
#include <string>

namespace railyard {

// Why a run that opens so many connections cannot be had: more than it can number, or more memory
// than this machine, or the limit of this process (RLIMIT_AS), has. Empty where nothing is known to
// be in the way: connections are not all that takes memory.
std::string WhyTooLarge(uint64_t connections);

// What a connection between two ranks takes at the least. An AllToAll over 1,024 GPUs took 1,750 B
// for each of its pairs, connections, messages, queue pairs and paths together.
inline constexpr uint64_t kConnectionBytesMin = 1024;

}  // namespace railyard
