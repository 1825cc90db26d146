// SPDX-License-Identifier: GPL-2.0-only
// Records over time how much links carried, how much was queued for them and how fast queue pairs
// could send. Consecutive bins begin at time zero and are as narrow as a budget of bins and rows
// allows. A long time in which nothing happens is one bin. Sums over bins equal the totals of the
// run.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/result/link_rows.h"

namespace railyard {

// Holds the counters of the network and its queue pairs within a bin.
struct NetworkBin {
  uint64_t ecn_marked = 0;
  uint64_t cnp = 0;
  uint64_t nacks = 0;
  uint64_t timeouts = 0;
  uint64_t retransmitted_packets = 0;
  // These are sums over samples of queue pairs that had data to send.
  uint64_t queue_pairs = 0;
  double rate_sum_bps = 0;
  uint64_t rate_min_bps = UINT64_MAX;
  double window_sum_bytes = 0;
  uint64_t window_min_bytes = UINT64_MAX;

  void Add(const NetworkBin& other);
};

// Covers the time after `begin_ps`, up to and including `end_ps`.
struct TimeBin {
  int64_t begin_ps = 0;
  int64_t end_ps = 0;
  uint64_t samples = 0;     // how often queues and queue pairs were sampled
  int64_t replayed_ps = 0;  // time that was replayed, in some or all partitions of links
  NetworkBin network{};
  LinkRows links{};
};

class TimeSeries {
 public:
  static constexpr int64_t kFirstBinPs = 1'000'000;
  static constexpr size_t kBinsMax = 256;
  static constexpr size_t kRowsMax = 10'000;

  std::span<const TimeBin> bins() const { return bins_; }
  // Returns the largest width, at present, of a bin in which something happens.
  int64_t bin_ps() const { return bin_ps_; }
  // Returns the time at which the last bin ends.
  int64_t end_ps() const { return bins_.empty() ? 0 : bins_.back().end_ps; }

  // Sets the budget of rows: kRowsMax, or four per link of the fabric if that is more.
  void AllowLinks(size_t link_count) { rows_max_ = std::max(kRowsMax, 4 * link_count); }

  // Adds bins until one ends at `time_ps` or later.
  void Extend(int64_t time_ps);
  // Adds one bin from the last bin's end until `time_ps`, in which nothing happens; none if
  // `time_ps` is not later.
  void Skip(int64_t time_ps);
  // Spreads the figures evenly over the bins between `from_ps` and `until_ps`; adds all to the bin
  // of `until_ps` if that is not later.
  void Add(int64_t from_ps, int64_t until_ps, const LinkRows& links, const NetworkBin& network);
  void AddReplayed(int64_t from_ps, int64_t until_ps);
  // Adds a sample at an instant: the queues of links and the limits of queue pairs.
  void AddSample(int64_t time_ps, const LinkRows& links, const NetworkBin& network);
  // Doubles the width of bins; merges neighbours that are together no wider.
  void Double();
  // Ends the last bin at the end of the run.
  void Finish(int64_t time_ps);

 private:
  // Returns the bin of an instant, and adds it if it does not exist.
  size_t BinOf(int64_t time_ps);
  void AddRows(TimeBin& bin, const LinkRows& links);
  void KeepToBudget();

  int64_t bin_ps_ = kFirstBinPs;
  std::vector<TimeBin> bins_;
  LinkRows sum_;  // of the current call
  size_t rows_ = 0;
  size_t rows_max_ = kRowsMax;
};

}  // namespace railyard
