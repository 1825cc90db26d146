// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/units/identifier.h"

namespace railyard {

// Identifies a rank within a communicator, as schedules number it. It is not the rank of the job.
using RankIndex = Identifier<struct RankTag>;

}  // namespace railyard
