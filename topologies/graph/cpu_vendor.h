// SPDX-License-Identifier: GPL-2.0-only
// Lists the CPU vendors that NCCL distinguishes (src/graph/topo.h, tuning.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace railyard {

enum class CpuVendor : uint8_t { kUnknown, kIntel, kAmd, kArm };

std::string_view CpuVendorName(CpuVendor vendor);  // "INTEL"; empty if unknown
std::optional<CpuVendor> FindCpuVendor(std::string_view name);
// Returns the vendor that the attributes of NCCL's topology XML name: "x86_64" with "AuthenticAMD",
// or "arm64" with an empty vendor.
CpuVendor CpuVendorOfXml(std::string_view arch, std::string_view vendor);
// Returns the attributes of a <cpu>. An unknown vendor is written as Intel, as NCCL's tuner
// assumes.
std::string CpuAttributesOfXml(CpuVendor vendor);

}  // namespace railyard
