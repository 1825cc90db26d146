// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/parallelism/captured_routing.h"

#include <numeric>

#include <fmt/format.h>

#include "simulator/diagnostics/number_rows.h"

namespace railyard {
namespace {

constexpr int kFindingsMax = 20;
constexpr uint64_t kTokensMax = uint64_t{1} << 53;  // a double holds them all
constexpr uint64_t kValuesMax = 100'000'000;        // of all experts, layers and iterations

// Every layer of every iteration has routed a token.
void CheckComplete(const std::string& path, const CapturedRouting& captured,
                   Diagnostics& diagnostics) {
  const SourceLocation where = {.file = path, .line = 1, .column = 1};
  if (captured.empty()) diagnostics.Error(where, "", "has no rows (expected one or more)");
  int findings = 0;
  for (size_t iteration = 0; iteration < captured.size(); ++iteration) {
    for (size_t layer = 0; layer < captured[iteration].size(); ++layer) {
      const std::vector<double>& tokens = captured[iteration][layer];
      if (findings == kFindingsMax || std::accumulate(tokens.begin(), tokens.end(), 0.0) > 0) {
        continue;
      }
      ++findings;
      diagnostics.Error(
          where, "",
          fmt::format("layer {} of iteration {} has no tokens (expected rows for each of the {} "
                      "layers with experts)",
                      layer, iteration, captured[iteration].size()));
    }
  }
}

}  // namespace

CapturedRouting LoadCapturedRouting(const std::string& path, const Experts& experts,
                                    uint32_t expert_layers, Diagnostics& diagnostics) {
  const uint64_t iterations_max = kValuesMax / (uint64_t{experts.count} * expert_layers);
  CapturedRouting captured;
  const auto add = [&](const std::vector<uint64_t>& row) {
    while (captured.size() <= row[0]) {
      captured.emplace_back(expert_layers, std::vector<double>(experts.count));
    }
    captured[row[0]][row[1]][row[2]] += static_cast<double>(row[3]);
    return std::string();
  };
  const std::vector<NumberColumn> columns = {{"iteration", iterations_max - 1},
                                             {"layer", expert_layers - 1},
                                             {"expert", experts.count - 1},
                                             {"tokens", kTokensMax}};
  if (ReadNumberRows(path, columns, add, diagnostics)) CheckComplete(path, captured, diagnostics);
  return captured;
}

}  // namespace railyard
