// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>

namespace railyard {

// Texts that many rows have, each kept once, for as long as the pool lives.
class TextPool {
 public:
  std::string_view Keep(std::string_view text) {
    const auto known = texts_.find(text);
    return known != texts_.end() ? *known : *texts_.emplace(text).first;
  }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_set<std::string, Hash, std::equal_to<>> texts_;
};

}  // namespace railyard
