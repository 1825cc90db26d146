// SPDX-License-Identifier: GPL-2.0-only
// Rewrites a program of MSCCL as a plan of MSCCL++, whose thread blocks share all data of a GPU.
#pragma once

#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/scenario/schedule_files/msccl_program.h"
#include "simulator/scenario/schedule_files/mscclpp_plan.h"

namespace railyard {

// Each chunk of a message has a separate slot in the receiver's mailbox, into which it is put
// when it is sent, and each dependency is a semaphore. Returns nullopt with findings at their
// lines: two thread blocks that use one connection in the same direction, messages that nobody
// receives.
std::optional<MscclppPlan> PlanOf(const std::string& path, const MscclProgram& program,
                                  Diagnostics& diagnostics);

}  // namespace railyard
