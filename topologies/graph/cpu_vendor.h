// SPDX-License-Identifier: GPL-2.0-only
// The makers of a server's CPUs, as far as NCCL distinguishes them (src/graph/topo.h, tuning.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace railyard {

enum class CpuVendor : uint8_t { kUnknown, kIntel, kAmd, kArm };

std::string_view CpuVendorName(CpuVendor vendor);  // "INTEL"; empty where it is not known
std::optional<CpuVendor> FindCpuVendor(std::string_view name);
// Reads the words of NCCL's topology XML: "x86_64" and "AuthenticAMD", "arm64" and nothing.
CpuVendor CpuVendorOfXml(std::string_view arch, std::string_view vendor);
// Attributes of a <cpu>; one that is not known is Intel's, as NCCL's tuner would have it.
std::string CpuAttributesOfXml(CpuVendor vendor);

}  // namespace railyard
