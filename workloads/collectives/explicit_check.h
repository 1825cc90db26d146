// SPDX-License-Identifier: GPL-2.0-only
// Checks an algorithm that is written out step by step.
#pragma once

#include <memory>
#include <string>

#include "workloads/collectives/explicit_schedule.h"
#include "workloads/collectives/schedule_check.h"

namespace railyard {

// Returns an empty string if every rank ends with each contribution to its result exactly once and
// the algorithm completes with the slots of a connection; else the first mistake, with its place in
// `place`. Numbers of ranks, channels and chunks that do not exist are mistakes, and so are two
// lanes of a rank and channel that share a peer in one direction.
std::string WhatIsWrong(const std::shared_ptr<const ExplicitAlgorithm>& algorithm,
                        SchedulePlace& place);

}  // namespace railyard
