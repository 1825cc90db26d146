// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/captured_routing.h"

#include <array>
#include <charconv>
#include <fstream>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

namespace railyard {
namespace {

constexpr std::string_view kHeader = "iteration,layer,expert,tokens";
constexpr std::array<std::string_view, 4> kColumns = {"iteration", "layer", "expert", "tokens"};
constexpr int kFindingsMax = 20;
constexpr uint64_t kTokensMax = uint64_t{1} << 53;  // a double holds them all
constexpr uint64_t kValuesMax = 100'000'000;        // of all experts, layers and iterations

class CapturedReader {
 public:
  CapturedReader(const std::string& path, const Experts& experts, uint32_t expert_layers,
                 Diagnostics& diagnostics)
      : path_(path),
        experts_(experts),
        layers_(expert_layers),
        iterations_max_(kValuesMax / (uint64_t{experts.count} * expert_layers)),
        diagnostics_(diagnostics) {}

  CapturedRouting Read(std::istream& stream) {
    std::string line;
    while (findings_ < kFindingsMax && std::getline(stream, line)) {
      ++line_;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (line_ > 1) {
        if (!line.empty()) ReadRow(line);
      } else if (line != kHeader) {
        Error(1, fmt::format("not the columns of captured routing (expected \"{}\")", kHeader));
        return {};
      }
    }
    if (findings_ == 0) CheckComplete();
    return std::move(captured_);
  }

 private:
  void ReadRow(const std::string& line) {
    std::array<uint64_t, kColumns.size()> values{};
    const std::array<uint64_t, kColumns.size()> most = {iterations_max_ - 1, layers_ - 1,
                                                        experts_.count - 1, kTokensMax};
    const char* at = line.data();
    const char* const end = line.data() + line.size();
    for (size_t i = 0; i < kColumns.size(); ++i) {
      const auto [stop, error] = std::from_chars(at, end, values[i]);
      const bool is_last = i + 1 == kColumns.size();
      const int column = static_cast<int>(at - line.data()) + 1;
      if (error != std::errc() || (is_last ? stop != end : stop == end || *stop != ',')) {
        Error(column, fmt::format("{} is not a whole number (expected rows of \"{}\")", kColumns[i],
                                  kHeader));
        return;
      }
      if (values[i] > most[i]) {
        Error(column, fmt::format("{} {} is out of range (expected 0 to {})", kColumns[i],
                                  values[i], most[i]));
        return;
      }
      at = stop + 1;
    }
    const auto [iteration, layer, expert, tokens] = values;
    while (captured_.size() <= iteration) {
      captured_.emplace_back(layers_, std::vector<double>(experts_.count));
    }
    captured_[iteration][layer][expert] += static_cast<double>(tokens);
  }

  // Every layer of every iteration has routed a token.
  void CheckComplete() {
    if (captured_.empty()) Error(0, "has no rows (expected one or more)");
    for (size_t iteration = 0; iteration < captured_.size(); ++iteration) {
      for (size_t layer = 0; layer < layers_; ++layer) {
        const std::vector<double>& tokens = captured_[iteration][layer];
        if (findings_ == kFindingsMax || std::accumulate(tokens.begin(), tokens.end(), 0.0) > 0) {
          continue;
        }
        Error(0, fmt::format("layer {} of iteration {} has no tokens (expected rows for each of "
                             "the {} layers with experts)",
                             layer, iteration, layers_));
      }
    }
  }

  void Error(int column, std::string what) {
    ++findings_;
    diagnostics_.Error({.file = path_, .line = column == 0 ? 0 : line_, .column = column}, "",
                       std::move(what));
  }

  const std::string& path_;
  const Experts& experts_;
  const uint32_t layers_;
  const uint64_t iterations_max_;
  Diagnostics& diagnostics_;
  CapturedRouting captured_;
  int line_ = 0;
  int findings_ = 0;
};

}  // namespace

CapturedRouting LoadCapturedRouting(const std::string& path, const Experts& experts,
                                    uint32_t expert_layers, Diagnostics& diagnostics) {
  std::ifstream stream(path);
  return CapturedReader(path, experts, expert_layers, diagnostics).Read(stream);
}

}  // namespace railyard
