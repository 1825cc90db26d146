// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/platforms/cpu_vendor_reader.h"

#include <string>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"

namespace railyard {

void ReadCpuVendor(const ProtoCursor& cursor, const char* field, CpuVendor& vendor,
                   Diagnostics& diagnostics) {
  if (!cursor.Has(field)) return;
  const std::string name = cursor.Text(field, "");
  if (const auto known = FindCpuVendor(name)) {
    vendor = *known;
    return;
  }
  cursor.Error(
      diagnostics, field,
      fmt::format("unknown maker of CPUs {} (expected {})", Quote(name), kExpectedCpuVendor));
}

}  // namespace railyard
