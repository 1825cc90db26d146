// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/units/identifier.h"

namespace railyard {

// Identifies a server of a fabric; they are numbered from 0 without gaps.
using ServerIndex = Identifier<struct ServerTag>;

}  // namespace railyard
