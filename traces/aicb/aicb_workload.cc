// SPDX-License-Identifier: GPL-2.0-only
#include "traces/aicb/aicb_workload.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/units/number.h"
#include "simulator/units/units.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

constexpr size_t kColumns = 12;
constexpr uint64_t kDurationMaxNs = uint64_t{1} << 50;  // 13 days

constexpr std::string_view kPolicies[] = {"MICRO",
                                          "DATA",
                                          "MODEL",
                                          "HYBRID_TRANSFORMER",
                                          "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
                                          "HYBRID_DATA_MODEL",
                                          "HYBRID_MODEL_DATA",
                                          "HYBRID_CUSTOMIZED",
                                          "HYBRID_DLRM",
                                          "HYBRID_DLRM_ENHANCED",
                                          "DISTRIBUTED_INFERENCE"};
// Policies whose computation and calls have the order of CallsOf.
constexpr std::string_view kPoliciesRead[] = {"MICRO", "HYBRID_TRANSFORMER",
                                              "HYBRID_TRANSFORMER_FWD_IN_BCKWD"};

constexpr std::pair<std::string_view, CollectiveKind> kWorkloadKinds[] = {
    {"ALLREDUCE", CollectiveKind::kAllReduce},
    {"ALLGATHER", CollectiveKind::kAllGather},
    {"REDUCESCATTER", CollectiveKind::kReduceScatter},
    {"ALLTOALL", CollectiveKind::kAllToAll},
    {"BROADCAST", CollectiveKind::kBroadcast}};

std::vector<std::string_view> WordsOf(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view kSpace = " \t\r";
  for (size_t begin = line.find_first_not_of(kSpace); begin != std::string_view::npos;
       begin = line.find_first_not_of(kSpace, begin)) {
    const size_t end = std::min(line.find_first_of(kSpace, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

template <typename Number>
bool ParseUpTo(std::string_view text, Number max, Number& number) {
  return ParseNumber(text, number) && number <= max;
}

AicbCall CallOf(const AicbWorkload::Phase& phase, uint32_t line) {
  return {.kind = phase.kind,
          .group = phase.group,
          .bytes = phase.bytes,
          .compute_before_ps = static_cast<int64_t>(phase.compute_ns * kPsPerNs),
          .line = line};
}

}  // namespace

bool IsAicbWorkloadHead(std::string_view line) {
  const std::vector<std::string_view> words = WordsOf(line);
  return !words.empty() &&
         std::find(std::begin(kPolicies), std::end(kPolicies), words[0]) != std::end(kPolicies);
}

bool AicbWorkloadParser::Error(std::string what) {
  diagnostics_.Error({.file = file_, .line = line_}, "", std::move(what));
  return false;
}

bool AicbWorkloadParser::ReadLine(std::string_view line) {
  ++line_;
  const std::vector<std::string_view> words = WordsOf(line);
  if (words.empty()) return true;
  switch (content_lines_++) {
    case 0:
      return ReadHead(words);
    case 1:
      if (words.size() == 1 && ParseUpTo(words[0], uint64_t{1} << 32, workload_.layers_stated)) {
        return true;
      }
      return Error(fmt::format("{} is no number of layers (expected one number)", Quote(line)));
    default:
      return ReadLayer(words);
  }
}

bool AicbWorkloadParser::ReadHead(const std::vector<std::string_view>& words) {
  const auto is_read = std::find(std::begin(kPoliciesRead), std::end(kPoliciesRead), words[0]);
  if (is_read == std::end(kPoliciesRead)) {
    return Error(fmt::format(
        "{} is no parallelism whose order of calls is known (expected {})", Quote(words[0]),
        JoinAlternatives({std::begin(kPoliciesRead), std::end(kPoliciesRead)})));
  }
  workload_.is_micro = words[0] == "MICRO";
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    uint32_t* value = nullptr;
    if (words[i] == "model_parallel_NPU_group:") value = &workload_.tensor;
    if (words[i] == "ep:") value = &workload_.expert;
    if (words[i] == "pp:") value = &workload_.pipeline;
    if (words[i] == "all_gpus:") value = &workload_.ranks;
    if ((words[i] == "pp_comm:" || words[i] == "pp_comm") &&
        !ParseUpTo(words[i + 1], kOperationBytesMax, workload_.stage_bytes)) {
      return Error(fmt::format("{} {} is out of range (expected bytes, 0 to {})", words[i],
                               Quote(words[i + 1]), kOperationBytesMax));
    }
    if ((words[i] == "checkpoints:" || words[i] == "checkpoint_initiates:") &&
        words[i + 1] != "0") {
      return Error(fmt::format("{} {}: recomputed layers are not read (expected 0)", words[i],
                               Quote(words[i + 1])));
    }
    if (value != nullptr && (!ParseUpTo(words[i + 1], kTraceRanksMax, *value) || *value == 0)) {
      return Error(fmt::format("{} {} is out of range (expected 1 to {})", words[i],
                               Quote(words[i + 1]), kTraceRanksMax));
    }
  }
  return true;
}

bool AicbWorkloadParser::ReadPhase(const std::vector<std::string_view>& words, size_t at,
                                   AicbGroup usual, AicbWorkload::Phase& phase) {
  if (!ParseUpTo(words[at], kDurationMaxNs, phase.compute_ns) ||
      !ParseUpTo(words[at + 2], UINT64_MAX, phase.bytes)) {
    return Error(
        fmt::format("{} and {} are not both numbers (expected nanoseconds, a call and "
                    "bytes)",
                    Quote(words[at]), Quote(words[at + 2])));
  }
  std::string_view name = words[at + 1];
  phase.group = usual;
  if (name.ends_with("_DP_EP")) {
    phase.group = AicbGroup::kExpertData;
    name.remove_suffix(6);
  } else if (name.ends_with("_EP")) {
    phase.group = AicbGroup::kExpert;
    name.remove_suffix(3);
  }
  if (name == "NONE") return true;
  for (const auto& [known, kind] : kWorkloadKinds) {
    if (known == name) phase.kind = kind;
  }
  if (phase.kind != CollectiveKind::kCompute) return true;
  return Error(
      fmt::format("{} is no call that is read (expected NONE, ALLREDUCE, ALLGATHER, "
                  "REDUCESCATTER, ALLTOALL or BROADCAST, with _EP or _DP_EP behind)",
                  Quote(words[at + 1])));
}

bool AicbWorkloadParser::ReadLayer(const std::vector<std::string_view>& words) {
  if (words.size() != kColumns) {
    return Error(fmt::format("{} columns (expected {})", words.size(), kColumns));
  }
  AicbWorkload::Layer layer;
  layer.line = static_cast<uint32_t>(line_);
  if (!ReadPhase(words, 2, AicbGroup::kTensor, layer.forward) ||
      !ReadPhase(words, 5, AicbGroup::kTensor, layer.input_gradient) ||
      !ReadPhase(words, 8, AicbGroup::kData, layer.weight_gradient)) {
    return false;
  }
  if (!ParseUpTo(words[11], kDurationMaxNs, layer.update_ns)) {
    return Error(fmt::format("{} is no time (expected nanoseconds)", Quote(words[11])));
  }
  workload_.layers.push_back(layer);
  return true;
}

std::optional<AicbWorkload> AicbWorkloadParser::Finish() {
  if (content_lines_ >= 2) return std::move(workload_);
  ++line_;
  Error("the file ends before its layers (expected a parallelism, a number, and layers)");
  return std::nullopt;
}

std::vector<AicbCall> CallsOf(const AicbWorkload& workload) {
  std::vector<AicbCall> calls;
  const auto add_weights = [&](const AicbWorkload::Layer& layer) {
    AicbCall call = CallOf(layer.weight_gradient, layer.line);
    if (call.kind == CollectiveKind::kCompute) {
      calls.push_back(call);
      return;
    }
    call.beside = !workload.is_micro;
    calls.push_back(call);
    calls.push_back({.compute_before_ps = static_cast<int64_t>(layer.update_ns * kPsPerNs),
                     .beside = call.beside,
                     .line = layer.line});
  };
  if (workload.is_micro) {
    for (const AicbWorkload::Layer& layer : workload.layers) {
      calls.push_back(CallOf(layer.forward, layer.line));
      calls.push_back(CallOf(layer.input_gradient, layer.line));
      add_weights(layer);
    }
    for (AicbCall& call : calls) call.group = AicbGroup::kAll;
    return calls;
  }
  // Without tensor parallel ranks a layer's calls gather what data parallel ranks share (ZeRO-3).
  const bool is_sharded = workload.tensor == 1;
  for (const AicbWorkload::Layer& layer : workload.layers) {
    calls.push_back(CallOf(layer.forward, layer.line));
  }
  for (size_t i = workload.layers.size(); i > 0; --i) {
    const AicbWorkload::Layer& layer = workload.layers[i - 1];
    calls.push_back(CallOf(layer.input_gradient, layer.line));
    add_weights(layer);
  }
  for (AicbCall& call : calls) {
    if (is_sharded && call.group == AicbGroup::kTensor) call.group = AicbGroup::kData;
  }
  return calls;
}

}  // namespace railyard
