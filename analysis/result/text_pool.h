// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace railyard {

// Stores texts that many rows share, each once. They live as long as the pool.
class TextPool {
 public:
  std::string_view Keep(std::string_view text) {
    const auto known = texts_.find(text);
    return known != texts_.end() ? *known : *texts_.emplace(text).first;
  }

 private:
  std::set<std::string, std::less<>> texts_;
};

}  // namespace railyard
