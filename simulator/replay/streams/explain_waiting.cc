// SPDX-License-Identifier: GPL-2.0-only
// Who waits for whom, for runs that stalled: from a rank over the transfers, each of which waits
// for another, to the queue pair or GPU that all of them wait for, and the link that is down.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/replay/streams/replay_engine.h"

namespace railyard {
namespace {

constexpr size_t kListedMax = 12;
constexpr size_t kChainsMax = 4;
constexpr size_t kChainEnds = 3;  // ranks named at either end of a chain

}  // namespace

// What a chain of waits comes to.
struct ReplayEngine::WaitChain {
  std::vector<std::string> waits;
  std::string cause;
};

std::string ReplayEngine::NameOf(const Call& call) const {
  const uint32_t id = CollectiveOf(call);
  const JobCollective& collective = job_.collectives[id];
  return fmt::format("{} #{} of communicator {}", CollectiveKindName(collective.kind), id,
                     job_.communicators[collective.communicator].name);
}

const ReplayEngine::Pending* ReplayEngine::PendingOf(uint32_t rank) const {
  const Pending* first = nullptr;
  for (const Pending& pending : pending_) {
    if (pending.rank == rank && (first == nullptr || pending.number < first->number)) {
      first = &pending;
    }
  }
  return first;
}

ReplayEngine::WaitChain ReplayEngine::FollowWait(
    const std::vector<LaneExecutor::Waiting>& waiting,
    const std::map<uint32_t, std::vector<size_t>>& waits_of_rank, size_t first) const {
  WaitChain chain;
  std::set<size_t> seen;
  for (size_t at = first;;) {
    const LaneExecutor::Waiting& wait = waiting[at];
    const Running& running = running_[wait.operation];
    const uint32_t peer = communicators_[wait.communicator].gpus[wait.peer];
    chain.waits.push_back(fmt::format("rank {} waits for {} rank {} on channel {}", running.rank,
                                      wait.for_data ? "data from" : "a free slot of", peer,
                                      wait.channel));
    seen.insert(at);
    if (wait.is_under_way) {
      chain.cause = "queue pair " + wait.transport;
      if (!wait.obstacles.empty()) {
        chain.cause += fmt::format(" -> {}", fmt::join(wait.obstacles, ", "));
      }
      return chain;
    }
    if (executor_->StandsStillNow(peer)) {
      chain.cause =
          fmt::format("{}, rank {}, stands still", graph_.device(graph_.gpus()[peer]).name, peer);
      return chain;
    }
    const auto found = waits_of_rank.find(peer);
    if (found == waits_of_rank.end()) {
      const Pending* const pending = PendingOf(peer);
      if (pending == nullptr) {
        chain.cause = fmt::format("rank {}, which waits for nobody", peer);
      } else {
        const uint32_t index = pending->number - first_number_[peer];
        chain.cause = fmt::format("rank {} has not begun {}", peer, NameOf({peer, index}));
      }
      return chain;
    }
    // What holds up this communicator's channel there, if anything does; else what holds the rank.
    size_t next = found->second.front();
    for (const size_t candidate : found->second) {
      if (waiting[candidate].communicator != wait.communicator) continue;
      next = candidate;
      if (waiting[candidate].channel == wait.channel) break;
    }
    if (seen.contains(next)) {
      chain.cause = fmt::format("rank {} again: they wait for one another",
                                running_[waiting[next].operation].rank);
      return chain;
    }
    at = next;
  }
}

std::string ReplayEngine::ExplainChains(const std::vector<LaneExecutor::Waiting>& waiting) const {
  std::map<uint32_t, std::vector<size_t>> waits_of_rank;
  for (size_t i = 0; i < waiting.size(); ++i) {
    waits_of_rank[running_[waiting[i].operation].rank].push_back(i);
  }
  // By cause: the longest chain that leads to it.
  std::map<std::string, std::pair<size_t, WaitChain>> longest;
  for (size_t i = 0; i < waiting.size(); ++i) {
    WaitChain chain = FollowWait(waiting, waits_of_rank, i);
    const auto [it, is_new] = longest.try_emplace(chain.cause, i, WaitChain{});
    if (is_new || chain.waits.size() > it->second.second.waits.size()) {
      it->second = {i, std::move(chain)};
    }
  }
  std::string text;
  size_t chains = 0;
  for (const auto& [cause, entry] : longest) {
    if (++chains > kChainsMax) break;
    const auto& [first, chain] = entry;
    const Running& running = running_[waiting[first].operation];
    text += "in " + NameOf({running.rank, running.index}) + ": ";
    for (size_t i = 0; i < chain.waits.size(); ++i) {
      const size_t behind = chain.waits.size() - i;
      if (i == kChainEnds && behind > kChainEnds) {
        text += fmt::format("{} more -> ", behind - kChainEnds);
        i += behind - kChainEnds;
      }
      text += chain.waits[i] + " -> ";
    }
    text += cause + "\n";
  }
  return text;
}

std::string ReplayEngine::ExplainWaiting() const {
  const std::vector<LaneExecutor::Waiting> waiting = executor_->WaitingLanes();
  std::string text = ExplainChains(waiting);
  size_t lines = 0;
  std::set<uint32_t> explained;
  for (const LaneExecutor::Waiting& wait : waiting) {
    if (!explained.insert(wait.operation).second || lines == kListedMax) continue;
    ++lines;
    const Running& running = running_[wait.operation];
    const uint32_t peer = communicators_[wait.communicator].gpus[wait.peer];
    text += fmt::format("rank {} in {} waits for {} rank {} on channel {}{}{}\n", running.rank,
                        NameOf({running.rank, running.index}),
                        wait.for_data ? "data from" : "a free slot of", peer, wait.channel,
                        wait.transport.empty() ? "" : "; ", wait.transport);
  }
  for (uint32_t gpu = 0; gpu < graph_.gpus().size(); ++gpu) {
    if (!executor_->StandsStillNow(gpu)) continue;
    text += fmt::format("{}, rank {}, stands still\n", graph_.device(graph_.gpus()[gpu]).name, gpu);
  }
  // Ranks that others wait for may be held up in another collective.
  std::vector<Pending> pending = pending_;
  std::sort(pending.begin(), pending.end(),
            [](const Pending& a, const Pending& b) { return a.number < b.number; });
  for (const Pending& operation : pending) {
    if (lines >= 2 * kListedMax) break;
    ++lines;
    const uint32_t index = operation.number - first_number_[operation.rank];
    text +=
        fmt::format("rank {} has not begun {}\n", operation.rank, NameOf({operation.rank, index}));
  }
  return text;
}

}  // namespace railyard
