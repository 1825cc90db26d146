// SPDX-License-Identifier: GPL-2.0-only
// A job as AICB and SimAI describe it: what one rank does, on groups that all ranks have alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/trace/import_report.h"
#include "traces/trace/trace.h"

namespace railyard {

// Kinds of groups that a call names.
enum class AicbGroup : uint8_t { kTensor, kData, kExpert, kExpertData, kAll };
inline constexpr int kAicbGroupCount = 5;

// Ranks are numbered as Megatron does: tensor parallel ones next to one another, then data
// parallel, then stages of the pipeline. Experts are spread over neighbours in the data group.
struct AicbParallelism {
  uint32_t ranks = 0;
  uint32_t tensor = 1;
  uint32_t pipeline = 1;
  uint32_t expert = 1;
  uint32_t data() const { return ranks / (tensor * pipeline); }
  // Empty, or why ranks cannot be divided so.
  std::string Problem() const;
  // Ranks of the group of a kind that a rank is in.
  std::vector<uint32_t> MembersOf(AicbGroup group, uint32_t rank) const;
  uint32_t SizeOf(AicbGroup group) const;
};

// What the one rank does, in order. Bytes are the larger buffer of the call.
struct AicbCall {
  CollectiveKind kind = CollectiveKind::kCompute;
  AicbGroup group = AicbGroup::kTensor;
  uint64_t bytes = 0;
  uint32_t root = 0;
  int64_t compute_before_ps = 0;
  bool beside = false;  // computation goes on meanwhile: the call has a stream of its own
  bool begins_iteration = false;
  uint32_t line = 0;
};

// The trace of a job whose ranks all make these calls. Calls are counted in `report` (file 0) as
// imported or dropped, those of all ranks but one as reconstructed. nullopt without any call, or
// after an error.
std::optional<Trace> TraceOfAicb(const std::vector<AicbCall>& calls,
                                 const AicbParallelism& parallelism, ImportReport& report,
                                 Diagnostics& diagnostics);

}  // namespace railyard
