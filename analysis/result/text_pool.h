// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace railyard {

// Texts that many rows have, each kept once, for as long as the pool lives.
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
