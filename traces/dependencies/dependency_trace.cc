// SPDX-License-Identifier: GPL-2.0-only
#include "traces/dependencies/dependency_trace.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "traces/dependencies/collective_matching.h"
#include "traces/dependencies/dependency_order.h"
#include "traces/dependencies/stream_layout.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

constexpr uint32_t kNothing = UINT32_MAX;  // no operation: there is nothing to wait for
constexpr uint32_t kSeveral = UINT32_MAX - 1;
constexpr size_t kTagsMax = 16;  // of a pair, with separate communicators
constexpr int64_t kGapMaxPs = kGraphDurationMaxPs;

class GraphTraceBuilder {
 public:
  GraphTraceBuilder(DependencyGraph graph, ImportReport& report, Diagnostics& diagnostics)
      : graph_(std::move(graph)), report_(report), diagnostics_(diagnostics) {}

  std::optional<Trace> Run() {
    MatchedMessages messages = MatchMessages(graph_);
    if (graph_.recvs_state_buffers && FitBuffers(messages)) messages = MatchMessages(graph_);
    DropUnmatched(messages);
    JoinTags();
    JobOrder order = OrderJob(graph_, messages, SendsAre::kSynchronous);
    if (order.in_cycle) {
      const GraphPlace place = *order.in_cycle;
      order = OrderJob(graph_, messages, SendsAre::kEager);
      is_eager_ = true;
      if (order.in_cycle) return DropAll(*order.in_cycle);
      report_.assumed.push_back(fmt::format(
          "Sends end at once for whatever waits for them: if they ended with their messages the "
          "job would wait for itself at {}.",
          NameOf(place)));
    }
    for (UnmatchedCollective& call : FindUnmatchedCollectives(graph_, order.order)) {
      Drop(call.reason, call.place, std::move(call.detail));
    }
    LayOut(order.order);
    // An operation that waits for another for want of a stream may only wait for what comes before
    // it on all ranks: else the job could wait for itself.
    if (Serialized() > 0) {
      const SendsAre sends = is_eager_ ? SendsAre::kEager : SendsAre::kSynchronous;
      LayOut(OrderJob(graph_, messages, sends, OrderIs::kByMessage).order);
    }
    return Finish();
  }

 private:
  const GraphOperation& At(GraphPlace place) const {
    return graph_.ranks[place.rank][place.operation];
  }

  std::string NameOf(GraphPlace place) const {
    const GraphOperation& operation = At(place);
    return fmt::format("rank {}, operation {} ({}{})", place.rank, place.operation,
                       graph_.source_files[operation.source_file],
                       operation.source_line == 0 ? "" : fmt::format(":{}", operation.source_line));
  }

  void Drop(CallDropReason reason, GraphPlace place, std::string detail) {
    GraphOperation& operation = graph_.ranks[place.rank][place.operation];
    report_.Drop(reason, operation.source_file, operation.source_line, std::move(detail));
    operation.kind = CollectiveKind::kCompute;  // what waits for it still does
  }

  void DropUnmatched(const MatchedMessages& messages) {
    for (const GraphPlace place : messages.without_partner) {
      const GraphOperation& call = At(place);
      Drop(CallDropReason::kIncompleteOnRank, place,
           fmt::format("rank {} has no {} for it", call.peer,
                       call.kind == CollectiveKind::kSend ? "Recv" : "Send"));
    }
    for (const GraphPlace place : messages.sizes_differ) {
      Drop(CallDropReason::kRanksDisagree, place,
           fmt::format("Send and Recv differ in size, here {} bytes", At(place).count));
    }
  }

  // Gives Recvs whose buffers are larger than their messages the messages' sizes; false if none is.
  bool FitBuffers(const MatchedMessages& messages) {
    uint64_t fitted = 0;
    for (size_t i = 0; i + 1 < messages.sizes_differ.size(); i += 2) {
      const GraphOperation& send = At(messages.sizes_differ[i]);
      const GraphPlace place = messages.sizes_differ[i + 1];
      GraphOperation& recv = graph_.ranks[place.rank][place.operation];
      if (recv.count < send.count) continue;
      recv.count = send.count;
      ++fitted;
    }
    if (fitted > 0) {
      report_.assumed.push_back(fmt::format(
          "{} Recvs are larger than their messages: they receive what is sent.", fitted));
    }
    return fitted > 0;
  }

  // Messages of a pair with many tags are of one communicator: generators have a tag a message.
  void JoinTags() {
    std::map<std::pair<GlobalRank, GlobalRank>, std::set<uint64_t>> tags;
    const auto pair_of = [](GlobalRank rank, const GraphOperation& operation) {
      const bool is_send = operation.kind == CollectiveKind::kSend;
      return is_send ? std::pair(rank, operation.peer) : std::pair(operation.peer, rank);
    };
    const auto for_each_message = [&](const auto& visit) {
      for (GlobalRank rank{0}; rank < graph_.ranks.size(); ++rank) {
        for (GraphOperation& operation : graph_.ranks[rank]) {
          if (operation.kind == CollectiveKind::kSend || operation.kind == CollectiveKind::kRecv) {
            visit(tags[pair_of(rank, operation)], operation);
          }
        }
      }
    };
    for_each_message([](std::set<uint64_t>& known, GraphOperation& operation) {
      if (known.size() <= kTagsMax) known.insert(operation.tag);
    });
    for_each_message([](std::set<uint64_t>& known, GraphOperation& operation) {
      if (known.size() > kTagsMax) operation.tag = 0;
    });
  }

  std::optional<Trace> DropAll(GraphPlace cycle) {
    const GraphOperation& at = At(cycle);
    diagnostics_.Error(
        {.file = graph_.source_files[at.source_file], .line = static_cast<int>(at.source_line)}, "",
        fmt::format("operation {} of rank {} waits for itself, by way of others "
                    "(expected dependencies without a cycle)",
                    cycle.operation, cycle.rank));
    for (GlobalRank rank{0}; rank < graph_.ranks.size(); ++rank) {
      for (uint32_t i = 0; i < graph_.ranks[rank].size(); ++i) {
        if (graph_.ranks[rank][i].kind == CollectiveKind::kCompute) continue;
        Drop(CallDropReason::kImportFailed, {rank, i}, {});
      }
    }
    return std::nullopt;
  }

  void LayOut(const std::vector<GraphPlace>& order) {
    Begin();
    for (const GraphPlace place : order) Add(place);
  }

  uint64_t Serialized() const {
    uint64_t serialized = 0;
    for (const StreamLayout& layout : layouts_) serialized += layout.serialized();
    return serialized;
  }

  void Begin() {
    const size_t ranks = graph_.ranks.size();
    layouts_.assign(ranks, {});
    number_of_.resize(ranks);
    dependent_of_.resize(ranks);
    gap_ps_.resize(ranks);
    for (size_t rank = 0; rank < ranks; ++rank) {
      number_of_[rank].assign(graph_.ranks[rank].size(), kNothing);
      dependent_of_[rank].assign(graph_.ranks[rank].size(), kNothing);
      gap_ps_[rank].assign(graph_.ranks[rank].size(), 0);
      for (uint32_t i = 0; i < graph_.ranks[rank].size(); ++i) {
        for (const uint32_t other : graph_.ranks[rank][i].waits_for) {
          uint32_t& dependent = dependent_of_[rank][other];
          dependent = dependent == kNothing ? i : kSeveral;
        }
      }
    }
  }

  // Numbers of operations in the rank's program that the operation waits for, each once.
  std::vector<uint32_t> NumbersOf(GraphPlace place) const {
    std::vector<uint32_t> numbers;
    for (const uint32_t other : At(place).waits_for) {
      if (number_of_[place.rank][other] != kNothing) {
        numbers.push_back(number_of_[place.rank][other]);
      }
    }
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    return numbers;
  }

  void Add(GraphPlace place) {
    const GraphOperation& operation = At(place);
    TraceOperation added;
    added.kind = operation.kind;
    added.source_file = operation.source_file;
    added.source_line = operation.source_line;
    if (operation.kind == CollectiveKind::kCompute) {
      AddComputation(place, added);
      return;
    }
    std::vector<uint32_t> waits_for = NumbersOf(place);
    added.count = operation.count;
    added.datatype = Datatype::kUint8;
    added.root = operation.root;
    added.communicator = CommunicatorOf(place);
    added.compute_before_ps = gap_ps_[place.rank][place.operation];
    if (operation.kind == CollectiveKind::kSend) added.peer = 1;
    uint32_t& number = number_of_[place.rank][place.operation];
    StreamLayout& layout = layouts_[place.rank];
    const bool ends_at_once = is_eager_ && operation.kind == CollectiveKind::kSend;
    if (ends_at_once && (waits_for.size() > 1 || added.compute_before_ps > 0)) {
      TraceOperation issue;
      issue.kind = CollectiveKind::kCompute;
      issue.compute_before_ps = std::exchange(added.compute_before_ps, 0);
      issue.source_file = operation.source_file;
      issue.source_line = operation.source_line;
      waits_for = {layout.Add(issue, std::move(waits_for))};
    }
    if (ends_at_once) number = waits_for.empty() ? kNothing : waits_for.front();
    if (ends_at_once) {
      layout.AddBeside(added.communicator, added, std::move(waits_for));
    } else {
      number = layout.Add(added, std::move(waits_for));
    }
  }

  // Computation on which exactly one operation depends becomes the gap before that operation.
  void AddComputation(GraphPlace place, TraceOperation added) {
    uint32_t& number = number_of_[place.rank][place.operation];
    const uint32_t dependent = dependent_of_[place.rank][place.operation];
    const bool is_gap = dependent < graph_.ranks[place.rank].size() &&
                        graph_.ranks[place.rank][dependent].waits_for.size() == 1;
    const int64_t time_ps =
        std::min(kGapMaxPs, gap_ps_[place.rank][place.operation] + At(place).duration_ps);
    const WaitList& others = At(place).waits_for;
    if ((is_gap || time_ps == 0) && others.size() <= 1) {
      number = others.empty() ? kNothing : number_of_[place.rank][others.front()];
      if (is_gap) gap_ps_[place.rank][dependent] = time_ps;
      return;
    }
    std::vector<uint32_t> waits_for = NumbersOf(place);
    if ((is_gap || time_ps == 0) && waits_for.size() <= 1) {
      number = waits_for.empty() ? kNothing : waits_for.front();
      if (is_gap) gap_ps_[place.rank][dependent] = time_ps;
      return;
    }
    added.compute_before_ps = time_ps;
    number = layouts_[place.rank].Add(added, std::move(waits_for));
  }

  uint32_t CommunicatorOf(GraphPlace place) {
    const GraphOperation& operation = At(place);
    if (operation.kind != CollectiveKind::kSend && operation.kind != CollectiveKind::kRecv) {
      return operation.communicator;
    }
    const bool is_send = operation.kind == CollectiveKind::kSend;
    const GlobalRank source = is_send ? place.rank : operation.peer;
    const GlobalRank target = is_send ? operation.peer : place.rank;
    const auto [at, is_new] = pairs_.try_emplace(
        {source, target, operation.tag}, static_cast<uint32_t>(graph_.communicators.size()));
    if (is_new) {
      graph_.communicators.push_back(
          {.name = fmt::format("{}to{}{}", source, target,
                               operation.tag == 0 ? "" : fmt::format("tag{}", operation.tag)),
           .ranks = {source, target}});
    }
    return at->second;
  }

  std::optional<Trace> Finish() {
    bool has_calls = false;
    for (const std::vector<GraphOperation>& rank : graph_.ranks) {
      for (const GraphOperation& operation : rank) {
        if (operation.kind == CollectiveKind::kCompute) continue;
        report_.Import(operation.kind, operation.source_file, operation.stated_bytes);
        has_calls = true;
      }
    }
    if (!has_calls) return std::nullopt;
    Trace trace;
    trace.origin = graph_.origin;
    trace.rank_count = static_cast<uint32_t>(graph_.ranks.size());
    trace.source_files = std::move(graph_.source_files);
    trace.communicators = std::move(graph_.communicators);
    trace.operations.resize(trace.rank_count);
    const uint64_t serialized = Serialized();
    for (GlobalRank rank{0}; rank < trace.rank_count; ++rank) {
      trace.operations[rank] = std::move(layouts_[rank]).Take();
    }
    if (serialized > 0) {
      report_.assumed.push_back(
          fmt::format("{} operations begin after one that they do not wait for: a rank has {} "
                      "streams, whose last operations nothing else waits for.",
                      serialized, StreamLayout::kStreamsMax));
    }
    const std::string file = trace.source_files.empty() ? std::string() : trace.source_files[0];
    if (!CheckTrace(trace, file, diagnostics_)) return std::nullopt;
    return trace;
  }

  DependencyGraph graph_;
  ImportReport& report_;
  Diagnostics& diagnostics_;
  bool is_eager_ = false;
  std::vector<StreamLayout> layouts_;  // by rank
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, uint32_t>
      pairs_;  // by tag, their communicators
  // By rank and operation: its number in the rank's program, or that of what stands for it; what
  // waits for it, if that is one; the gap before it.
  std::vector<std::vector<uint32_t>> number_of_;
  std::vector<std::vector<uint32_t>> dependent_of_;
  std::vector<std::vector<int64_t>> gap_ps_;
};

}  // namespace

std::optional<Trace> TraceOfGraph(DependencyGraph graph, ImportReport& report,
                                  Diagnostics& diagnostics) {
  return GraphTraceBuilder(std::move(graph), report, diagnostics).Run();
}

}  // namespace railyard
