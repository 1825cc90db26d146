// SPDX-License-Identifier: GPL-2.0-only
// Reads Chakra execution traces (MLCommons; ASTRA-sim's workloads): one file per rank,
// NAME.RANK.et, as protobuf or JSON, and ASTRA-sim's file of communicator groups.
#pragma once

#include "traces/reading/trace_reader.h"

namespace railyard {

extern const TraceReader kChakraReader;

}  // namespace railyard
