// SPDX-License-Identifier: GPL-2.0-only
// The makers of a server's CPUs that NCCL distinguishes (src/graph/topo.h, tuning.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace railyard {

enum class CpuVendor : uint8_t { kUnknown, kIntel, kAmd, kArm };

std::string_view CpuVendorName(CpuVendor vendor);  // "INTEL"; empty where it is not known
std::optional<CpuVendor> FindCpuVendor(std::string_view name);
// Reads the attributes of NCCL's topology XML: "x86_64" with "AuthenticAMD", or "arm64" with an
// empty vendor.
CpuVendor CpuVendorOfXml(std::string_view arch, std::string_view vendor);
// Returns the attributes of a <cpu>. An unknown vendor is written as Intel, which is what NCCL's
// tuner assumes.
std::string CpuAttributesOfXml(CpuVendor vendor);

}  // namespace railyard
