// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string_view>

namespace railyard {

// Orders names by their text, with the numbers in them compared by value: "nic9" comes before
// "nic10". Names that are equal but for leading zeros are ordered by their text.
struct NaturalLess {
  using is_transparent = void;  // NOLINT(readability-identifier-naming): a name that std::map knows
  bool operator()(std::string_view a, std::string_view b) const;
};

}  // namespace railyard
