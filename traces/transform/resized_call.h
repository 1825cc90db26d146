// SPDX-License-Identifier: GPL-2.0-only
// Takes from a call what was recorded of it when it had other ranks or another size.
#pragma once

#include "traces/trace/trace.h"

namespace railyard {

// Leaves algorithm and protocol to NCCL's rules.
inline void ForgetChoice(TraceOperation& call) {
  call.algorithm = Algorithm::kUnstated;
  call.protocol = Protocol::kUnstated;
}

}  // namespace railyard
