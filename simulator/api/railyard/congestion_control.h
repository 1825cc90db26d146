// SPDX-License-Identifier: GPL-2.0-only
// Declares the interface of user-defined congestion controls. A user derives a class from
// QueuePairControl, registers it, and names it in a scenario:
// Set("nic.congestion_control.registered", "my_control").
#pragma once

#include "simulator/transport/congestion/queue_pair_control.h"  // IWYU pragma: export
