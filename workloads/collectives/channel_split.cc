// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/channel_split.h"

#include <algorithm>

#include "simulator/units/divide_up.h"
#include "workloads/collectives/collective_sizes.h"

namespace railyard {

namespace {

// A channel is given up while there are fewer bytes than this for each: threads x bytes per thread,
// maxThreads and threadThresholds (src/graph/tuning.cc). Algorithms in the switch keep them all.
uint64_t BytesPerChannelMin(const SplitInput& input) {
  if (input.algorithm == Algorithm::kNvls || input.algorithm == Algorithm::kNvlsTree) return 1;
  switch (input.protocol) {
    case Protocol::kLl:
      return uint64_t{512} * 8 * (input.algorithm == Algorithm::kRing ? input.rank_count : 1);
    case Protocol::kLl128:
      return uint64_t{640} * 8;
    default:
      return uint64_t{512} * 64;
  }
}

// ncclFuncTrafficPerByte (src/enqueue.cc); LL's flags and stores count four times.
uint64_t TrafficPerByte(const SplitInput& input) {
  const uint64_t factor = input.protocol == Protocol::kLl ? 4 : 1;
  if (input.kind == CollectiveKind::kAllReduce) return 2 * factor;
  return (CountsOneBlock(input.kind) ? input.rank_count : 1) * factor;
}

}  // namespace

std::vector<ChannelShare> SplitOverChannels(const SplitInput& input) {
  std::vector<ChannelShare> shares(input.channel_count);
  const uint64_t bytes = input.count * input.element_bytes;
  if (bytes == 0 || input.channel_count == 0) return shares;

  const uint64_t tuner_bytes = CountsOneBlock(input.kind) ? bytes * input.rank_count : bytes;
  const uint64_t wanted =
      std::clamp<uint64_t>(tuner_bytes / BytesPerChannelMin(input), 1, input.channel_count);

  // MinTrafficPerChannel was doubled in 2.29.
  const uint64_t traffic_min = input.version >= 22900 ? 32u << 10 : 16u << 10;
  const uint64_t weight = TrafficPerByte(input);
  const uint64_t traffic = std::max(traffic_min, bytes * weight);
  uint64_t traffic_per_channel = traffic / wanted;
  if (input.version >= 22900) traffic_per_channel = DivideUp(traffic_per_channel, 16) * 16;
  traffic_per_channel = std::max(traffic_per_channel, traffic_min);

  const uint64_t cell_bytes = DivideUp(DivideUp(traffic_min, weight), 16) * 16;
  const uint64_t cells = DivideUp(bytes, cell_bytes);
  uint64_t cells_per_channel = std::min(cells, DivideUp(traffic_per_channel, cell_bytes * weight));
  const uint64_t cells_lo = input.channel_count == 1 ? cells : cells_per_channel;
  uint64_t mid_channels = (cells - cells_lo) / cells_per_channel;
  uint64_t cells_hi = (cells - cells_lo) % cells_per_channel;
  if (1 + mid_channels + (cells_hi != 0 ? 1 : 0) > input.channel_count) {
    mid_channels = input.channel_count - 2;
    cells_per_channel = (cells - cells_lo) / (mid_channels + 1);
    cells_hi = cells_per_channel + (cells - cells_lo) % (mid_channels + 1);
  }

  uint64_t begin = 0;
  const auto give = [&](uint64_t channel, uint64_t share_cells) {
    const uint64_t end = std::min(bytes, begin + share_cells * cell_bytes);
    shares[channel] = {begin, end - begin};
    begin = end;
  };
  give(0, cells_lo);
  for (uint64_t channel = 1; channel <= mid_channels; ++channel) give(channel, cells_per_channel);
  if (cells_hi != 0) give(1 + mid_channels, cells_hi);
  return shares;
}

}  // namespace railyard
