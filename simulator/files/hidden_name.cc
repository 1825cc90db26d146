// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/files/hidden_name.h"

#include <chrono>
#include <unistd.h>

#include <fmt/format.h>

namespace railyard {

std::filesystem::path NewHiddenName(const std::filesystem::path& directory) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return directory /
         fmt::format("{}{}-{}", kHiddenPrefix, getpid(), std::chrono::nanoseconds(now).count());
}

bool IsHiddenName(std::string_view name) {
  if (!name.starts_with(kHiddenPrefix)) return false;
  name.remove_prefix(kHiddenPrefix.size());
  const size_t dash = name.find('-');
  if (dash == 0 || dash == std::string_view::npos || dash + 1 == name.size()) return false;
  return name.find_first_not_of("0123456789-") == std::string_view::npos &&
         name.find('-', dash + 1) == std::string_view::npos;
}

}  // namespace railyard
