// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/series_recorder.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "simulator/transport/nic/queue_transport.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

// A look at one link costs a fraction of an event; so many events pay for one look. In addition
// every run may look at each link so often.
constexpr uint64_t kEventsPerLook = 64;
constexpr uint64_t kFreeBins = 16;
// If there are more queue pairs, every k-th is looked at.
constexpr uint32_t kQueuePairsMax = 1024;

}  // namespace

SeriesRecorder::SeriesRecorder(FabricSimulatorImpl& engine, const FabricNetwork& network,
                               ReplayEngine& replay, size_t link_count)
    : engine_(engine), network_(network), replay_(replay), links_(link_count) {
  series_.AllowLinks(link_count);
}

void SeriesRecorder::Start() {
  is_running_ = true;
  replay_.SetCounting(
      [this](int64_t from_ps, int64_t until_ps, const std::function<void()>& count) {
        CountSpan(from_ps, until_ps, count);
      });
  series_.Extend(1);
  engine_.SetSample(series_.end_ps(),
                    [this](int64_t next_event_ps) { return OnBinEnd(next_event_ps); });
}

void SeriesRecorder::Stop() {
  is_running_ = false;
  engine_.SetSample(0, {});
}

int64_t SeriesRecorder::OnBinEnd(int64_t next_event_ps) {
  const int64_t end_ps = series_.end_ps();
  if (next_event_ps <= end_ps) return end_ps;
  // Nothing happens from the event before until the next.
  AddChanges(seen_until_ps_, end_ps);
  AddQueues(end_ps);
  KeepToShare();
  if (next_event_ps - series_.end_ps() > series_.bin_ps()) {
    series_.Skip(next_event_ps - 1);
    seen_until_ps_ = next_event_ps - 1;
  }
  series_.Extend(next_event_ps);
  return series_.end_ps();
}

void SeriesRecorder::KeepToShare() {
  const uint64_t work = engine_.EventCount() + replay_.ledger().calls_started();
  if (looks_ <= kFreeBins * links_.size() + work / kEventsPerLook) return;
  // Twice as wide, half as many: what has been looked at pays for as many looks again.
  series_.Double();
  looks_ /= 2;
}

void SeriesRecorder::AddChanges(int64_t from_ps, int64_t until_ps) {
  // Pauses may have lasted through a silence.
  const int64_t paused_from_ps = from_ps == seen_until_ps_ ? changes_until_ps_ : from_ps;
  const bool has_silence = paused_from_ps < from_ps;
  rows_.Clear();
  pauses_.Clear();
  for (LinkId id{0}; id < links_.size(); ++id) {
    const LinkCounters now = network_.CountersOfLink(id);
    LinkSeen& seen = links_[id];
    const LinkSeen next = {
        .wire_bytes = now.payload_bytes + now.header_bytes + now.retransmitted_bytes,
        .payload_bytes = now.payload_bytes,
        .packets = now.packets,
        .dropped_packets = now.dropped_packets,
        .paused_ps = now.paused_ps};
    LinkBin row = {.link = id,
                   .wire_bytes = next.wire_bytes - seen.wire_bytes,
                   .payload_bytes = next.payload_bytes - seen.payload_bytes,
                   .packets = next.packets - seen.packets,
                   .dropped_packets = next.dropped_packets - seen.dropped_packets,
                   .paused_ps = next.paused_ps - seen.paused_ps};
    seen = next;
    if (has_silence && row.paused_ps > 0) {
      LinkBin pause;
      pause.link = id;
      pause.paused_ps = std::exchange(row.paused_ps, 0);
      pauses_.Append(pause);
    }
    rows_.Append(row);
  }
  const NetworkSeen now = {.ecn_marked = network_.counters().ecn_marked,
                           .stack = replay_.executor().network_stack().counters()};
  const StackCounters& stack = network_seen_.stack;
  const NetworkBin network = {
      .ecn_marked = now.ecn_marked - network_seen_.ecn_marked,
      .cnp = now.stack.cnp - stack.cnp,
      .nacks = now.stack.nacks - stack.nacks,
      .timeouts = now.stack.timeouts - stack.timeouts,
      .retransmitted_packets = now.stack.retransmitted_packets - stack.retransmitted_packets};
  network_seen_ = now;
  looks_ += links_.size();
  series_.Add(from_ps, until_ps, rows_, network);
  if (has_silence) series_.Add(paused_from_ps, until_ps, pauses_, {});
  seen_until_ps_ = std::max(seen_until_ps_, until_ps);
  changes_until_ps_ = seen_until_ps_;
}

void SeriesRecorder::AddQueues(int64_t time_ps) {
  rows_.Clear();
  for (LinkId id{0}; id < links_.size(); ++id) {
    const int64_t backlog_ps = network_.BusyUntilPs(id) - time_ps;
    if (backlog_ps <= 0) continue;
    const auto bits = static_cast<unsigned __int128>(backlog_ps) * network_.RateBps(id);
    const auto bytes = static_cast<uint64_t>(bits / kPsPerSecond / 8);
    rows_.Append({.link = id, .queue_sum_bytes = bytes, .queue_max_bytes = bytes});
  }
  NetworkBin network;
  AddLimits(network);
  looks_ += links_.size();
  series_.AddSample(time_ps, rows_, network);
}

void SeriesRecorder::AddLimits(NetworkBin& network) {
  const QueueTransport* const queue_pairs = replay_.executor().network_stack().queue_pairs();
  if (queue_pairs == nullptr) return;
  const uint32_t count = queue_pairs->queue_pair_count();
  const uint32_t step = 1 + count / kQueuePairsMax;
  for (uint32_t id = 0; id < count; id += step) {
    const std::optional<SendLimits> limits = queue_pairs->LimitsNow(FlowId{id});
    if (!limits) continue;
    ++network.queue_pairs;
    network.rate_sum_bps += static_cast<double>(limits->rate_bps);
    network.rate_min_bps = std::min(network.rate_min_bps, limits->rate_bps);
    network.window_sum_bytes += static_cast<double>(limits->window_bytes);
    network.window_min_bytes = std::min(network.window_min_bytes, limits->window_bytes);
  }
  looks_ += count / step;
}

void SeriesRecorder::CountSpan(int64_t from_ps, int64_t until_ps,
                               const std::function<void()>& count) {
  if (!is_running_) {
    count();
    return;
  }
  // Within the bin at hand it makes no difference when it was.
  if (from_ps >= seen_until_ps_ && until_ps <= series_.end_ps()) {
    series_.AddReplayed(from_ps, until_ps);
    count();
    return;
  }
  AddChanges(seen_until_ps_, std::max(seen_until_ps_, engine_.NowPs()));
  series_.AddReplayed(from_ps, until_ps);
  count();
  AddChanges(from_ps, until_ps);
  KeepToShare();
}

TimeSeries SeriesRecorder::Finish(int64_t end_ps) {
  if (is_running_) AddChanges(seen_until_ps_, std::max(end_ps, seen_until_ps_));
  Stop();
  series_.Finish(end_ps);
  return std::move(series_);
}

}  // namespace railyard
