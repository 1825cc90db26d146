// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/load/program_trace.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/scenario/schema/scenario.pb.h"
#include "simulator/units/mix64.h"
#include "simulator/units/units.h"
#include "topologies/formats/traffic_loader.h"
#include "traces/trace/trace_check.h"
#include "workloads/collectives/collective_sizes.h"
#include "workloads/collectives/hierarchical_exchange.h"

namespace railyard {

namespace {

using protos::ProgramCollective;

constexpr Datatype kElement = Datatype::kFloat32;
constexpr int64_t kComputeMaxPs = 3600 * kPsPerSecond;

// One entry of the program, repeated.
struct Entry {
  TraceOperation operation;
  uint64_t repeat = 1;
  uint32_t group_ranks = 0;             // of the groups that make it, each for itself
  uint32_t stride = 1;                  // between the ranks of a group
  std::vector<uint32_t> destinations;   // of kSend: by rank
  uint32_t hierarchical_groups_of = 0;  // of kAllToAll in two steps; 0: in one
  bool is_all_to_all_v = false;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> pair_bytes;  // of an AllToAllv

  // Made of a group of Sends and Recvs, not of one call.
  bool IsExchange() const { return is_all_to_all_v || hierarchical_groups_of > 0; }
  // From one rank to another, in elements.
  uint64_t CountOf(uint32_t from, uint32_t to) const {
    if (!is_all_to_all_v) return operation.count;
    const auto found = pair_bytes.find({from, to});
    return found == pair_bytes.end() ? 0 : found->second;
  }
};

// Returns the rank to which each rank sends: one cycle over all ranks, drawn evenly among such
// cycles (S. Sattolo, "An algorithm to generate a random cyclic permutation", 1986), so that none
// sends to itself.
std::vector<uint32_t> DrawCycle(uint32_t rank_count, uint64_t seed) {
  std::vector<uint32_t> destinations(rank_count);
  std::iota(destinations.begin(), destinations.end(), 0u);
  for (uint32_t i = rank_count - 1; i > 0; --i) {
    std::swap(destinations[i], destinations[ScaleTo(Mix64(seed ^ Mix64(i)), i)]);
  }
  return destinations;
}

CollectiveKind KindOf(ProgramCollective::Kind kind) {
  switch (kind) {
    case ProgramCollective::ALL_GATHER:
      return CollectiveKind::kAllGather;
    case ProgramCollective::REDUCE_SCATTER:
      return CollectiveKind::kReduceScatter;
    case ProgramCollective::BROADCAST:
      return CollectiveKind::kBroadcast;
    case ProgramCollective::REDUCE:
      return CollectiveKind::kReduce;
    case ProgramCollective::ALL_TO_ALL:
    case ProgramCollective::ALL_TO_ALL_V:
      return CollectiveKind::kAllToAll;
    case ProgramCollective::GATHER:
      return CollectiveKind::kGather;
    case ProgramCollective::SCATTER:
      return CollectiveKind::kScatter;
    case ProgramCollective::SEND_RECV:
    case ProgramCollective::PERMUTATION:
      return CollectiveKind::kSend;
    default:
      return CollectiveKind::kAllReduce;
  }
}

class ProgramLoader {
 public:
  ProgramLoader(const ProtoCursor& program, uint32_t rank_count, uint64_t seed,
                Diagnostics& diagnostics)
      : program_(program), rank_count_(rank_count), seed_(seed), diagnostics_(diagnostics) {}

  std::optional<Trace> Load() {
    const int errors_before = diagnostics_.error_count();
    if (program_.Size("collectives") == 0) {
      program_.Missing(diagnostics_, "collectives",
                       R"(e.g. collectives { kind: ALL_REDUCE bytes: "64MiB" })");
    }
    std::vector<Entry> entries;
    for (int i = 0; i < program_.Size("collectives"); ++i) {
      entries.push_back(LoadEntry(program_.Child("collectives", i)));
    }
    if (diagnostics_.error_count() > errors_before || rank_count_ == 0 ||
        program_.IsDoubtfulSelf()) {
      return std::nullopt;
    }
    uint64_t calls = 0;
    for (const Entry& entry : entries) calls += entry.repeat * CallsOf(entry);
    const uint64_t rounds = program_.Number(diagnostics_, "repeat", 1, 1, kProgramCallsMax);
    calls = calls > kProgramCallsMax ? calls : calls * rounds;
    if (calls > kProgramCallsMax) {
      program_.Error(diagnostics_, "collectives",
                     fmt::format("{} calls over {} ranks (expected at most {})", calls, rank_count_,
                                 kProgramCallsMax));
      return std::nullopt;
    }
    return MakeTrace(entries, rounds);
  }

 private:
  Entry LoadEntry(const ProtoCursor& cursor) {
    Entry entry;
    TraceOperation& operation = entry.operation;
    const auto& message = static_cast<const ProgramCollective&>(cursor.message());
    if (cursor.Has("kind")) {
      operation.kind = KindOf(message.kind());
    } else {
      cursor.Missing(diagnostics_, "kind", "e.g. ALL_REDUCE");
    }
    operation.datatype = kElement;
    entry.is_all_to_all_v = message.kind() == ProgramCollective::ALL_TO_ALL_V;
    LoadGroups(cursor, entry);
    if (entry.is_all_to_all_v) {
      operation.datatype = Datatype::kUint8;
      LoadPairs(cursor, entry);
    } else {
      operation.count = LoadCount(cursor, operation.kind, entry.group_ranks);
      if (cursor.Has("pair_bytes")) {
        cursor.Error(diagnostics_, "pair_bytes",
                     "means nothing for this kind (expected kind: ALL_TO_ALL_V)");
      }
    }
    operation.compute_before_ps = cursor.DurationPs(diagnostics_, "compute_before", 0);
    if (operation.compute_before_ps > kComputeMaxPs) {
      cursor.Error(diagnostics_, "compute_before",
                   fmt::format("{} is out of range (expected at most 1 h)",
                               Quote(cursor.Text("compute_before", ""))));
    }
    if (cursor.Has("root") && cursor.Has("kind") && !cursor.IsDoubtful("kind") &&
        !HasRoot(operation.kind)) {
      cursor.Error(diagnostics_, "root",
                   "means nothing for this kind (expected BROADCAST, REDUCE, GATHER or SCATTER)");
    } else {
      operation.root = static_cast<uint32_t>(
          cursor.Number(diagnostics_, "root", 0, 0,
                        entry.group_ranks > 0 ? entry.group_ranks - 1 : kTraceRanksMax));
    }
    if (operation.kind == CollectiveKind::kSend && rank_count_ == 1) {
      cursor.Error(diagnostics_, "kind", "needs two GPUs or more (the fabric has one)");
    } else if (operation.kind == CollectiveKind::kSend && rank_count_ > 1) {
      entry.destinations = DestinationsOf(message.kind());
    }
    entry.repeat = cursor.Number(diagnostics_, "repeat", 1, 1, kProgramCallsMax);
    LoadHierarchy(cursor, entry);
    LoadInPlace(cursor, entry);
    LoadLossTolerance(cursor, operation);
    return entry;
  }

  // Loads the communicators of an entry's calls.
  void LoadGroups(const ProtoCursor& cursor, Entry& entry) {
    entry.group_ranks = rank_count_;
    if (cursor.Has("groups_of") && cursor.Has("stride")) {
      cursor.Error(diagnostics_, "stride", "stands beside groups_of (expected one of them)");
      return;
    }
    const char* const field = cursor.Has("stride") ? "stride" : "groups_of";
    if (!cursor.Has(field)) return;
    const auto value =
        static_cast<uint32_t>(cursor.Number(diagnostics_, field, 1, 1, kTraceRanksMax));
    if (rank_count_ == 0) return;
    if (rank_count_ % value != 0) {
      cursor.Error(
          diagnostics_, field,
          fmt::format("{} does not divide the {} ranks (expected a divisor)", value, rank_count_));
      return;
    }
    const auto& message = static_cast<const ProgramCollective&>(cursor.message());
    if (KindOf(message.kind()) == CollectiveKind::kSend || entry.is_all_to_all_v) {
      cursor.Error(diagnostics_, field, "means nothing for this kind (expected it with others)");
      return;
    }
    entry.stride = cursor.Has("stride") ? value : 1;
    entry.group_ranks = cursor.Has("stride") ? rank_count_ / value : value;
  }

  void LoadPairs(const ProtoCursor& cursor, Entry& entry) {
    if (cursor.Has("bytes")) {
      cursor.Error(diagnostics_, "bytes",
                   "means nothing for this kind, of unequal parts (expected pair_bytes)");
    }
    if (!cursor.Has("pair_bytes")) {
      cursor.Missing(diagnostics_, "pair_bytes", "a CSV file, e.g. a run's \"pairs.csv\"");
      return;
    }
    const std::string path = cursor.FilePath("pair_bytes");
    if (const std::string why = WhyNotAFile(path); !why.empty()) {
      cursor.Error(diagnostics_, "pair_bytes", fmt::format("{}: {}", Quote(path), why));
      return;
    }
    if (rank_count_ == 0) return;
    const auto pairs = LoadTraffic(path, rank_count_, diagnostics_);
    if (!pairs) return;
    for (const GpuTraffic& pair : *pairs) {
      if (pair.bytes == 0) continue;
      uint64_t& bytes = entry.pair_bytes[{pair.source, pair.destination}];
      bytes += pair.bytes;
      if (bytes > kOperationBytesMax) {
        cursor.Error(
            diagnostics_, "pair_bytes",
            fmt::format("{}: {} bytes from rank {} to rank {} (expected at most {})", Quote(path),
                        bytes, pair.source, pair.destination, FormatBytes(kOperationBytesMax)));
        return;
      }
    }
    if (entry.pair_bytes.empty()) {
      cursor.Error(
          diagnostics_, "pair_bytes",
          fmt::format("{}: nobody sends anything (expected payload_bytes above 0)", Quote(path)));
    }
  }

  void LoadInPlace(const ProtoCursor& cursor, Entry& entry) {
    const auto& message = static_cast<const ProgramCollective&>(cursor.message());
    if (!message.in_place()) return;
    if (cursor.Has("kind") && (!CopiesWithinRank(entry.operation.kind) || entry.IsExchange())) {
      cursor.Error(diagnostics_, "in_place",
                   "means nothing for this kind (expected ALL_TO_ALL in one step, GATHER or "
                   "SCATTER)");
      return;
    }
    entry.operation.in_place = true;
  }

  void LoadLossTolerance(const ProtoCursor& cursor, TraceOperation& operation) {
    if (!cursor.Has("loss_tolerance")) return;
    const bool is_of_sends =
        operation.kind == CollectiveKind::kSend || operation.kind == CollectiveKind::kAllToAll ||
        operation.kind == CollectiveKind::kGather || operation.kind == CollectiveKind::kScatter;
    if (cursor.Has("kind") && !is_of_sends) {
      cursor.Error(
          diagnostics_, "loss_tolerance",
          "means nothing for this kind, which needs every byte (expected ALL_TO_ALL, ALL_TO_ALL_V, "
          "GATHER, SCATTER, SEND_RECV or PERMUTATION)");
      return;
    }
    const double share = static_cast<const ProgramCollective&>(cursor.message()).loss_tolerance();
    const std::optional<uint32_t> ppm = LossTolerancePpm(share);
    if (!ppm) {
      cursor.Error(diagnostics_, "loss_tolerance", OutOfLossTolerance(share));
      return;
    }
    operation.loss_tolerance_ppm = *ppm;
  }

  // Over all ranks; an exchange is a call for each Send and Recv.
  uint64_t CallsOf(const Entry& entry) const {
    const uint64_t group_ranks = entry.hierarchical_groups_of;
    if (group_ranks > 0)
      return 2 * uint64_t{rank_count_} * (group_ranks - 1 + rank_count_ / group_ranks - 1);
    return entry.is_all_to_all_v ? 2 * entry.pair_bytes.size() : rank_count_;
  }

  void LoadHierarchy(const ProtoCursor& cursor, Entry& entry) {
    constexpr const char* kField = "hierarchical_groups_of";
    if (!cursor.Has(kField)) return;
    if (cursor.Has("kind") && entry.operation.kind != CollectiveKind::kAllToAll) {
      cursor.Error(diagnostics_, kField,
                   "means nothing for this kind (expected ALL_TO_ALL or ALL_TO_ALL_V)");
      return;
    }
    if (cursor.Has("groups_of") || cursor.Has("stride")) {
      cursor.Error(diagnostics_, kField,
                   "stands beside groups_of or stride (expected an AllToAll over all ranks)");
      return;
    }
    const auto value =
        static_cast<uint32_t>(cursor.Number(diagnostics_, kField, 0, 1, kTraceRanksMax));
    if (rank_count_ == 0 || value == 0) return;
    if (value == 1 || value >= rank_count_ || rank_count_ % value != 0) {
      cursor.Error(diagnostics_, kField,
                   fmt::format("{} does not divide the {} ranks into several groups of several "
                               "(expected a divisor between, e.g. a server's GPUs)",
                               value, rank_count_));
      return;
    }
    entry.hierarchical_groups_of = value;
  }

  std::vector<uint32_t> DestinationsOf(ProgramCollective::Kind kind) const {
    if (kind == ProgramCollective::PERMUTATION) return DrawCycle(rank_count_, seed_);
    std::vector<uint32_t> destinations(rank_count_);
    for (GlobalRank rank{0}; rank < rank_count_; ++rank) {
      destinations[rank] = (rank + 1) % rank_count_;
    }
    return destinations;
  }

  // The API's count for nccl-tests' size.
  uint64_t LoadCount(const ProtoCursor& cursor, CollectiveKind kind, uint32_t ranks) {
    if (!cursor.Has("bytes")) {
      cursor.Missing(diagnostics_, "bytes", kExpectedBytes);
      return 0;
    }
    const int errors_before = diagnostics_.error_count();
    const uint64_t bytes = cursor.Bytes(diagnostics_, "bytes", 0);
    if (diagnostics_.error_count() > errors_before) return 0;
    if (bytes == 0 || bytes > kOperationBytesMax) {
      cursor.Error(diagnostics_, "bytes",
                   fmt::format("{} is out of range (expected 4 B to {})",
                               Quote(cursor.Text("bytes", "")), FormatBytes(kOperationBytesMax)));
      return 0;
    }
    const bool has_blocks = IsMadeOfBlocks(kind);
    if (cursor.IsDoubtful("kind") || (has_blocks && ranks == 0)) return 0;
    const uint64_t grain_bytes =
        DatatypeBytes(kElement) * (has_blocks ? uint64_t{ranks} : uint64_t{1});
    if (bytes % grain_bytes != 0) {
      cursor.Error(
          diagnostics_, "bytes",
          fmt::format(
              "{} bytes are not a whole number of {} elements{} (expected a multiple of {})", bytes,
              DatatypeName(kElement), has_blocks ? fmt::format(" for each of {} ranks", ranks) : "",
              grain_bytes));
    }
    return bytes / grain_bytes;
  }

  // The communicators of an entry's groups: the number of the first; they follow one another.
  uint32_t CommunicatorsOf(const Entry& entry, Trace& trace) {
    if (entry.group_ranks == rank_count_) return 0;
    const auto [known, is_new] = communicators_.try_emplace(
        {entry.group_ranks, entry.stride}, static_cast<uint32_t>(trace.communicators.size()));
    for (uint32_t group = 0; is_new && group < rank_count_ / entry.group_ranks; ++group) {
      const bool is_strided = entry.stride > 1;
      TraceCommunicator communicator{
          .name = fmt::format("{}{}/{}", is_strided ? "stride" : "of",
                              is_strided ? entry.stride : entry.group_ranks, group),
          .ranks = {}};
      for (uint32_t i = 0; i < entry.group_ranks; ++i) {
        communicator.ranks.emplace_back(is_strided ? group + i * entry.stride
                                                   : group * entry.group_ranks + i);
      }
      trace.communicators.push_back(std::move(communicator));
    }
    return known->second;
  }

  Trace MakeTrace(const std::vector<Entry>& entries, uint64_t rounds) {
    Trace trace;
    trace.origin = "program";
    trace.rank_count = rank_count_;
    TraceCommunicator world{.name = "world", .ranks = std::vector<GlobalRank>(rank_count_)};
    std::iota(world.ranks.begin(), world.ranks.end(), GlobalRank{0});
    trace.communicators.push_back(std::move(world));
    trace.operations.resize(rank_count_);
    const bool is_shared = std::all_of(entries.begin(), entries.end(), [this](const Entry& entry) {
      return entry.destinations.empty() && entry.group_ranks == rank_count_ && !entry.IsExchange();
    });
    if (is_shared) {
      for (GlobalRank rank{1}; rank < rank_count_; ++rank) {
        trace.operations.SetProgram(rank, trace.operations.program_of_rank(GlobalRank{0}));
      }
    }
    const uint32_t programs = is_shared ? 1 : rank_count_;
    for (uint64_t round = 0; round < rounds; ++round) {
      for (const Entry& entry : entries) Append(entry, programs, trace);
    }
    for (GlobalRank rank{0}; rank < programs; ++rank) {
      std::vector<TraceOperation>& calls = trace.operations[rank];
      const size_t each = calls.size() / rounds;
      for (size_t i = each; i < calls.size(); i += each) calls[i].begins_iteration = true;
    }
    return trace;
  }

  void Append(const Entry& entry, uint32_t programs, Trace& trace) {
    if (!entry.destinations.empty()) {
      AppendSends(entry, trace);
      return;
    }
    if (entry.IsExchange()) {
      for (uint64_t i = 0; i < entry.repeat; ++i) AppendExchange(entry, trace);
      return;
    }
    const uint32_t first = CommunicatorsOf(entry, trace);
    for (GlobalRank rank{0}; rank < programs; ++rank) {
      TraceOperation call = entry.operation;
      call.communicator = first;
      if (entry.group_ranks != rank_count_) {
        call.communicator += entry.stride > 1 ? rank % entry.stride : rank / entry.group_ranks;
      }
      std::vector<TraceOperation>& calls = trace.operations[rank];
      calls.insert(calls.end(), static_cast<size_t>(entry.repeat), call);
    }
  }

  void AppendExchange(const Entry& entry, Trace& trace) {
    const auto whole = [&](uint32_t from, uint32_t to) { return entry.CountOf(from, to); };
    if (entry.hierarchical_groups_of == 0) {
      AppendAllToAllV(entry.operation, whole, trace);
      return;
    }
    const HierarchicalExchange exchange{rank_count_, entry.hierarchical_groups_of};
    TraceOperation operation = entry.operation;
    for (const ExchangeStep step : {ExchangeStep::kWithinGroups, ExchangeStep::kBetweenGroups}) {
      const auto count = [&](uint32_t from, uint32_t to) {
        return exchange.Units(step, from, to, whole);
      };
      AppendAllToAllV(operation, count, trace);
      operation.compute_before_ps = 0;
    }
  }

  // `count(from, to)`: elements that one rank sends another. A rank computes once, before the first
  // of its calls; one without calls computes all the same.
  template <typename Count>
  void AppendAllToAllV(const TraceOperation& operation, const Count& count, Trace& trace) {
    ++all_to_alls_;
    for (GlobalRank rank{0}; rank < rank_count_; ++rank) {
      std::vector<TraceOperation>& calls = trace.operations[rank];
      const size_t first = calls.size();
      TraceOperation call = operation;
      call.group = static_cast<uint32_t>(first) + 1;
      call.all_to_all = all_to_alls_;
      for (call.peer = 0; call.peer < rank_count_; ++call.peer) {
        for (const bool is_send : {true, false}) {
          call.kind = is_send ? CollectiveKind::kSend : CollectiveKind::kRecv;
          call.count = is_send ? count(rank, call.peer) : count(call.peer, rank);
          if (call.count == 0) continue;
          calls.push_back(call);
          call.compute_before_ps = 0;
        }
      }
      if (calls.size() == first && operation.compute_before_ps > 0) {
        calls.push_back(
            {.kind = CollectiveKind::kCompute, .compute_before_ps = operation.compute_before_ps});
      }
    }
  }

  // Each rank's Send and Recv in one group, which computes once.
  void AppendSends(const Entry& entry, Trace& trace) const {
    std::vector<uint32_t> sources(rank_count_);
    for (GlobalRank rank{0}; rank < rank_count_; ++rank) {
      sources[entry.destinations[rank]] = rank;
    }
    for (GlobalRank rank{0}; rank < rank_count_; ++rank) {
      std::vector<TraceOperation>& calls = trace.operations[rank];
      for (uint64_t i = 0; i < entry.repeat; ++i) {
        TraceOperation call = entry.operation;
        // Larger than any number before it.
        call.group = static_cast<uint32_t>(calls.size()) + 1;
        call.peer = entry.destinations[rank];
        calls.push_back(call);
        call.kind = CollectiveKind::kRecv;
        call.compute_before_ps = 0;
        call.peer = sources[rank];
        calls.push_back(call);
      }
    }
  }

  const ProtoCursor& program_;
  uint32_t rank_count_;
  uint64_t seed_;
  Diagnostics& diagnostics_;
  uint32_t all_to_alls_ = 0;  // AllToAllvs so far
  // By ranks in a group and stride: the first of its communicators.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> communicators_;
};

}  // namespace

std::optional<Trace> MakeProgramTrace(const ProtoCursor& program, uint32_t rank_count,
                                      uint64_t seed, Diagnostics& diagnostics) {
  return ProgramLoader(program, rank_count, seed, diagnostics).Load();
}

}  // namespace railyard
