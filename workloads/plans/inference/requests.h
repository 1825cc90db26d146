// SPDX-License-Identifier: GPL-2.0-only
// Makes the requests of an inference job: arrival times, prompt lengths and answer lengths.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "workloads/plans/plan/plan.h"

namespace railyard {

inline constexpr uint32_t kRequestsMax = 1'000'000;
inline constexpr uint32_t kRequestTokensMax = 16'777'216;

// Returns requests of equal lengths, the first at time 0, the others after exponential gaps of that
// mean rate; arrivals are at most kPlanPsMax.
std::vector<Request> PoissonRequests(uint32_t count, uint32_t prompt_tokens, uint32_t output_tokens,
                                     double per_second, uint64_t seed);

// Reads comma-separated values with the columns arrival_us, prompt_tokens and output_tokens, in
// that order, and a header line; arrivals must not decrease. Every error is a finding at its line.
// Precondition: the file exists.
std::vector<Request> LoadRequests(const std::string& path, Diagnostics& diagnostics);

}  // namespace railyard
