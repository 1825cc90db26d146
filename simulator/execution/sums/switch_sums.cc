// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/sums/switch_sums.h"

#include <vector>

namespace railyard {

void SwitchSums::Request(std::span<const ConnectionId> operands,
                         std::span<const ConnectionId> results, const MessageSize& size) {
  Connection& first = table_.connection(operands.front());
  if (first.flow == FlowId::kNone) {
    std::vector<GpuIndex> members;
    for (const ConnectionId operand : operands) {
      members.push_back(table_.connection(operand).from_gpu);
    }
    first.flow = groups_.OpenReduce({&sums_, operands.front()}, first.to_gpu, members);
  }
  const FlowId sums = first.flow;
  if (results.empty()) {
    groups_.PostReduce(sums, size.bytes);
    return;
  }
  OpenResults(results);
  groups_.PostReduceTo(table_.connection(results.front()).flow, sums, size.bytes);
}

void SwitchSums::OpenResults(std::span<const ConnectionId> results) {
  const Connection& first = table_.connection(results.front());
  if (first.flow != FlowId::kNone) return;
  std::vector<NvlinkGroups::Member> members;
  for (const ConnectionId result : results) {
    members.push_back({.gpu = table_.connection(result).to_gpu, .sink = {&stores_, result}});
  }
  const FlowId group = groups_.OpenMulticast(first.from_gpu, members);
  for (const ConnectionId result : results) table_.connection(result).flow = group;
}

void SwitchSums::Send(std::span<const ConnectionId> results, const MessageSize& size) {
  groups_.PostMulticast(table_.connection(results.front()).flow, size.bytes);
}

}  // namespace railyard
