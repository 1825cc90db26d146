// SPDX-License-Identifier: GPL-2.0-only
// Counts what links carried, what waited for them and how fast queue pairs might send, over time:
// in bins that follow one another from time zero on, as wide as a budget of bins and rows allows.
// A long time in which nothing happens is one bin. Sums over bins equal the totals of the run.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/result/link_rows.h"

namespace railyard {

// Counts what the network and its queue pairs did within a bin.
struct NetworkBin {
  uint64_t ecn_marked = 0;
  uint64_t cnp = 0;
  uint64_t nacks = 0;
  uint64_t timeouts = 0;
  uint64_t retransmitted_packets = 0;
  // Sums over samples of queue pairs that had something to send.
  uint64_t queue_pairs = 0;
  double rate_sum_bps = 0;
  uint64_t rate_min_bps = UINT64_MAX;
  double window_sum_bytes = 0;
  uint64_t window_min_bytes = UINT64_MAX;

  void Add(const NetworkBin& other);
};

// Holds what happened after `begin_ps`, up to and including `end_ps`.
struct TimeBin {
  int64_t begin_ps = 0;
  int64_t end_ps = 0;
  uint64_t samples = 0;     // how often queues and queue pairs were looked at
  int64_t replayed_ps = 0;  // time that the replay cache knew, in one partition of links or in all
  NetworkBin network{};
  LinkRows links{};
};

class TimeSeries {
 public:
  static constexpr int64_t kFirstBinPs = 1'000'000;
  static constexpr size_t kBinsMax = 256;
  static constexpr size_t kRowsMax = 10'000;

  std::span<const TimeBin> bins() const { return bins_; }
  // How wide bins are now, at most, in which something happens.
  int64_t bin_ps() const { return bin_ps_; }
  // When the last bin is to end.
  int64_t end_ps() const { return bins_.empty() ? 0 : bins_.back().end_ps; }

  // Rows that are allowed: kRowsMax, or four of each link of a fabric.
  void AllowLinks(size_t link_count) { rows_max_ = std::max(kRowsMax, 4 * link_count); }

  // Adds bins until one ends at `time_ps` or later.
  void Extend(int64_t time_ps);
  // Nothing happens from the last bin's end until `time_ps`, later: one bin.
  void Skip(int64_t time_ps);
  // Adds what happened from `from_ps` to `until_ps`, evenly spread over the bins between them; all
  // of it at `until_ps` where that is not later.
  void Add(int64_t from_ps, int64_t until_ps, const LinkRows& links, const NetworkBin& network);
  void AddReplayed(int64_t from_ps, int64_t until_ps);
  // Adds what was seen at an instant: of links the queue alone, of queue pairs their limits.
  void AddSample(int64_t time_ps, const LinkRows& links, const NetworkBin& network);
  // From now on bins are twice as wide; neighbours that are together no wider become one.
  void Double();
  // The run has ended: so has the last bin in which it was.
  void Finish(int64_t time_ps);

 private:
  // The bin of an instant, which is added if it is not there.
  size_t BinOf(int64_t time_ps);
  void AddRows(TimeBin& bin, const LinkRows& links);
  void KeepToBudget();

  int64_t bin_ps_ = kFirstBinPs;
  std::vector<TimeBin> bins_;
  LinkRows sum_;  // of the call at hand
  size_t rows_ = 0;
  size_t rows_max_ = kRowsMax;
};

}  // namespace railyard
