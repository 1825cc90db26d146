// SPDX-License-Identifier: GPL-2.0-only
#include "traces/transform/trace_summary.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include <fmt/format.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>

#include "simulator/units/divide_up.h"

namespace railyard {
namespace {

constexpr size_t kTimelineLetters = 72;
constexpr size_t kCommunicatorsShown = 16;
// By CollectiveKind.
constexpr std::string_view kLetters = "AGRBDXHSsr.";
static_assert(kLetters.size() == kCollectiveKindCount);

bool HasPairs(CollectiveKind kind) {
  return kind == CollectiveKind::kSend || kind == CollectiveKind::kAllToAll ||
         kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter;
}

class Summarizer {
 public:
  explicit Summarizer(const Trace& trace) : trace_(trace) {}

  TraceSummary Run() {
    summary_.origin = trace_.origin;
    summary_.ranks = trace_.rank_count;
    for (const TraceCommunicator& communicator : trace_.communicators) {
      summary_.communicators.push_back(
          {.name = communicator.name, .ranks = communicator.ranks.size()});
    }
    const uint32_t blocks = std::min(trace_.rank_count, kMatrixBlocksMax);
    summary_.ranks_per_block = static_cast<uint32_t>(DivideUp(trace_.rank_count, blocks));
    const size_t rows = DivideUp(trace_.rank_count, summary_.ranks_per_block);
    summary_.matrix.assign(rows, std::vector<uint64_t>(rows, 0));
    for (const std::vector<GlobalRank>& ranks : trace_.operations.RanksOfPrograms()) {
      if (ranks.empty()) continue;
      ++summary_.programs;
      for (const GlobalRank rank : ranks) AddRank(rank);
    }
    if (!has_pairs_) summary_.matrix.clear();
    return summary_;
  }

 private:
  void AddRank(GlobalRank rank) {
    uint64_t iterations = 1;
    for (const TraceOperation& operation : trace_.operations[rank]) {
      if (operation.begins_iteration) ++iterations;
      Add(rank, operation);
    }
    if (!trace_.operations[rank].empty()) {
      summary_.iterations = std::max(summary_.iterations, iterations);
    }
  }

  void Add(GlobalRank rank, const TraceOperation& operation) {
    TraceSummary::Kind& kind = summary_.kinds[static_cast<size_t>(operation.kind)];
    ++kind.calls;
    kind.gap_ps += static_cast<uint64_t>(operation.compute_before_ps);
    if (operation.kind == CollectiveKind::kCompute) return;
    const uint32_t communicator = trace_.CommunicatorOf(rank, operation.communicator);
    ++summary_.communicators[communicator].calls;
    const std::vector<GlobalRank>& members = trace_.communicators[communicator].ranks;
    const uint64_t bytes = OperationBytes(operation, static_cast<uint32_t>(members.size()));
    kind.bytes += bytes;
    kind.smallest = std::min(kind.smallest, bytes);
    kind.largest = std::max(kind.largest, bytes);
    if (bytes > 0) ++kind.by_size[static_cast<size_t>(std::bit_width(bytes)) - 1];
    if (HasPairs(operation.kind)) AddPairs(rank, operation, members);
  }

  void AddPairs(GlobalRank rank, const TraceOperation& operation,
                const std::vector<GlobalRank>& members) {
    has_pairs_ = true;
    const uint64_t bytes = operation.count * DatatypeBytes(operation.datatype);
    const auto add = [&](GlobalRank to) {
      if (to == rank) return;
      summary_.matrix[rank / summary_.ranks_per_block][to / summary_.ranks_per_block] += bytes;
    };
    if (operation.kind == CollectiveKind::kSend) {
      add(members[operation.peer]);
    } else if (operation.kind == CollectiveKind::kGather) {
      add(members[operation.root]);
    } else if (operation.kind == CollectiveKind::kAllToAll || members[operation.root] == rank) {
      for (const GlobalRank to : members) add(to);
    }
  }

  const Trace& trace_;
  TraceSummary summary_;
  bool has_pairs_ = false;
};

std::string SizeName(size_t power) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  return fmt::format("{} {}", uint64_t{1} << (power % 10), kUnits[power / 10]);
}

std::string CommunicatorTable(const TraceSummary& summary) {
  std::string table;
  const auto append = std::back_inserter(table);
  fmt::format_to(append, "\n{:>14}{:>12}  {}\n", "calls", "ranks", "communicator");
  const size_t shown = std::min(summary.communicators.size(), kCommunicatorsShown);
  for (size_t i = 0; i < shown; ++i) {
    const TraceSummary::Communicator& communicator = summary.communicators[i];
    fmt::format_to(append, "{:>14}{:>12}  {}\n", communicator.calls, communicator.ranks,
                   communicator.name);
  }
  if (shown < summary.communicators.size()) {
    fmt::format_to(append, "{:>28}and {} more (--json - has all)\n", "",
                   summary.communicators.size() - shown);
  }
  return table;
}

}  // namespace

TraceSummary SummarizeTrace(const Trace& trace) { return Summarizer(trace).Run(); }

std::string SummaryText(const Trace& trace, const TraceSummary& summary, uint32_t ranks_shown) {
  std::string text = fmt::format(
      "origin: {}\nranks: {}, with {} different programs\ncommunicators: {}\niterations: {}\n\n",
      summary.origin, summary.ranks, summary.programs, summary.communicators.size(),
      summary.iterations);
  const auto append = std::back_inserter(text);
  fmt::format_to(append, "{:<14}{:>12}{:>20}{:>16}{:>16}{:>18}\n", "kind", "calls", "bytes",
                 "smallest", "largest", "gaps before (us)");
  for (size_t i = 0; i < summary.kinds.size(); ++i) {
    const TraceSummary::Kind& kind = summary.kinds[i];
    if (kind.calls == 0) continue;
    fmt::format_to(append, "{:<14}{:>12}{:>20}{:>16}{:>16}{:>18}\n",
                   CollectiveKindName(static_cast<CollectiveKind>(i)), kind.calls, kind.bytes,
                   kind.largest == 0 ? 0 : kind.smallest, kind.largest, kind.gap_ps / 1'000'000);
  }
  text += "\nsize (at least)       calls\n";
  for (size_t power = 0; power < 64; ++power) {
    uint64_t calls = 0;
    for (const TraceSummary::Kind& kind : summary.kinds) calls += kind.by_size[power];
    if (calls > 0) fmt::format_to(append, "{:<16}{:>11}\n", SizeName(power), calls);
  }
  text += CommunicatorTable(summary);
  if (!summary.matrix.empty()) {
    fmt::format_to(append, "\nbytes sent, by sender (rows) and receiver, {} ranks each\n",
                   summary.ranks_per_block);
    for (const std::vector<uint64_t>& row : summary.matrix) {
      for (const uint64_t bytes : row) fmt::format_to(append, "{:>14}", bytes);
      text += "\n";
    }
  }
  text +=
      "\noperations (A AllReduce, G AllGather, R ReduceScatter, B Broadcast, D Reduce, X AllToAll, "
      "H Gather, S Scatter, s Send, r Recv, . Compute)\n";
  for (GlobalRank rank{0}; rank < std::min(ranks_shown, trace.rank_count); ++rank) {
    const auto& operations = trace.operations[rank];
    fmt::format_to(append, "rank {:<6}", rank);
    for (size_t i = 0; i < std::min(operations.size(), kTimelineLetters); ++i) {
      if (operations[i].begins_iteration) text += '|';
      text += kLetters[static_cast<size_t>(operations[i].kind)];
    }
    if (operations.size() > kTimelineLetters) {
      fmt::format_to(append, " and {} more", operations.size() - kTimelineLetters);
    }
    text += "\n";
  }
  return text;
}

std::string SummaryJson(const TraceSummary& summary) {
  rapidjson::StringBuffer buffer;
  rapidjson::PrettyWriter<rapidjson::StringBuffer> json(buffer);
  json.SetIndent(' ', 2);
  const auto number = [&](const char* key, uint64_t value) {
    json.Key(key);
    json.Uint64(value);
  };
  json.StartObject();
  json.Key("origin");
  json.String(summary.origin.c_str());
  number("ranks", summary.ranks);
  number("programs", summary.programs);
  number("communicators", summary.communicators.size());
  number("iterations", summary.iterations);
  json.Key("kinds");
  json.StartArray();
  for (size_t i = 0; i < summary.kinds.size(); ++i) {
    const TraceSummary::Kind& kind = summary.kinds[i];
    if (kind.calls == 0) continue;
    json.StartObject();
    json.Key("kind");
    json.String(std::string(CollectiveKindName(static_cast<CollectiveKind>(i))).c_str());
    number("calls", kind.calls);
    number("bytes", kind.bytes);
    number("smallest", kind.largest == 0 ? 0 : kind.smallest);
    number("largest", kind.largest);
    json.Key("gap_ps");
    const std::string gap_ps = fmt::format("{}", kind.gap_ps);
    json.RawValue(gap_ps.data(), gap_ps.size(), rapidjson::kNumberType);
    json.Key("by_size");
    json.StartArray();
    for (size_t power = 0; power < kind.by_size.size(); ++power) {
      if (kind.by_size[power] == 0) continue;
      json.StartObject();
      number("at_least", uint64_t{1} << power);
      number("calls", kind.by_size[power]);
      json.EndObject();
    }
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
  json.Key("by_communicator");
  json.StartArray();
  for (const TraceSummary::Communicator& communicator : summary.communicators) {
    json.StartObject();
    json.Key("name");
    json.String(communicator.name.c_str());
    number("ranks", communicator.ranks);
    number("calls", communicator.calls);
    json.EndObject();
  }
  json.EndArray();
  number("ranks_per_block", summary.ranks_per_block);
  json.Key("bytes_sent");
  json.StartArray();
  for (const std::vector<uint64_t>& row : summary.matrix) {
    json.StartArray();
    for (const uint64_t bytes : row) json.Uint64(bytes);
    json.EndArray();
  }
  json.EndArray();
  json.EndObject();
  return std::string(buffer.GetString(), buffer.GetSize()) + "\n";
}

}  // namespace railyard
