// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/streams/wait_explainer.h"

#include <algorithm>
#include <cstdint>
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

std::string WaitExplainer::NameOf(const Call& call) const {
  const JobCollective& collective = calls_.CollectiveOf(call);
  return fmt::format("{} #{} of communicator {}", CollectiveKindName(collective.kind),
                     calls_.CollectiveNumberOf(call),
                     calls_.job().communicators[collective.communicator].name);
}

GlobalRank WaitExplainer::PeerOf(const LaneExecutor::Waiting& wait) const {
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

// Returns why a rank that runs nothing lets others wait.
std::string WaitExplainer::CauseOfIdle(GlobalRank rank) const {
  const auto next = std::ranges::find(stall_.pending, rank, &Call::rank);
  if (next == stall_.pending.end()) return fmt::format("rank {}, which waits for nobody", rank);
  return fmt::format("rank {} has not begun {}", rank, NameOf(*next));
}

// Returns why the wait lasts if nothing that runs is the reason.
std::optional<std::string> WaitExplainer::CauseOf(
    const LaneExecutor::Waiting& wait,
    const std::map<GlobalRank, std::vector<size_t>>& waits_of_rank) const {
  if (wait.is_under_way) {
    std::string cause = "queue pair " + wait.transport;
    if (!wait.obstacles.empty()) cause += fmt::format(" -> {}", fmt::join(wait.obstacles, ", "));
    return cause;
  }
  const GlobalRank peer = PeerOf(wait);
  if (IsStopped(GpuOf(peer))) return StoppedText(GpuOf(peer));
  if (!waits_of_rank.contains(peer)) return CauseOfIdle(peer);
  return std::nullopt;
}

// Returns the waits that may be why the rank waited for does not come: those of this communicator's
// channel there, which are few. If there are none, returns one of the communicator, or of the rank.
std::vector<size_t> WaitExplainer::WaitsBehind(
    const LaneExecutor::Waiting& wait,
    const std::map<GlobalRank, std::vector<size_t>>& waits_of_rank) const {
  const std::vector<size_t>& waits = waits_of_rank.at(PeerOf(wait));
  std::vector<size_t> behind;
  size_t other = waits.front();
  for (const size_t i : waits) {
    if (stall_.lanes[i].communicator != wait.communicator) continue;
    other = i;
    if (stall_.lanes[i].channel == wait.channel) behind.push_back(i);
  }
  if (behind.empty()) behind.push_back(other);
  return behind;
}

// A wait that has a cause ends a chain. The others lead to the nearest of these, or in a circle.
std::vector<WaitExplainer::Chain> WaitExplainer::FindChains() const {
  const size_t count = stall_.lanes.size();
  std::map<GlobalRank, std::vector<size_t>> waits_of_rank;
  for (size_t i = 0; i < count; ++i) waits_of_rank[CallOf(stall_.lanes[i]).rank].push_back(i);
  constexpr size_t kNone = SIZE_MAX;
  std::vector<std::string> causes(count);
  std::vector<size_t> next(count, kNone);  // towards the cause; its own number at the end
  std::vector<std::vector<size_t>> behind(count);
  std::vector<std::vector<size_t>> before(count);
  std::vector<size_t> reached;
  for (size_t i = 0; i < count; ++i) {
    if (std::optional<std::string> cause = CauseOf(stall_.lanes[i], waits_of_rank)) {
      causes[i] = *std::move(cause);
      next[i] = i;
      reached.push_back(i);
      continue;
    }
    behind[i] = WaitsBehind(stall_.lanes[i], waits_of_rank);
    for (const size_t other : behind[i]) before[other].push_back(i);
  }
  for (size_t done = 0; done < reached.size(); ++done) {
    for (const size_t other : before[reached[done]]) {
      if (next[other] != kNone) continue;
      next[other] = reached[done];
      causes[other] = causes[reached[done]];
      reached.push_back(other);
    }
  }
  // The farther ones were reached later, so the last with a cause has its longest chain.
  std::map<std::string, size_t> farthest;
  for (const size_t i : reached) farthest[causes[i]] = i;
  std::vector<Chain> chains;
  for (const auto& [cause, first] : farthest) {
    Chain& chain = chains.emplace_back(Chain{.waits = {first}, .cause = cause});
    while (next[chain.waits.back()] != chain.waits.back()) {
      chain.waits.push_back(next[chain.waits.back()]);
    }
  }
  std::vector<bool> is_in_chain(count);
  for (size_t first = 0; first < count; ++first) {
    if (next[first] != kNone || is_in_chain[first]) continue;
    Chain chain;
    size_t at = first;
    for (; !is_in_chain[at]; at = behind[at].front()) {
      is_in_chain[at] = true;
      chain.waits.push_back(at);
    }
    // It leads to a circle that an earlier chain has named, or is a new one.
    if (std::ranges::find(chain.waits, at) == chain.waits.end()) continue;
    chain.cause =
        fmt::format("rank {} again: they wait for one another", CallOf(stall_.lanes[at]).rank);
    chains.push_back(std::move(chain));
  }
  return chains;
}

std::string WaitExplainer::Chains() const {
  std::vector<Chain> found = FindChains();
  if (found.size() > kChainsMax) found.resize(kChainsMax);
  std::string text;
  for (const Chain& chain : found) {
    text += "in " + NameOf(CallOf(stall_.lanes[chain.waits.front()])) + ": ";
    for (size_t i = 0; i < chain.waits.size(); ++i) {
      const size_t behind = chain.waits.size() - i;
      if (i == kChainEnds && behind > kChainEnds) {
        text += fmt::format("{} more -> ", behind - kChainEnds);
        i += behind - kChainEnds;
      }
      text += WaitText(stall_.lanes[chain.waits[i]], "") + " -> ";
    }
    text += chain.cause + "\n";
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
