// SPDX-License-Identifier: GPL-2.0-only
// Samples the messages that a run's proxies send over the network: the times at which a message
// could be posted, was posted and was acknowledged. A message is in the sample if the hash of its
// connection, its slot and the time at which it could be posted is among the smallest, so that all
// have the same chance, and equal runs have equal samples.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/result/run_result.h"
#include "simulator/execution/proxies/network_proxies.h"
#include "simulator/replay/engine/replay_engine.h"

namespace railyard {

class TransferSampler {
 public:
  static constexpr size_t kSampleSize = 10'000;

  // `replay` must outlive this.
  explicit TransferSampler(ReplayEngine& replay, size_t sample_size = kSampleSize);
  TransferSampler(const TransferSampler&) = delete;
  TransferSampler& operator=(const TransferSampler&) = delete;

  // Must be called before the replay starts.
  void Start();
  // Ends the sampling. A forked child calls it, because its sample is not used.
  void Stop() { is_running_ = false; }
  // Writes the sample so far into `result`, in the order in which its messages could be posted.
  void AddTo(RunResult& result) const;

 private:
  struct Sampled {
    uint64_t key = 0;
    TransferResult transfer;
    bool operator<(const Sampled& other) const { return key < other.key; }
  };

  void OnMessage(MessageEvent event, ConnectionId connection, uint32_t slot);
  void Queue(ConnectionId connection, uint32_t slot);
  void Keep(const Sampled& sampled);

  ReplayEngine& replay_;
  const size_t sample_size_;
  bool is_running_ = false;
  uint64_t seen_ = 0;                                // messages
  std::unordered_map<uint64_t, Sampled> in_flight_;  // drawn ones, by connection and slot
  // Counts in_flight_ by a hash of their places. With a thousand GPUs, a look-up in the map for
  // each event of a message would be a cache miss, although few messages are drawn.
  std::array<uint32_t, 1024> drawn_{};
  std::vector<Sampled> sample_;  // a heap, the largest key first
};

}  // namespace railyard
