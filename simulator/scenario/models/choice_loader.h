// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/text_proto/text_proto.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {

// Reads nccl.ALGO and nccl.PROTO into `settings`, in the syntax of NCCL (parseList in
// src/graph/tuning.cc): names, or after a ^ names that are excluded; from 2.24 on several lists
// separated by semicolons, of which all but the first begin with a collective:
// "Ring;allreduce:Tree". `version_text` is the job's version. Precondition: `settings.version` is
// set.
void LoadChoices(const ProtoCursor& nccl, const std::string& version_text, NcclSettings& settings,
                 Diagnostics& diagnostics);

}  // namespace railyard
