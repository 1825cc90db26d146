// SPDX-License-Identifier: GPL-2.0-only
#include "traces/import/trace_readers.h"

#include "traces/aicb/aicb_reader.h"
#include "traces/chakra/chakra_reader.h"
#include "traces/flight_recorder/flight_recorder_reader.h"
#include "traces/goal/goal_reader.h"
#include "traces/inspector/inspector_reader.h"
#include "traces/kineto/kineto_reader.h"
#include "traces/nccl_log/nccl_log_reader.h"
#include "traces/nccl_profiler/nccl_profiler_reader.h"
#include "traces/nccl_tests/nccl_tests_reader.h"
#include "traces/nsys/nsys_reader.h"
#include "traces/pytorch_et/pytorch_et_reader.h"

namespace railyard {

std::span<const TraceReader> TraceReaders() {
  // The first that recognizes a file reads it: Chakra's, whose protobuf has no mark, come behind
  // those that have one.
  static const std::vector<TraceReader> kReaders = {
      kNcclLogReader,   kKinetoReader,       kPytorchEtReader, kFlightRecorderReader,
      kInspectorReader, kNcclProfilerReader, kChakraReader,    kGoalReader,
      kAicbReader,      kNsysReader,         kNcclTestsReader,
  };
  return kReaders;
}

const TraceReader* FindTraceReader(std::string_view format) {
  for (const TraceReader& reader : TraceReaders()) {
    if (reader.format == format) return &reader;
  }
  return nullptr;
}

std::vector<std::string> TraceFormatNames() {
  std::vector<std::string> names;
  for (const TraceReader& reader : TraceReaders()) names.emplace_back(reader.format);
  return names;
}

}  // namespace railyard
