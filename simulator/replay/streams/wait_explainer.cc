// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/streams/wait_explainer.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace railyard {
namespace {

constexpr size_t kListedMax = 12;
constexpr size_t kChainsMax = 4;
constexpr size_t kChainEnds = 3;  // ranks named at either end of a chain

}  // namespace

struct WaitExplainer::Chain {
  std::vector<std::string> waits;
  std::string cause;
};

std::string WaitExplainer::NameOf(const Call& call) const {
  const JobCollective& collective = calls_.CollectiveOf(call);
  return fmt::format("{} #{} of communicator {}", CollectiveKindName(collective.kind),
                     calls_.CollectiveNumberOf(call),
                     calls_.job().communicators[collective.communicator].name);
}

uint32_t WaitExplainer::PeerOf(const LaneExecutor::Waiting& wait) const {
  return calls_.job().communicators[wait.communicator].ranks[wait.peer];
}

std::string WaitExplainer::WaitText(const LaneExecutor::Waiting& wait,
                                    const std::string& in) const {
  return fmt::format("rank {}{} waits for {} rank {} on channel {}", CallOf(wait).rank, in,
                     wait.for_data ? "data from" : "a free slot of", PeerOf(wait), wait.channel);
}

std::string WaitExplainer::StoppedText(GpuIndex gpu) const {
  return fmt::format("{}, rank {}, stands still", graph_.device(graph_.gpus()[gpu]).name, gpu);
}

// Why a rank that runs nothing lets others wait.
std::string WaitExplainer::CauseOfIdle(uint32_t rank) const {
  const auto next = std::ranges::find(stall_.pending, rank, &Call::rank);
  if (next == stall_.pending.end()) return fmt::format("rank {}, which waits for nobody", rank);
  return fmt::format("rank {} has not begun {}", rank, NameOf(*next));
}

WaitExplainer::Chain WaitExplainer::Follow(
    const std::map<uint32_t, std::vector<size_t>>& waits_of_rank, size_t first) const {
  Chain chain;
  std::set<size_t> seen;
  for (size_t at = first;;) {
    const LaneExecutor::Waiting& wait = stall_.lanes[at];
    const uint32_t peer = PeerOf(wait);
    chain.waits.push_back(WaitText(wait, ""));
    seen.insert(at);
    if (wait.is_under_way) {
      chain.cause = "queue pair " + wait.transport;
      if (!wait.obstacles.empty()) {
        chain.cause += fmt::format(" -> {}", fmt::join(wait.obstacles, ", "));
      }
      return chain;
    }
    if (IsStopped(GpuIndex{peer})) {
      chain.cause = StoppedText(GpuIndex{peer});
      return chain;
    }
    const auto found = waits_of_rank.find(peer);
    if (found == waits_of_rank.end()) {
      chain.cause = CauseOfIdle(peer);
      return chain;
    }
    // Continues with the wait of this communicator's channel there, else with any wait of the rank.
    size_t next = found->second.front();
    for (const size_t candidate : found->second) {
      if (stall_.lanes[candidate].communicator != wait.communicator) continue;
      next = candidate;
      if (stall_.lanes[candidate].channel == wait.channel) break;
    }
    if (seen.contains(next)) {
      chain.cause =
          fmt::format("rank {} again: they wait for one another", CallOf(stall_.lanes[next]).rank);
      return chain;
    }
    at = next;
  }
}

std::string WaitExplainer::Chains() const {
  std::map<uint32_t, std::vector<size_t>> waits_of_rank;
  for (size_t i = 0; i < stall_.lanes.size(); ++i) {
    waits_of_rank[CallOf(stall_.lanes[i]).rank].push_back(i);
  }
  // The longest chain for each cause.
  std::map<std::string, std::pair<size_t, Chain>> longest;
  for (size_t i = 0; i < stall_.lanes.size(); ++i) {
    Chain chain = Follow(waits_of_rank, i);
    const auto [it, is_new] = longest.try_emplace(chain.cause, i, Chain{});
    if (is_new || chain.waits.size() > it->second.second.waits.size()) {
      it->second = {i, std::move(chain)};
    }
  }
  std::string text;
  size_t chains = 0;
  for (const auto& [cause, entry] : longest) {
    if (++chains > kChainsMax) break;
    const auto& [first, chain] = entry;
    text += "in " + NameOf(CallOf(stall_.lanes[first])) + ": ";
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

std::string WaitExplainer::Explain() const {
  std::string text = Chains();
  size_t lines = 0;
  std::set<uint32_t> explained;
  for (const LaneExecutor::Waiting& wait : stall_.lanes) {
    if (!explained.insert(wait.operation).second || lines == kListedMax) continue;
    ++lines;
    text += fmt::format("{}{}{}\n", WaitText(wait, " in " + NameOf(CallOf(wait))),
                        wait.transport.empty() ? "" : "; ", wait.transport);
  }
  for (GpuIndex gpu{0}; gpu < graph_.gpus().size(); ++gpu) {
    if (IsStopped(gpu)) text += StoppedText(gpu) + "\n";
  }
  // Ranks for which others wait may themselves wait in another collective.
  for (const Call& call : stall_.pending) {
    if (lines >= 2 * kListedMax) break;
    ++lines;
    text += fmt::format("rank {} has not begun {}\n", call.rank, NameOf(call));
  }
  return text;
}

}  // namespace railyard
