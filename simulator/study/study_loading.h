// SPDX-License-Identifier: GPL-2.0-only
// Provides the parts of LoadStudy(): the axes with their values, and the points that they make.
#pragma once

#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/study/study.h"
#include "simulator/text_proto/text_proto.h"

namespace railyard {

// Returns a number as fields of a scenario take it: 12 significant digits, without an exponent.
std::string NumberText(double number);

// Appends the study's axes, those of several scenarios and of named points first. Expressions are
// parsed; MakePoints() evaluates them.
void LoadAxes(const ProtoCursor& cursor, Study& study, Diagnostics& diagnostics);

// Fills in Study::points: every combination of the axes' values that meets the conditions, the last
// axis fastest, and then the named points. Precondition: the axes were loaded without errors.
void MakePoints(const ProtoCursor& cursor, Study& study, Diagnostics& diagnostics);

}  // namespace railyard
