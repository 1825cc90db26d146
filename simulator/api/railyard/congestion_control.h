// SPDX-License-Identifier: GPL-2.0-only
// Interface of user-defined congestion controls: derive from QueuePairControl, register the class,
// and name it in a scenario: Set("nic.congestion_control.registered", "my_control").
#pragma once

#include "simulator/transport/congestion/queue_pair_control.h"  // IWYU pragma: export
