// SPDX-License-Identifier: GPL-2.0-only
#include "traces/kineto/kineto_pairing.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "traces/pytorch/message_batches.h"

namespace railyard {
namespace {

// The operation in the name of a kernel that runs such a call ("ncclDevKernel_AllReduce_Sum_f32").
std::string_view KernelNameOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kBroadcast:
      return CollectiveKindName(kind);
    case CollectiveKind::kReduce:
      return "_Reduce_";
    default:
      return "SendRecv";
  }
}

// RCCL's kernels do not name their collective.
bool CanRunAny(std::string_view kernel) {
  return kernel.find("Generic") != std::string_view::npos ||
         kernel.find("mscclKernel") != std::string_view::npos;
}

bool CanRun(std::string_view kernel, std::string_view collective) {
  if (CanRunAny(kernel)) return true;
  const std::optional<CollectiveKind> kind = PytorchKind(collective);
  return kind && kernel.find(KernelNameOf(*kind)) != std::string_view::npos;
}

// The kernels that run Sends and Recvs without a record, in the order of their launches.
std::vector<KinetoKernel*> KernelsOfBatches(KinetoFile& profile) {
  std::vector<KinetoKernel*> kernels;
  for (KinetoKernel& kernel : profile.kernels) {
    const bool has_call = kernel.record != 0 || kernel.has_shortened_parts ||
                          profile.launches.contains(kernel.external_id);
    const bool can_run =
        CanRunAny(kernel.name) || kernel.name.find("SendRecv") != std::string::npos;
    if (!has_call && can_run) kernels.push_back(&kernel);
  }
  std::stable_sort(
      kernels.begin(), kernels.end(),
      [](const KinetoKernel* a, const KinetoKernel* b) { return a->correlation < b->correlation; });
  return kernels;
}

// The records of the batches that no kernel states as its launch.
std::vector<std::vector<uint32_t>> UnlinkedBatches(KinetoFile& profile) {
  std::stable_sort(profile.host_events.begin(), profile.host_events.end(),
                   [](const KinetoHostEvent& a, const KinetoHostEvent& b) {
                     return IsBefore(a.start, b.start);
                   });
  MessageBatches finder;
  std::vector<const KinetoHostEvent*> messages;
  for (const KinetoHostEvent& event : profile.host_events) {
    if (event.record == 0) {
      finder.AddMark(event.title);
    } else {
      finder.AddMessage(profile.records[event.record - 1].group_name, event.sequence);
      messages.push_back(&event);
    }
  }
  std::unordered_set<uint64_t> launches;
  for (const KinetoKernel& kernel : profile.kernels) {
    if (kernel.external_id != 0) launches.insert(kernel.external_id);
  }
  const std::vector<uint32_t> numbers = finder.Numbers();
  std::map<uint32_t, std::vector<uint32_t>> batches;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (launches.contains(messages[i]->external_id)) continue;
    batches[numbers[i]].push_back(messages[i]->record);
  }
  std::vector<std::vector<uint32_t>> records;
  for (auto& [number, batch] : batches) records.push_back(std::move(batch));
  return records;
}

using Calls = std::vector<const ExecutionTraceCalls::Call*>;
// The calls of an execution trace by the kernel that runs them.
std::vector<Calls> KernelsOf(const ExecutionTraceCalls::File& trace) {
  std::vector<Calls> kernels;
  std::unordered_map<uint32_t, size_t> kernel_of_batch;
  for (const ExecutionTraceCalls::Call& call : trace.calls) {
    const bool begins =
        call.batch == 0 || kernel_of_batch.try_emplace(call.batch, kernels.size()).second;
    if (begins) kernels.emplace_back();
    (call.batch == 0 ? kernels.back() : kernels[kernel_of_batch[call.batch]]).push_back(&call);
  }
  return kernels;
}

}  // namespace

void JoinKernelsOfCalls(KinetoFile& profile) {
  std::map<std::pair<uint64_t, uint64_t>, size_t> kernel_of_call;  // by external id and stream
  std::vector<KinetoKernel> joined;
  for (KinetoKernel& kernel : profile.kernels) {
    const bool has_call = kernel.start && profile.launches.contains(kernel.external_id);
    if (has_call) {
      const auto [at, is_first] =
          kernel_of_call.try_emplace({kernel.external_id, kernel.device_stream}, joined.size());
      if (!is_first && joined[at->second].correlation != kernel.correlation) {
        KinetoKernel& first = joined[at->second];
        if (const auto end_ps = PicosecondsBetween(*first.start, EndOf(kernel))) {
          first.duration_ps = std::max(first.duration_ps, *end_ps);
          first.duration_is_none = first.duration_is_none || kernel.duration_is_none;
          continue;
        }
      }
    }
    joined.push_back(std::move(kernel));
  }
  profile.kernels = std::move(joined);
}

std::string PairWithBatches(KinetoFile& profile) {
  if (profile.host_events.empty()) return {};
  const std::vector<KinetoKernel*> kernels = KernelsOfBatches(profile);
  std::vector<std::vector<uint32_t>> batches = UnlinkedBatches(profile);
  if (kernels.empty() || batches.empty()) return {};
  if (kernels.size() != batches.size()) {
    return fmt::format("{} batches of Sends and Recvs are not {} kernels", batches.size(),
                       kernels.size());
  }
  for (size_t i = 0; i < kernels.size(); ++i) {
    profile.batches.push_back(std::move(batches[i]));
    kernels[i]->batch = static_cast<uint32_t>(profile.batches.size());
  }
  return {};
}

std::string PairWithExecutionTrace(const ExecutionTraceCalls::File& trace, KinetoFile& profile) {
  const std::vector<Calls> calls = KernelsOf(trace);
  if (calls.size() != profile.kernels.size()) {
    return fmt::format("{} calls are not {} kernels", calls.size(), profile.kernels.size());
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string& collective = calls[i].front()->record.collective;
    if (CanRun(profile.kernels[i].name, collective)) continue;
    return fmt::format("call {} is {}, which {} cannot be", i + 1, collective.substr(0, 40),
                       profile.kernels[i].name.substr(0, 80));
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    KinetoKernel& kernel = profile.kernels[i];
    if (kernel.record != 0 || kernel.batch != 0) continue;
    std::vector<uint32_t> records;
    for (const ExecutionTraceCalls::Call* const call : calls[i]) {
      profile.records.push_back(call->record);
      records.push_back(static_cast<uint32_t>(profile.records.size()));
    }
    if (records.size() == 1) {
      kernel.record = records.front();
    } else {
      profile.batches.push_back(std::move(records));
      kernel.batch = static_cast<uint32_t>(profile.batches.size());
    }
  }
  return {};
}

}  // namespace railyard
