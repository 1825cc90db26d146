// SPDX-License-Identifier: GPL-2.0-only
// Says why the readers of units.h refuse a text, in words that go behind the quoted text: "is not a
// size (expected …)", "has an unknown unit (expected …)", "is too large (expected …)".
#pragma once

#include <string>
#include <string_view>

namespace railyard {

// They say of a text that is read without an error that it is not one: some callers accept fewer.
std::string WhyNoDuration(std::string_view text);
std::string WhyNoRate(std::string_view text);
std::string WhyNoBytes(std::string_view text);

}  // namespace railyard
