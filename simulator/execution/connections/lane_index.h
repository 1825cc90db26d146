// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/units/identifier.h"

namespace railyard {

// Identifies a lane of a program that runs (LaneTable): it owns a side of a connection.
using LaneIndex = Identifier<struct LaneIndexTag>;

}  // namespace railyard
