// SPDX-License-Identifier: GPL-2.0-only
// A congestion control of one's own: derive from QueuePairControl, register it, and name it in a
// scenario: Set("nic.congestion_control.registered", "my_control").
#pragma once

#include "simulator/transport/congestion/queue_pair_control.h"  // IWYU pragma: export
