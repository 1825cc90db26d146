// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/units/units.h"

namespace railyard {

// A cable that is down from `at_ps` until `until_ps`, in one direction or both. Checked: the cable
// exists, the fault ends after it begins, and no two faults hold one direction at the same time.
struct FaultSpec {
  std::string name;
  uint32_t cable = 0;  // index into FabricGraph::cables()
  bool forward = true;
  bool backward = true;
  int64_t at_ps = 0;
  int64_t until_ps = kNeverPs;  // kNeverPs: for good
  SourceLocation where;
};

}  // namespace railyard
