// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/units/identifier.h"

namespace railyard {

// Indexes the faults of a scenario and the tables of a run that have an entry for each.
using FaultIndex = Identifier<struct FaultTag>;

}  // namespace railyard
