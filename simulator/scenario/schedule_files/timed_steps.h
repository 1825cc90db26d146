// SPDX-License-Identifier: GPL-2.0-only
// Divides the steps of an algorithm, which were found one after the other, among channels.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/collectives/explicit_schedule.h"

namespace railyard {

// Describes a step by when it was found: `at` counts the steps of all GPUs. One that sends was
// found when its receiver took the message; it can be done as soon as `possible_at` steps are.
struct TimedStep {
  ExplicitStep made;
  uint64_t at = 0;
  uint64_t possible_at = 0;
};

// Writes one lane for each rank and channel of `algorithm`, whose numbers of ranks, channels and
// chunks are set; `steps_of` lists each rank's steps in the order of `at`. Chunks that every GPU
// sends equally often are spread over the channels, and all chunks are divided into as many parts
// as that needs, at most until there are `steps_max` steps. A message is sent as soon as it can be:
// a connection's messages are in the order of their receipt, and one of its slots is free when all
// steps before in `at` are done. Every message that is sent must be received.
void WriteLanes(std::vector<std::vector<TimedStep>> steps_of, uint64_t steps_max,
                ExplicitAlgorithm& algorithm);

}  // namespace railyard
