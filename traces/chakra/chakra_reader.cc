// SPDX-License-Identifier: GPL-2.0-only
#include "traces/chakra/chakra_reader.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "traces/chakra/chakra_graph.h"
#include "traces/chakra/chakra_groups.h"
#include "traces/chakra/chakra_json.h"
#include "traces/chakra/chakra_message.h"
#include "traces/dependencies/dependency_trace.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

constexpr uint64_t kMessageBytesMax = uint64_t{64} << 20;
constexpr uint32_t kRanksAssumed = 8;  // a server of today

// The varint with which `bytes` begin, and how many bytes it has; 0: none that ends there.
std::pair<uint64_t, size_t> VarintOf(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size() && i < 10; ++i) {
    value |= uint64_t{static_cast<unsigned char>(bytes[i] & 0x7f)} << (7 * i);
    if ((bytes[i] & 0x80) == 0) return {value, i + 1};
  }
  return {0, 0};
}

bool LooksLikeProtobuf(std::string_view head) {
  const auto [length, prefix] = VarintOf(head);
  if (prefix == 0 || length > kMessageBytesMax) return false;
  head.remove_prefix(prefix);
  const bool is_whole = length <= head.size();
  // The end of what was read may cut a field: then its length is beyond it.
  if (!MayBeChakraMetadata(head.substr(0, length))) return false;
  if (!is_whole) return true;
  head.remove_prefix(length);
  if (head.empty()) return length > 0;
  const auto [node_length, node_prefix] = VarintOf(head);
  if (node_prefix == 0 || node_length == 0) return false;
  head.remove_prefix(node_prefix);
  if (node_length > head.size()) return node_length <= kMessageBytesMax;
  ChakraNode node;
  return ParseChakraNode(head.substr(0, node_length), node) && node.type != 0;
}

bool LooksLikeJson(std::string_view head) {
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || head[first] != '{') return false;
  return head.find("\"workload_graph\"") != std::string_view::npos ||
         (head.find("_NODE\"") != std::string_view::npos &&
          head.find("\"attr\"") != std::string_view::npos);
}

bool LooksLikeChakra(std::string_view head) {
  return LooksLikeProtobuf(head) || LooksLikeJson(head) || LooksLikeChakraGroups(head);
}

// The number before the last suffix but those of compression: 3 of "dir/name.3.et.gz".
std::optional<uint32_t> RankOf(std::string_view path) {
  path.remove_prefix(path.find_last_of('/') + 1);
  for (const std::string_view suffix : {".gz", ".zst"}) {
    if (path.ends_with(suffix)) path.remove_suffix(suffix.size());
  }
  const size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  path = path.substr(0, dot);
  size_t begin = path.size();
  while (begin > 0 && path[begin - 1] >= '0' && path[begin - 1] <= '9') --begin;
  // "NAME.0.et" as Chakra's tools write it, and "rank0.et", "et_0.json", "0.et"; "resnet50.et" is
  // no rank's.
  const std::string_view name = path.substr(0, begin);
  if (!name.empty() && !name.ends_with("rank") &&
      std::isalpha(static_cast<unsigned char>(name.back())) != 0) {
    return std::nullopt;
  }
  uint32_t rank = 0;
  const auto [stop, error] = std::from_chars(path.data() + begin, path.data() + path.size(), rank);
  if (error != std::errc() || rank >= kTraceRanksMax) return std::nullopt;
  return rank;
}

class FilesReader {
 public:
  FilesReader(const ImportOptions& options, TraceImport& import, Diagnostics& diagnostics)
      : options_(options),
        import_(import),
        diagnostics_(diagnostics),
        graph_(import.report, diagnostics) {}

  bool Read(InputStream& stream) {
    const std::string_view head = stream.Peek(InputStream::kPeekBytesMax);
    if (LooksLikeChakraGroups(head)) return ReadChakraGroups(stream, groups_, diagnostics_);
    ImportedFile& file = import_.report.files.emplace_back();
    file.path = stream.name();
    const auto index = static_cast<uint32_t>(import_.report.files.size() - 1);
    const uint32_t rank =
        RankOf(stream.name()).value_or(static_cast<uint32_t>(graph_.rank_count()));
    if (graph_.HasRank(rank)) {
      diagnostics_.Error({.file = stream.name()}, "",
                         fmt::format("is a second file of rank {} (expected names that end in "
                                     "their ranks, NAME.0.et, NAME.1.et)",
                                     rank));
      return false;
    }
    graph_.BeginRank(rank, index);
    const bool is_read =
        (LooksLikeJson(head) ? ReadJson(stream) : ReadProtobuf(stream)) && graph_.EndRank();
    import_.report.files[index].bytes_read = stream.bytes_read();
    return is_read;
  }

  void Finish() {
    if (graph_.rank_count() == 0) return;
    ImportReport& report = import_.report;
    const uint32_t ranks = RankCount();
    if (ranks == 0) return;
    const auto missing = static_cast<uint32_t>(ranks - graph_.rank_count());
    if (missing > 0 && !CanReconstruct(missing)) return;
    report.assumed.push_back(
        "Sizes are in bytes (comm_size: of the buffer that a rank sends), durations in "
        "microseconds (duration_micros).");
    if (graph_.missing_dependencies() > 0) {
      report.assumed.push_back(fmt::format(
          "{} dependencies name nodes that are not in the file, or the node itself; they are "
          "passed over.",
          graph_.missing_dependencies()));
    }
    if (graph_.shortened_durations() > 0) {
      report.assumed.push_back(
          fmt::format("{} nodes have a duration_micros of more than 13 days; they take 13 days.",
                      graph_.shortened_durations()));
    }
    if (graph_.took_ctrl_deps()) {
      report.assumed.push_back("No node has data dependencies: control dependencies order them.");
    }
    const GlobalRank first{graph_.lowest_rank()};
    std::vector<bool> has_file(ranks, false);
    for (uint32_t rank = 0; rank < ranks; ++rank) has_file[rank] = graph_.HasRank(rank);
    DependencyGraph graph = graph_.Take(ranks, groups_);
    graph.repeats_another = has_file;
    graph.repeats_another.flip();
    if (graph_.took_groups_from_one()) {
      report.assumed.push_back(
          "A group without a list of its ranks has all ranks of the job: there is the file of "
          "one.");
    }
    if (graph_.took_groups_from_use()) {
      report.assumed.push_back(
          "A group without a list of its ranks has those whose files call on it.");
    }
    if (options_.ignore_times) {
      for (std::vector<GraphOperation>& rank : graph.ranks) {
        for (GraphOperation& operation : rank) operation.duration_ps = 0;
      }
    }
    import_.trace = TraceOfGraph(std::move(graph), report, diagnostics_);
    if (import_.trace && missing > 0) Reconstruct(*import_.trace, has_file, first);
  }

 private:
  uint32_t RankCount() {
    const uint32_t named = graph_.highest_rank() + 1;
    uint32_t in_groups = 0;
    for (const auto& [name, ranks] : groups_) {
      for (const uint32_t rank : ranks) in_groups = std::max(in_groups, rank + 1);
    }
    const uint32_t least = std::max(named, in_groups);
    if (options_.ranks) {
      if (*options_.ranks >= least) return *options_.ranks;
      diagnostics_.Error({.file = "--ranks"}, "",
                         fmt::format("{} are fewer than the files name (expected {} or more)",
                                     *options_.ranks, least));
      return 0;
    }
    // One file alone is the program of all ranks, whatever the rank in its name; with messages or
    // groups it is that of its rank.
    const bool is_alone = graph_.rank_count() == 1 && groups_.empty() && !graph_.has_messages();
    if (!is_alone) return least;
    const uint32_t ranks = std::max(least, kRanksAssumed);
    import_.report.assumed.push_back(fmt::format(
        "The job has {} ranks, which the file of one does not say (--ranks says another number).",
        ranks));
    return ranks;
  }

  bool CanReconstruct(uint32_t missing) {
    std::string why;
    if (options_.missing_ranks == MissingRanks::kRefuse) {
      why = "expected the file of every rank, or --missing-ranks reconstruct";
    } else if (graph_.has_messages()) {
      why = "expected the file of every rank: whom ranks send to differs from rank to rank";
    } else {
      return true;
    }
    diagnostics_.Error({.file = import_.report.files.front().path}, "",
                       fmt::format("{} ranks have no file ({})", missing, why));
    return false;
  }

  // Ranks without a file run the program of the lowest that has one.
  void Reconstruct(Trace& trace, const std::vector<bool>& has_file, GlobalRank first) {
    const uint32_t program = trace.operations.program_of_rank(first);
    uint64_t calls = 0;
    for (const TraceOperation& operation : trace.operations.program(program)) {
      calls += operation.kind == CollectiveKind::kCompute ? 0 : 1;
    }
    ImportReport& report = import_.report;
    for (GlobalRank rank{0}; rank < trace.rank_count; ++rank) {
      if (has_file[rank]) continue;
      trace.operations.SetProgram(rank, program);
      ++report.ranks_reconstructed;
      report.calls_reconstructed += calls;
    }
    report.reconstructed.push_back(fmt::format(
        "{} ranks without a file run the program of rank {}.", report.ranks_reconstructed, first));
    if (!CheckTrace(trace, trace.source_files.front(), diagnostics_)) import_.trace.reset();
  }

  bool Error(const InputStream& stream, const std::string& what) {
    diagnostics_.Error({.file = stream.name()}, "",
                       fmt::format("byte {}: {}", stream.bytes_read(), what));
    return false;
  }

  bool ReadJson(InputStream& stream) {
    bool is_right = true;
    const auto add = [&](const ChakraNode& node) {
      if (is_right) is_right = graph_.Add(node);
    };
    return ReadChakraJson(stream, add, diagnostics_) && is_right;
  }

  // Messages with their length before each, GlobalMetadata first.
  bool ReadProtobuf(InputStream& stream) {
    std::string message;
    ChakraNode node;
    for (bool is_first = true;; is_first = false) {
      const std::string_view next = stream.Peek(10);
      if (next.empty()) return true;
      const auto [length, prefix] = VarintOf(next);
      if (prefix == 0 || length > kMessageBytesMax) {
        return Error(stream, fmt::format("no length of a message (expected one up to {})",
                                         kMessageBytesMax));
      }
      stream.Skip(prefix);
      if (length <= InputStream::kPeekBytesMax) {
        const std::string_view whole = stream.Peek(length).substr(0, length);
        if (whole.size() == length) {
          stream.Skip(length);
          if (!AddMessage(stream, whole, is_first, node)) return false;
          continue;
        }
      }
      // The buffer grows with the bytes that are read rather than with the stated length.
      message.clear();
      while (message.size() < length) {
        const std::string_view more = stream.Peek();
        if (more.empty()) {
          return Error(stream, fmt::format("the file ends within a message of {} bytes", length));
        }
        const size_t count = std::min<size_t>(more.size(), length - message.size());
        message.append(more.substr(0, count));
        stream.Skip(count);
      }
      if (!AddMessage(stream, message, is_first, node)) return false;
    }
  }

  // `node` keeps its memory from message to message.
  bool AddMessage(const InputStream& stream, std::string_view message, bool is_first,
                  ChakraNode& node) {
    if (is_first) {
      return MayBeChakraMetadata(message) ||
             Error(stream, "the first message is none of GlobalMetadata");
    }
    node.Clear();
    if (!ParseChakraNode(message, node)) {
      return Error(stream, "the message that ends here is no Node of Chakra");
    }
    return graph_.Add(node);
  }

  const ImportOptions& options_;
  TraceImport& import_;
  Diagnostics& diagnostics_;
  ChakraGraph graph_;
  ChakraGroups groups_;
};

TraceImport ReadFiles(const InputFiles& files, const ImportOptions& options,
                      Diagnostics& diagnostics) {
  TraceImport import;
  const int errors_before = diagnostics.error_count();
  FilesReader reader(options, import, diagnostics);
  files.ForEach([&](InputStream& stream) { return reader.Read(stream); }, diagnostics);
  if (diagnostics.error_count() == errors_before) {
    reader.Finish();
  }
  if (diagnostics.error_count() > errors_before) import.report.DropRemaining();
  return import;
}

}  // namespace

constinit const TraceReader kChakraReader = {
    .format = "chakra",
    .description =
        "execution traces of MLCommons Chakra (ASTRA-sim), a file a rank, and "
        "communicator groups; written by trace export",
    .recognizes = LooksLikeChakra,
    .read = ReadFiles,
    .takes_rank_count = true};

}  // namespace railyard
