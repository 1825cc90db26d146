// SPDX-License-Identifier: GPL-2.0-only
// Converts versions of NCCL between their text, "2.27.5", and NCCL_VERSION_CODE, 22705.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace railyard {

// Returns the code of "2.27.5", with or without a suffix that begins with '-' or '+'; nullopt if it
// is no version of NCCL 2. The weight of the major version is 1,000 up to 2.8, then 10,000
// (NCCL_VERSION in nccl.h).
std::optional<uint32_t> ParseNcclVersion(const std::string& text);
// Returns the text of a code, "2.27.5" or "2.8.3".
std::string NcclVersionText(uint64_t code);

}  // namespace railyard
