// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/transfer_sampler.h"

#include <algorithm>
#include <tuple>

#include "simulator/execution/connections/connection_table.h"
#include "simulator/units/mix64.h"

namespace railyard {
namespace {

uint64_t PlaceOf(ConnectionId connection, uint32_t slot) {
  return uint64_t{connection} << 32 | slot;
}

// Returns the number that the sampler counts a place under, of so many.
size_t ShelfOf(uint64_t place, size_t shelves) { return Mix64(place) % shelves; }

}  // namespace

TransferSampler::TransferSampler(ReplayEngine& replay, size_t sample_size)
    : replay_(replay), sample_size_(sample_size) {}

void TransferSampler::Start() {
  is_running_ = true;
  sample_.reserve(sample_size_);  // of addresses: a vector that grows would touch twice as much
  replay_.executor().proxies().Watch(
      [this](MessageEvent event, ConnectionId connection, uint32_t slot) {
        // A message that is simulated ahead gets its times only later.
        if (is_running_ && !replay_.streams().is_ahead()) OnMessage(event, connection, slot);
      });
}

void TransferSampler::OnMessage(MessageEvent event, ConnectionId connection, uint32_t slot) {
  if (event == MessageEvent::kQueued) {
    Queue(connection, slot);
    return;
  }
  const uint64_t place = PlaceOf(connection, slot);
  uint32_t& drawn_alike = drawn_[ShelfOf(place, drawn_.size())];
  if (drawn_alike == 0) return;
  const auto drawn = in_flight_.find(place);
  if (drawn == in_flight_.end()) return;
  TransferResult& transfer = drawn->second.transfer;
  if (event == MessageEvent::kPosted) {
    const ConnectionTable& table = replay_.executor().connection_table();
    transfer.posted_ps = replay_.now_ps();
    transfer.bytes = table.staged(table.connection(connection)).bytes[slot];
    return;
  }
  transfer.acknowledged_ps = replay_.now_ps();
  Keep(drawn->second);
  in_flight_.erase(drawn);
  --drawn_alike;
}

void TransferSampler::Queue(ConnectionId id, uint32_t slot) {
  ++seen_;
  const uint64_t place = PlaceOf(id, slot);
  const int64_t now_ps = replay_.now_ps();
  const uint64_t key = Mix64(Mix64(place) ^ static_cast<uint64_t>(now_ps));
  if (sample_.size() >= sample_size_ && key >= sample_.front().key) return;
  const Connection& connection = replay_.executor().connection_table().connection(id);
  const auto [drawn, is_new] =
      in_flight_.insert_or_assign(place, Sampled{.key = key,
                                                 .transfer = {.collective = connection.collective,
                                                              .source_gpu = connection.from_gpu,
                                                              .destination_gpu = connection.to_gpu,
                                                              .ready_ps = now_ps}});
  // A message that is ended with its job is never acknowledged: its place is used again.
  if (is_new) ++drawn_[ShelfOf(place, drawn_.size())];
}

void TransferSampler::Keep(const Sampled& sampled) {
  if (sample_.size() >= sample_size_) {
    if (sampled.key >= sample_.front().key) return;
    std::pop_heap(sample_.begin(), sample_.end());
    sample_.pop_back();
  }
  sample_.push_back(sampled);
  std::push_heap(sample_.begin(), sample_.end());
}

void TransferSampler::AddTo(RunResult& result) const {
  result.transfers_seen = seen_;
  result.transfers.clear();
  result.transfers.reserve(sample_.size());
  for (const Sampled& sampled : sample_) result.transfers.push_back(sampled.transfer);
  std::ranges::sort(result.transfers, {}, [](const TransferResult& transfer) {
    return std::tuple(transfer.ready_ps, transfer.collective, transfer.source_gpu,
                      transfer.destination_gpu, transfer.posted_ps, transfer.acknowledged_ps);
  });
}

}  // namespace railyard
