// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <algorithm>
#include <memory_resource>
#include <set>
#include <string_view>

namespace railyard {

// Stores the texts of rows contiguously. They live as long as the pool.
class TextPool {
 public:
  // Stores a text that many rows share: equal texts are stored once.
  std::string_view Keep(std::string_view text) {
    const auto known = kept_.find(text);
    return known != kept_.end() ? *known : *kept_.insert(Add(text)).first;
  }
  // Stores a text without looking for an equal one.
  std::string_view Add(std::string_view text) {
    auto* const copy = static_cast<char*>(characters_.allocate(text.size(), 1));
    std::copy(text.begin(), text.end(), copy);
    return {copy, text.size()};
  }

 private:
  std::pmr::monotonic_buffer_resource characters_;
  std::set<std::string_view> kept_;
};

}  // namespace railyard
