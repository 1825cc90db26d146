// SPDX-License-Identifier: GPL-2.0-only
// A small capture in each format, as its tools write it: seeds of the mutation test and of the fuzz
// targets.
#pragma once

#include <string>
#include <vector>

#include "traces/reading/trace_reader.h"

namespace railyard::testing {

struct SampleCapture {
  std::string file;    // its name, from which some readers take the rank
  std::string format;  // the reader's name
  std::string bytes;
  ImportOptions options = {};  // with which it can be imported
};

std::vector<SampleCapture> SampleCaptures();

}  // namespace railyard::testing
