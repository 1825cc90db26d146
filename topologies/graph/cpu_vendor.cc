// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/graph/cpu_vendor.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace railyard {
namespace {

constexpr std::array<std::pair<CpuVendor, std::string_view>, 3> kNames = {
    {{CpuVendor::kIntel, "INTEL"}, {CpuVendor::kAmd, "AMD"}, {CpuVendor::kArm, "ARM"}}};

// kvDictCpuArch and kvDictCpuVendor (src/graph/topo.cc).
constexpr std::string_view kArmArch = "arm64";
constexpr std::string_view kIntelXml = "GenuineIntel";
constexpr std::string_view kAmdXml = "AuthenticAMD";

}  // namespace

std::string_view CpuVendorName(CpuVendor vendor) {
  const auto known = std::ranges::find(kNames, vendor, [](const auto& name) { return name.first; });
  return known == kNames.end() ? std::string_view() : known->second;
}

std::optional<CpuVendor> FindCpuVendor(std::string_view name) {
  const auto known = std::ranges::find(kNames, name, [](const auto& each) { return each.second; });
  if (known == kNames.end()) return std::nullopt;
  return known->first;
}

CpuVendor CpuVendorOfXml(std::string_view arch, std::string_view vendor) {
  if (arch == kArmArch) return CpuVendor::kArm;
  if (vendor == kIntelXml) return CpuVendor::kIntel;
  return vendor == kAmdXml ? CpuVendor::kAmd : CpuVendor::kUnknown;
}

std::string CpuAttributesOfXml(CpuVendor vendor) {
  if (vendor == CpuVendor::kArm) return fmt::format("arch=\"{}\"", kArmArch);
  return fmt::format("arch=\"x86_64\" vendor=\"{}\"",
                     vendor == CpuVendor::kAmd ? kAmdXml : kIntelXml);
}

}  // namespace railyard
