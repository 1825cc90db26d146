// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <memory>

#include "workloads/collectives/registered_algorithms.h"

namespace railyard {

// Returns AllReduce by recursive doubling, for powers of two: in step k each rank exchanges its
// whole partial sum with the rank whose number differs in bit k. It takes log2(n) steps, each of
// which sends the whole vector, so it suits small vectors (R. Thakur, R. Rabenseifner, W. Gropp,
// "Optimization of Collective Communication Operations in MPICH", 2005, section 4.5). Returns
// nullptr for other collectives and numbers of ranks.
std::shared_ptr<const ExplicitAlgorithm> MakeRecursiveDoubling(const AlgorithmRequest& request);

}  // namespace railyard
