// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/inference/requests.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "simulator/diagnostics/number_rows.h"
#include "workloads/plans/parallelism/random_stream.h"

namespace railyard {
namespace {

constexpr double kPsPerSecondReal = 1e12;
constexpr uint64_t kPsPerMicrosecond = 1'000'000;
constexpr uint64_t kArrivalUsMax = uint64_t{86'400} * 1'000'000;  // a day
enum RequestDraw : uint64_t { kArrivalGaps = 64 };

}  // namespace

std::vector<Request> PoissonRequests(uint32_t count, uint32_t prompt_tokens, uint32_t output_tokens,
                                     double per_second, uint64_t seed) {
  RandomStream random(seed, {kArrivalGaps});
  std::vector<Request> requests;
  double arrival_ps = 0;
  for (uint32_t i = 0; i < count; ++i) {
    requests.push_back(
        {.arrival_ps = std::llround(std::min(arrival_ps, static_cast<double>(kPlanPsMax))),
         .prompt_tokens = prompt_tokens,
         .output_tokens = output_tokens});
    arrival_ps += random.Exponential() / per_second * kPsPerSecondReal;
  }
  return requests;
}

std::vector<Request> LoadRequests(const std::string& path, Diagnostics& diagnostics) {
  std::vector<Request> requests;
  const auto add = [&](const std::vector<uint64_t>& row) -> std::string {
    if (row[1] == 0 || row[2] == 0) return "a request without tokens (expected 1 or more of each)";
    const auto arrival_ps = static_cast<int64_t>(row[0] * kPsPerMicrosecond);
    if (!requests.empty() && arrival_ps < requests.back().arrival_ps) {
      return "arrives before the request above (expected rows in the order of arrival)";
    }
    if (requests.size() == kRequestsMax) {
      return fmt::format("too many requests (expected at most {})", kRequestsMax);
    }
    requests.push_back({.arrival_ps = arrival_ps,
                        .prompt_tokens = static_cast<uint32_t>(row[1]),
                        .output_tokens = static_cast<uint32_t>(row[2])});
    return {};
  };
  const std::vector<NumberColumn> columns = {{"arrival_us", kArrivalUsMax},
                                             {"prompt_tokens", kRequestTokensMax},
                                             {"output_tokens", kRequestTokensMax}};
  if (ReadNumberRows(path, columns, add, diagnostics) && requests.empty()) {
    diagnostics.Error({.file = path, .line = 1, .column = 1}, "",
                      "has no rows (expected one or more)");
  }
  return requests;
}

}  // namespace railyard
