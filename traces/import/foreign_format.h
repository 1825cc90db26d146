// SPDX-License-Identifier: GPL-2.0-only
// Says of files that no reader takes what they are.
#pragma once

#include <string>
#include <string_view>

namespace railyard {

// Returns a finding's text for a file that begins with `head` and is known not to be a capture in
// UTF-8: "is a ZIP archive (expected …)"; empty if it is not known to be anything else.
std::string WhyForeign(std::string_view head);

}  // namespace railyard
