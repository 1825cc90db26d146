// SPDX-License-Identifier: GPL-2.0-only
// Represents a job as AICB and SimAI describe it: the calls of one rank, on groups that all ranks
// have alike.
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

// Lists the kinds of groups that a call names.
enum class AicbGroup : uint8_t { kTensor, kData, kExpert, kExpertData, kAll };
inline constexpr int kAicbGroupCount = 5;

// Describes the parallel groups. Ranks are numbered as in Megatron: tensor parallel ranks are
// adjacent, then data parallel ranks, then pipeline stages. Experts are distributed over neighbours
// in the data parallel group.
struct AicbParallelism {
  uint32_t ranks = 0;
  uint32_t tensor = 1;
  uint32_t pipeline = 1;
  uint32_t expert = 1;
  uint32_t data() const { return ranks / (tensor * pipeline); }
  // Returns why ranks cannot be divided in this way; empty if they can.
  std::string Problem() const;
  // Returns the ranks of the group of a kind to which a rank belongs.
  std::vector<GlobalRank> MembersOf(AicbGroup group, GlobalRank rank) const;
  uint32_t SizeOf(AicbGroup group) const;
};

// Describes a call of the rank. Bytes are those of the larger buffer of the call.
struct AicbCall {
  CollectiveKind kind = CollectiveKind::kCompute;
  AicbGroup group = AicbGroup::kTensor;
  uint64_t bytes = 0;
  uint32_t root = 0;
  int64_t compute_before_ps = 0;
  int64_t measured_ps = 0;  // 0 if not stated
  bool beside = false;      // the call runs concurrently with computation, on a separate stream
  bool begins_iteration = false;
  uint32_t line = 0;
};

// Returns the trace of a job whose ranks all make these calls. `report` (file 0) counts the calls
// as imported or dropped, and those of all other ranks as reconstructed. Returns nullopt without
// any call, or after an error.
std::optional<Trace> TraceOfAicb(const std::vector<AicbCall>& calls,
                                 const AicbParallelism& parallelism, ImportReport& report,
                                 Diagnostics& diagnostics);

}  // namespace railyard
