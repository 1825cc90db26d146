// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/faults/component_failures.h"

#include "simulator/diagnostics/check.h"

namespace railyard {
namespace {

constexpr double kDayS = 24.0 * 3600;
constexpr double kMonthS = 365.25 / 12 * kDayS;
// No published time to repair was found. Assumption: staff on site exchange an optic, a switch or a
// server within half a shift.
constexpr double kReplacedS = 4.0 * 3600;

}  // namespace

ComponentFailures PublishedFailures(ComponentClass component) {
  switch (component) {
    case ComponentClass::kNicTorLink:
      // Alibaba HPN (SIGCOMM 2024): 0.057 % of the links between NICs and ToRs fail per month.
      return {kMonthS / 0.00057, kReplacedS};
    case ComponentClass::kTorSwitch:
      // The same: about 0.051 % of ToR switches have critical errors per month.
      return {kMonthS / 0.00051, kReplacedS};
    case ComponentClass::kGpu:
      // Llama 3 (arXiv 2407.21783, table 5): 148 faulty GPUs (NVLink included) and 72 HBM3
      // failures in 54 days of 16,384 H100.
      return {16'384 * 54 * kDayS / (148 + 72), kReplacedS};
  }
  SIM_CHECK(false, "a class of components without figures");
  return {};
}

}  // namespace railyard
