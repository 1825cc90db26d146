// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/result/time_series.h"

#include <algorithm>
#include <utility>

namespace railyard {
namespace {

// The part of `value` that belongs to the first `numerator` of `denominator` equal parts; parts of
// neighbours add up to the value.
template <typename Value>
Value UpTo(Value value, int64_t numerator, int64_t denominator) {
  return static_cast<Value>(static_cast<__int128>(value) * numerator / denominator);
}

template <typename Value>
Value Part(Value value, int64_t from, int64_t until, int64_t whole) {
  return static_cast<Value>(UpTo(value, until, whole) - UpTo(value, from, whole));
}

}  // namespace

void NetworkBin::Add(const NetworkBin& other) {
  ecn_marked += other.ecn_marked;
  cnp += other.cnp;
  nacks += other.nacks;
  timeouts += other.timeouts;
  retransmitted_packets += other.retransmitted_packets;
  queue_pairs += other.queue_pairs;
  rate_sum_bps += other.rate_sum_bps;
  rate_min_bps = std::min(rate_min_bps, other.rate_min_bps);
  window_sum_bytes += other.window_sum_bytes;
  window_min_bytes = std::min(window_min_bytes, other.window_min_bytes);
}

// --- Bins ----------------------------------------------------------------------------------------

void TimeSeries::Extend(int64_t time_ps) {
  while (bins_.empty() || end_ps() < time_ps) {
    const int64_t begin_ps = end_ps();
    const int64_t left_ps = INT64_MAX - begin_ps;
    bins_.push_back({.begin_ps = begin_ps, .end_ps = begin_ps + std::min(bin_ps_, left_ps)});
    KeepToBudget();
  }
}

void TimeSeries::Skip(int64_t time_ps) {
  if (time_ps <= end_ps()) return;
  bins_.push_back({.begin_ps = end_ps(), .end_ps = time_ps});
  KeepToBudget();
}

size_t TimeSeries::BinOf(int64_t time_ps) {
  Extend(time_ps);
  const auto bin = std::ranges::lower_bound(bins_, time_ps, {}, &TimeBin::end_ps);
  return static_cast<size_t>(bin - bins_.begin());
}

void TimeSeries::Double() {
  bin_ps_ = bin_ps_ > INT64_MAX / 2 ? INT64_MAX : 2 * bin_ps_;
  if (bins_.empty()) return;
  // The last has not ended yet.
  TimeBin& last = bins_.back();
  if (last.end_ps - last.begin_ps < bin_ps_) {
    last.end_ps = last.begin_ps + std::min(bin_ps_, INT64_MAX - last.begin_ps);
  }
  std::vector<TimeBin> merged;
  for (TimeBin& bin : bins_) {
    const bool joins =
        !merged.empty() && (bin.end_ps - merged.back().begin_ps <= bin_ps_ || bin_ps_ == INT64_MAX);
    if (!joins) {
      merged.push_back(std::move(bin));
      continue;
    }
    TimeBin& to = merged.back();
    to.end_ps = bin.end_ps;
    to.samples += bin.samples;
    to.replayed_ps += bin.replayed_ps;
    to.network.Add(bin.network);
    rows_ -= bin.links.size();
    AddRows(to, bin.links);
  }
  bins_ = std::move(merged);
}

void TimeSeries::KeepToBudget() {
  while ((rows_ > rows_max_ || bins_.size() > kBinsMax) && bins_.size() > 1) Double();
}

void TimeSeries::Finish(int64_t time_ps) {
  sum_ = LinkRows();
  while (!bins_.empty() && bins_.back().begin_ps >= std::max<int64_t>(time_ps, 1) &&
         bins_.back().links.empty()) {
    bins_.pop_back();
  }
  if (!bins_.empty() && time_ps > bins_.back().begin_ps) {
    TimeBin& last = bins_.back();
    last.end_ps = std::min(last.end_ps, time_ps);
    last.replayed_ps = std::min(last.replayed_ps, last.end_ps - last.begin_ps);
  }
}

// --- What is in them -----------------------------------------------------------------------------

void TimeSeries::AddRows(TimeBin& bin, const LinkRows& links) {
  if (links.empty()) return;
  AddUp(bin.links, links, sum_);
  rows_ += sum_.size() - bin.links.size();
  bin.links = LinkRows(sum_);  // a copy has no spare room
}

void TimeSeries::Add(int64_t from_ps, int64_t until_ps, const LinkRows& links,
                     const NetworkBin& network) {
  const size_t last = BinOf(until_ps);
  bins_[last].network.Add(network);
  const int64_t whole_ps = until_ps - from_ps;
  const size_t first = whole_ps > 0 ? std::min(last, BinOf(from_ps + 1)) : last;
  if (first == last) {
    AddRows(bins_[last], links);
    KeepToBudget();
    return;
  }
  LinkRows parts;
  for (size_t bin = first; bin <= last; ++bin) {
    const int64_t from = std::max(from_ps, bins_[bin].begin_ps) - from_ps;
    const int64_t until = std::min(until_ps, bins_[bin].end_ps) - from_ps;
    parts.Clear();
    for (const LinkBin& all : links) {
      parts.Append({.link = all.link,
                    .wire_bytes = Part(all.wire_bytes, from, until, whole_ps),
                    .payload_bytes = Part(all.payload_bytes, from, until, whole_ps),
                    .packets = Part(all.packets, from, until, whole_ps),
                    .dropped_packets = Part(all.dropped_packets, from, until, whole_ps),
                    .paused_ps = Part(all.paused_ps, from, until, whole_ps)});
    }
    AddRows(bins_[bin], parts);
  }
  KeepToBudget();
}

void TimeSeries::AddReplayed(int64_t from_ps, int64_t until_ps) {
  if (until_ps <= from_ps) return;
  const size_t last = BinOf(until_ps);
  for (size_t bin = BinOf(from_ps + 1); bin <= last; ++bin) {
    TimeBin& of = bins_[bin];
    const int64_t time_ps = std::min(until_ps, of.end_ps) - std::max(from_ps, of.begin_ps);
    of.replayed_ps = std::min(of.end_ps - of.begin_ps, of.replayed_ps + time_ps);
  }
}

void TimeSeries::AddSample(int64_t time_ps, const LinkRows& links, const NetworkBin& network) {
  TimeBin& bin = bins_[BinOf(time_ps)];
  ++bin.samples;
  bin.network.Add(network);
  AddRows(bin, links);
  KeepToBudget();
}

}  // namespace railyard
