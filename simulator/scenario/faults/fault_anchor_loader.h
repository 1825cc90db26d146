// SPDX-License-Identifier: GPL-2.0-only
// Loads the event from which a fault's times count: another fault, a collective or an iteration.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "simulator/faults/fault_timeline.h"
#include "simulator/text_proto/text_proto.h"
#include "workloads/job/job.h"

namespace railyard {

// Holds the names of a scenario's faults.
struct FaultNames {
  std::map<std::string, std::string> path_by_name;  // of all faults, even wrong ones
  std::map<std::string, uint32_t> index_by_name;    // of faults that were loaded
};

// Loads `when` of a fault. `job` is nullptr if it could not be loaded.
void LoadFaultAnchor(const ProtoCursor& when, const FaultNames& names, const Job* job,
                     FaultAnchor& anchor, Diagnostics& diagnostics);

}  // namespace railyard
