// SPDX-License-Identifier: GPL-2.0-only
// Holds one collective as all of PyTorch's tools record it (record_param_comms, ParamCommsDebugInfo
// in its torch/csrc/distributed/c10d/ParamCommsUtils.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/reading/captured_job.h"
#include "traces/trace/import_report.h"
#include "traces/trace/trace.h"

namespace railyard {

struct CommsRecord {
  std::string collective;  // "allreduce", "_reduce_scatter_base", "nccl:all_to_all"
  std::string dtype;       // "BFloat16", "long int"
  std::optional<uint64_t> in_elements;
  std::optional<uint64_t> out_elements;
  std::string wrong_elements = {};  // a number of elements that is none of 64 bits, as it is stated
  std::string group_name;
  uint32_t group_size = 0;                    // 0 if not stated
  std::vector<uint32_t> group_ranks = {};     // global; empty if not stated
  std::vector<uint64_t> in_split = {};        // elements to each rank; empty for equal parts
  std::vector<uint64_t> out_split = {};       // elements from each rank
  bool has_all_parts = true;                  // false if the record lists only some of them
  std::optional<uint32_t> root_or_peer = {};  // rank of the group
  // The peer of a Send or Recv as a global rank; it counts where `root_or_peer` is not stated.
  std::optional<uint32_t> global_peer = {};
};

// Returns the kind of a collective by PyTorch's name for it, in any of its spellings; a barrier is
// an AllReduce. Returns nullopt for names that are not collectives ("wait", "init", "coalesced").
std::optional<CollectiveKind> PytorchKind(std::string_view name);
bool IsBarrier(std::string_view name);
// Returns true for records that move no data: the end of an asynchronous call, the creation of a
// group.
bool IsPseudoCollective(std::string_view name);
// Returns the datatype by PyTorch's or C++'s name; nullopt for types that NCCL does not have.
std::optional<Datatype> PytorchDatatype(std::string_view name);

// Returns the numbers of a list as text, "[0, 1, 2]"; nullopt if it is not a list or is truncated
// ("[0, 1, ..., 7]").
std::optional<std::vector<uint64_t>> ParseNumberList(std::string_view text);
std::optional<std::vector<uint32_t>> ParseRankList(std::string_view text);

struct CommsDefect {
  CallDropReason reason = CallDropReason::kMalformedRecord;
  std::string detail;
};
// Fills in the call's operation, except its place and its stream, its parts and its stated bytes
// (those of the rank's input). If the call cannot be imported, returns why.
std::optional<CommsDefect> CallOfRecord(const CommsRecord& record, CapturedJob& job,
                                        CapturedCall& call);

}  // namespace railyard
