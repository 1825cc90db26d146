// SPDX-License-Identifier: GPL-2.0-only
// Declares the interface of user-defined algorithms for collectives. Such an algorithm is a
// function from kind, number of ranks and root to the steps of each rank. It is registered under a
// name that a scenario chooses: Set("workload.registered_algorithm", "my_algorithm").
#pragma once

#include "workloads/collectives/registered_algorithms.h"  // IWYU pragma: export
