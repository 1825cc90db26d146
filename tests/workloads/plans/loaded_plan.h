// SPDX-License-Identifier: GPL-2.0-only
// Loads a plan from a text of the test's own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/text_proto/text_file.h"
#include "workloads/plans/synthesis/plan_loader.h"

namespace railyard {

struct LoadedPlan {
  explicit LoadedPlan(const std::string& text, const std::vector<std::string>& sets = {})
      : file(text) {
    Diagnostics diagnostics;
    plan = LoadPlanFile(file.path(), sets, diagnostics);
    findings = file.WithoutPath(diagnostics.ToString());
    EXPECT_EQ(!plan.has_value(), diagnostics.HasErrors()) << findings;
  }

  TextFile file;
  std::optional<Plan> plan;
  std::string findings;  // the plan's path in front of each line cut off
};

}  // namespace railyard
