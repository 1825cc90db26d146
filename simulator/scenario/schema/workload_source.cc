// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/schema/workload_source.h"

#include "simulator/scenario/schema/scenario.pb.h"

namespace railyard {

const char* WorkloadSourceOf(const ProtoCursor& workload) {
  switch (workload.As<protos::Workload>().source_case()) {
    case protos::Workload::kNcclLog:
      return "nccl_log";
    case protos::Workload::kTrace:
      return "trace";
    case protos::Workload::kProgram:
      return "program";
    case protos::Workload::kPlan:
      return "plan";
    case protos::Workload::kInlinePlan:
      return "inline_plan";
    case protos::Workload::SOURCE_NOT_SET:
      break;
  }
  return nullptr;
}

ProtoCursor WorkloadOfPart(const ProtoCursor& scenario, PartIndex part) {
  if (scenario.Has("workload")) return scenario.Child("workload");
  return scenario.Child("jobs", static_cast<int>(part)).Child("workload");
}

}  // namespace railyard
