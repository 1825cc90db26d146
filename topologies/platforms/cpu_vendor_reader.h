// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/text_proto/text_proto.h"
#include "topologies/graph/cpu_vendor.h"

namespace railyard {

inline constexpr const char* kExpectedCpuVendor = "\"INTEL\", \"AMD\" or \"ARM\"";

// Reads a text field with a vendor's name into `vendor`, which stays unchanged if the field is
// absent or wrong.
void ReadCpuVendor(const ProtoCursor& cursor, const char* field, CpuVendor& vendor,
                   Diagnostics& diagnostics);

}  // namespace railyard
