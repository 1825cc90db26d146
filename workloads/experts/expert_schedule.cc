// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/experts/expert_schedule.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"

namespace railyard {
namespace {

// Returns a channel's part of tokens that are divided evenly.
uint64_t PartOf(uint64_t tokens, uint32_t channel, uint32_t channels) {
  return tokens * (channel + 1) / channels - tokens * channel / channels;
}

// Tokens divided into messages of at most `chunk` tokens.
struct Messages {
  uint64_t tokens = 0;
  uint64_t chunk = 1;

  uint64_t count() const { return DivideUp(tokens, chunk); }
  uint64_t TokensOf(uint64_t index) const { return std::min(chunk, tokens - index * chunk); }
};

Step Sends(RankIndex peer, uint64_t bytes) {
  return {.send_to = static_cast<int32_t>(peer), .bytes = bytes, .load_local = true};
}
Step Receives(RankIndex peer, uint64_t bytes) {
  return {.recv_from = static_cast<int32_t>(peer), .bytes = bytes, .store = true};
}
Step Copies(uint64_t bytes) { return {.bytes = bytes, .load_local = true, .store = true}; }

}  // namespace

// Tokens between this rank and one peer.
struct ExpertSchedule::Hop {
  RankIndex peer{0};
  bool is_send = false;
  bool network = false;
  uint32_t server = 0;  // of the tokens' rank
  uint64_t tokens = 0;
  WarpShare warps;
};

ExpertSchedule::ExpertSchedule(const CommunicatorLayout& layout, RankIndex rank,
                               std::span<const P2pCall> calls)
    : rank_(rank), rank_count_(static_cast<uint32_t>(layout.ranks.size())) {
  if (calls.empty()) return;
  call_ = calls.front().expert;
  chunks_ = ChunksOf(call_.kernel, call_.combines, rank_count_);
  network_rule_.in_flight_messages = chunks_.network_in_flight;
  nvlink_rule_.in_flight_messages = chunks_.nvlink_in_flight;
  if (call_.kernel == ExpertKernel::kDeepEpLowLatency) {
    channels_.resize(call_.channels);
    AddLowLatency(calls);
  } else {
    server_ranks_ = call_.server_ranks;
    if (server_ranks_ == 0) server_ranks_ = std::max(1u, rank_count_ / layout.node_count());
    servers_ = static_cast<uint32_t>(DivideUp(rank_count_, server_ranks_));
    if (servers_ > 1 && !call_.combines) {
      chunks_.nvlink_tokens =
          std::min(chunks_.nvlink_tokens, ForwardedTokens(chunks_.network_tokens, server_ranks_));
    }
    channels_.resize(size_t{call_.channels} * servers_);
    const TokenTime time = TokenTimeOf(call_);
    const auto per_mille = [&](double time_ns) {
      return static_cast<uint32_t>(std::llround(1000 * time_ns / time.usual_ns));
    };
    work_ = {per_mille(time.once_ns), per_mille(time.copy_ns)};
    AddNormal(calls);
  }
}

// --- Lanes ---------------------------------------------------------------------------------------

void ExpertSchedule::AddSteps(Lane& lane, uint64_t count, const Step& step) {
  if (count == 0) return;
  // Both ends count a message's offset from its part of the channel.
  const auto same = std::ranges::find_if(lane.moved, [&](const Step& moved) {
    return moved.recv_from == step.recv_from && moved.send_to == step.send_to;
  });
  const bool is_first = same == lane.moved.end();
  Step& moved = is_first ? lane.moved.emplace_back(step) : *same;
  if (is_first) moved.bytes = 0;
  lane.rows.push_back({lane.step_count, step});
  lane.rows.back().step.offset_bytes = moved.bytes;
  moved.bytes += count * step.bytes;
  lane.step_count += count;
}

void ExpertSchedule::Place(uint32_t channel, Lane lane) {
  if (lane.step_count > 0) channels_[channel].push_back(std::move(lane));
}

void ExpertSchedule::AddLowLatency(std::span<const P2pCall> calls) {
  const uint64_t bytes = call_.token_bytes;
  for (const P2pCall& call : calls) {
    if (call.peer == rank_ && !call.is_send) continue;  // copied where it is sent
    for (uint32_t channel = 0; channel < call_.channels; ++channel) {
      const uint64_t tokens = PartOf(call.bytes / bytes, channel, call_.channels);
      const LanePeer peer{call.peer, ConnectionUse::kRemoteWrite};
      Lane lane;
      lane.network = call.peer != rank_;
      if (call.peer == rank_) {
        AddSteps(lane, tokens, Copies(bytes));
      } else if (call.is_send) {
        lane.peers.send_to = {peer};
        AddSteps(lane, tokens, Sends(call.peer, bytes));
      } else {
        lane.peers.recv_from = {peer};
        AddSteps(lane, tokens, Receives(call.peer, bytes));
      }
      Place(channel, std::move(lane));
    }
  }
}

void ExpertSchedule::AddNormal(std::span<const P2pCall> calls) {
  const auto server_of = [&](uint32_t rank) { return rank / server_ranks_; };
  const uint32_t others = std::max(1u, servers_ - 1);
  std::map<uint32_t, Relay> relays;  // by the tokens' rank
  std::vector<const P2pCall*> between;
  for (const P2pCall& call : calls) {
    const uint64_t tokens = call.bytes / call_.token_bytes;
    if (call.expert.relayed_for == 0) {
      between.push_back(&call);
      continue;
    }
    const uint32_t owner = call.expert.relayed_for - 1;
    // Says whether this rank passes the owner's tokens on, or the other one does.
    const bool relays_it = call.is_send != call_.combines;
    if (call.peer == rank_) {
      if (relays_it) relays[owner].own_tokens += tokens;
    } else if (relays_it) {
      relays[owner].local.emplace_back(call.peer, tokens);
    } else {
      AddDirect({.peer = call.peer,
                 .is_send = call.is_send,
                 .server = server_of(owner),
                 .tokens = tokens,
                 .warps = {.of = servers_ * server_ranks_}});
    }
  }
  for (const P2pCall* const call : between) {
    const uint64_t tokens = call->bytes / call_.token_bytes;
    const bool is_of_peer = call->is_send == call_.combines;  // the tokens are the peer's
    if (is_of_peer && relays.contains(call->peer)) {
      relays[call->peer].network_tokens += tokens;
      continue;
    }
    AddDirect({.peer = call->peer,
               .is_send = call->is_send,
               .network = true,
               .server = server_of(is_of_peer ? uint32_t{call->peer} : uint32_t{rank_}),
               .tokens = tokens,
               .warps = {.of = others}});
  }
  for (const auto& [owner, relay] : relays) AddRelay(RankIndex{owner}, server_of(owner), relay);
}

void ExpertSchedule::AddDirect(const Hop& hop) {
  const uint64_t chunk = hop.network ? chunks_.network_tokens : chunks_.nvlink_tokens;
  // With hybrid-ep a relay loads tokens from and stores them into the other GPU's tensors, and the
  // NIC reads tokens where they are. Only sums from other servers are terms that remain.
  uint32_t work_per_mille = 1000;
  if (call_.kernel == ExpertKernel::kHybridEp) {
    work_per_mille = call_.combines && hop.network ? work_.copy_per_mille : 0;
  }
  for (uint32_t channel = 0; channel < call_.channels; ++channel) {
    const Messages messages{PartOf(hop.tokens, channel, call_.channels), chunk};
    const LanePeer peer{hop.peer,
                        hop.network ? ConnectionUse::kRemoteWrite : ConnectionUse::kExchange};
    Lane lane;
    lane.network = hop.network;
    lane.warps = hop.warps;
    (hop.is_send ? lane.peers.send_to : lane.peers.recv_from) = {peer};
    const auto step = [&](uint64_t tokens) {
      const uint64_t bytes = tokens * call_.token_bytes;
      Step made = hop.is_send ? Sends(hop.peer, bytes) : Receives(hop.peer, bytes);
      made.work_per_mille = work_per_mille;
      return made;
    };
    const uint64_t whole = messages.tokens / chunk;
    AddSteps(lane, whole, step(chunk));
    if (whole < messages.count()) AddSteps(lane, 1, step(messages.tokens % chunk));
    Place(channel * servers_ + hop.server, std::move(lane));
  }
}

void ExpertSchedule::AddRelay(RankIndex owner, uint32_t server, const Relay& relay) {
  for (uint32_t channel = 0; channel < call_.channels; ++channel) {
    Lane lane;
    lane.network = relay.network_tokens > 0;
    lane.warps = {.of = servers_};
    std::vector<LanePeer> local;
    for (const auto& [peer, tokens] : relay.local)
      local.push_back({peer, ConnectionUse::kExchange});
    std::vector<LanePeer> remote;
    if (lane.network) remote.push_back({owner, ConnectionUse::kRemoteWrite});
    lane.peers.recv_from = call_.combines ? local : remote;
    lane.peers.send_to = call_.combines ? remote : local;
    FillRelay(owner, channel, relay, lane);
    Place(channel * servers_ + server, std::move(lane));
  }
}

// The messages of all local peers advance together with the chunks between servers: tokens leave
// when the chunk that they came with is there, and a sum leaves when all of its terms are.
void ExpertSchedule::FillRelay(RankIndex owner, uint32_t channel, const Relay& relay,
                               Lane& lane) const {
  struct Local {
    RankIndex peer{0};
    Messages messages;
    uint64_t done = 0;
  };
  std::vector<Local> local;
  uint64_t rounds = 0;
  const auto add = [&](RankIndex peer, uint64_t tokens) {
    local.push_back({peer, {PartOf(tokens, channel, call_.channels), chunks_.nvlink_tokens}});
    rounds = std::max(rounds, local.back().messages.count());
  };
  for (const auto& [peer, tokens] : relay.local) add(peer, tokens);
  if (relay.own_tokens > 0) add(rank_, relay.own_tokens);
  // Ranks and channels begin with different peers, as the kernels' warps do.
  if (!local.empty()) {
    const size_t first = (rank_ + channel) % local.size();
    std::rotate(local.begin(), local.begin() + static_cast<std::ptrdiff_t>(first), local.end());
  }
  const Messages chunks{PartOf(relay.network_tokens, channel, call_.channels),
                        chunks_.network_tokens};
  if (chunks.tokens > 0) rounds = chunks.count();
  const auto move_chunk = [&](uint64_t round) {
    if (chunks.tokens == 0) return;
    const uint64_t bytes = chunks.TokensOf(round) * call_.token_bytes;
    Step step = call_.combines ? Sends(owner, bytes) : Receives(owner, bytes);
    step.work_per_mille = work_.once_per_mille;
    AddSteps(lane, 1, step);
  };
  for (uint64_t round = 0; round < rounds; ++round) {
    if (!call_.combines) move_chunk(round);
    for (Local& at : local) {
      const uint64_t count = at.messages.count();
      const uint64_t until =
          call_.combines ? DivideUp((round + 1) * count, rounds) : (round + 1) * count / rounds;
      for (; at.done < until; ++at.done) {
        const uint64_t bytes = at.messages.TokensOf(at.done) * call_.token_bytes;
        Step step = at.peer == rank_ ? Copies(bytes)
                    : call_.combines ? Receives(at.peer, bytes)
                                     : Sends(at.peer, bytes);
        if (chunks.tokens > 0) step.work_per_mille = work_.copy_per_mille;
        AddSteps(lane, 1, step);
      }
    }
    if (call_.combines) move_chunk(round);
  }
  // Where the chunks are none in this channel although peers have messages, or the reverse.
  SIM_CHECK(
      std::ranges::all_of(local, [](const Local& at) { return at.done == at.messages.count(); }),
      "tokens were left over");
}

// --- Steps ---------------------------------------------------------------------------------------

const MessageRule& ExpertSchedule::MessageRuleOf(const LaneId& lane) const {
  return LaneAt(lane).network ? network_rule_ : nvlink_rule_;
}

uint32_t ExpertSchedule::BatchCount(RankIndex rank, uint32_t channel) const {
  return rank == rank_ && !channels_[channel].empty() ? 1 : 0;
}

uint32_t ExpertSchedule::LaneCount(RankIndex rank, uint32_t channel, uint32_t /*batch*/) const {
  return rank == rank_ ? static_cast<uint32_t>(channels_[channel].size()) : 0;
}

uint64_t ExpertSchedule::StepCount(const LaneId& lane) const { return LaneAt(lane).step_count; }

const ExpertSchedule::Row& ExpertSchedule::RowAt(const Lane& lane, uint64_t step) const {
  const auto after = std::ranges::upper_bound(lane.rows, step, {}, &Row::first);
  return *std::prev(after);
}

Step ExpertSchedule::StepAt(const LaneId& lane, uint64_t step) const {
  const Row& row = RowAt(LaneAt(lane), step);
  Step result = row.step;
  result.offset_bytes += (step - row.first) * row.step.bytes;
  return result;
}

uint64_t ExpertSchedule::AlikeFrom(const LaneId& lane, uint64_t step) const {
  const Lane& at = LaneAt(lane);
  const auto after = std::ranges::upper_bound(at.rows, step, {}, &Row::first);
  return (after == at.rows.end() ? at.step_count : after->first) - step;
}

}  // namespace railyard
