// SPDX-License-Identifier: GPL-2.0-only
#include "traces/kineto/kineto_pairing.h"

#include <optional>
#include <string_view>

#include <fmt/format.h>

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

bool CanRun(std::string_view kernel, std::string_view collective) {
  // RCCL's kernels do not name their collective.
  for (const std::string_view any : {"Generic", "mscclKernel"}) {
    if (kernel.find(any) != std::string_view::npos) return true;
  }
  const std::optional<CollectiveKind> kind = PytorchKind(collective);
  return kind && kernel.find(KernelNameOf(*kind)) != std::string_view::npos;
}

}  // namespace

std::string PairWithExecutionTrace(const ExecutionTraceCalls::File& trace, KinetoFile& profile) {
  if (trace.calls.size() != profile.kernels.size()) {
    return fmt::format("{} calls are not {} kernels", trace.calls.size(), profile.kernels.size());
  }
  for (size_t i = 0; i < trace.calls.size(); ++i) {
    const std::string& collective = trace.calls[i].record.collective;
    if (CanRun(profile.kernels[i].name, collective)) continue;
    return fmt::format("call {} is {}, which {} cannot be", i + 1, collective.substr(0, 40),
                       profile.kernels[i].name.substr(0, 80));
  }
  for (size_t i = 0; i < trace.calls.size(); ++i) {
    if (profile.kernels[i].record != 0) continue;
    profile.records.push_back(trace.calls[i].record);
    profile.kernels[i].record = static_cast<uint32_t>(profile.records.size());
  }
  return {};
}

}  // namespace railyard
