// SPDX-License-Identifier: GPL-2.0-only
#include "traces/transform/trace_retarget.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

struct Place {
  uint32_t tensor = 0;
  uint32_t data = 0;
  uint32_t stage = 0;
};

Place PlaceOf(const TraceDivision& division, uint32_t rank) {
  return {.tensor = rank % division.tensor,
          .data = rank / division.tensor % division.data,
          .stage = rank / division.tensor / division.data};
}

uint32_t RankOf(const TraceDivision& division, const Place& place) {
  return place.tensor + division.tensor * (place.data + division.data * place.stage);
}

enum class GroupKind { kTensor, kData, kStages, kAll, kOther };

bool IsDivided(CollectiveKind kind) {
  return kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter ||
         kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kGather ||
         kind == CollectiveKind::kScatter;
}

class TraceRetargeter {
 public:
  TraceRetargeter(const Trace& trace, const TraceDivision& from, const TraceDivision& to,
                  const std::string& file, Diagnostics& diagnostics)
      : trace_(trace), from_(from), to_(to), file_(file), diagnostics_(diagnostics) {}

  std::optional<Trace> Run() {
    if (!CheckDivisions() || !KnowGroups() || !CheckAlike()) return std::nullopt;
    result_.origin = trace_.origin;
    result_.nccl_version = trace_.nccl_version;
    result_.source_files = trace_.source_files;
    result_.rank_count = static_cast<uint32_t>(to_.ranks());
    result_.operations.resize(result_.rank_count);
    for (uint32_t rank = 0; rank < result_.rank_count; ++rank) {
      if (!AddRank(rank)) return std::nullopt;
    }
    if (!CheckTrace(result_, file_, diagnostics_)) return std::nullopt;
    return std::move(result_);
  }

 private:
  bool Error(const std::string& field, const std::string& what) {
    diagnostics_.Error({.file = file_}, field, what);
    return false;
  }

  bool CheckDivisions() {
    if (from_.ranks() != trace_.rank_count) {
      return Error("",
                   fmt::format("{} ranks are not {} tensor x {} data x {} pipeline parallel ones "
                               "(expected a product of {})",
                               trace_.rank_count, from_.tensor, from_.data, from_.pipeline,
                               trace_.rank_count));
    }
    if (to_.ranks() == 0 || to_.ranks() > kTraceRanksMax) {
      return Error("", fmt::format("{} ranks are out of range (expected 1 to {})", to_.ranks(),
                                   kTraceRanksMax));
    }
    if (from_.pipeline != to_.pipeline) {
      return Error("pipeline",
                   fmt::format("{} stages cannot become {}: which layers a stage has is not in the "
                               "trace (expected the same number)",
                               from_.pipeline, to_.pipeline));
    }
    return true;
  }

  GroupKind KindOf(const std::vector<uint32_t>& ranks) const {
    const Place first = PlaceOf(from_, ranks.front());
    const auto is = [&](GroupKind kind, uint32_t size) {
      if (ranks.size() != size) return false;
      for (uint32_t i = 0; i < size; ++i) {
        Place place = first;
        if (kind == GroupKind::kTensor) place.tensor = i;
        if (kind == GroupKind::kData) place.data = i;
        if (kind == GroupKind::kStages) place.stage = i;
        if (kind == GroupKind::kAll) place = PlaceOf(from_, i);
        if (ranks[i] != RankOf(from_, place)) return false;
      }
      return true;
    };
    // With one degree alone a group is of all ranks as well: it counts as that degree's.
    if (from_.data > 1 && is(GroupKind::kData, from_.data)) return GroupKind::kData;
    if (from_.tensor > 1 && is(GroupKind::kTensor, from_.tensor)) return GroupKind::kTensor;
    if (from_.pipeline > 1 && is(GroupKind::kStages, from_.pipeline)) return GroupKind::kStages;
    if (is(GroupKind::kAll, static_cast<uint32_t>(from_.ranks()))) return GroupKind::kAll;
    return GroupKind::kOther;
  }

  // Two ranks of two stages at the same place may have a communicator of their own.
  bool JoinsStages(const std::vector<uint32_t>& ranks) const {
    const Place first = PlaceOf(from_, ranks.front());
    return std::all_of(ranks.begin(), ranks.end(), [&](uint32_t rank) {
      const Place place = PlaceOf(from_, rank);
      return place.tensor == first.tensor && place.data == first.data;
    });
  }

  bool KnowGroups() {
    for (const TraceCommunicator& communicator : trace_.communicators) {
      GroupKind kind = KindOf(communicator.ranks);
      if (kind == GroupKind::kOther && JoinsStages(communicator.ranks)) kind = GroupKind::kStages;
      if (kind == GroupKind::kOther) {
        return Error("communicators",
                     fmt::format("{} of {} ranks is no group of tensor or data parallel ranks or "
                                 "stages, so that no rule says what becomes of it (expected those "
                                 "of {} tensor x {} data x {} pipeline parallel ranks)",
                                 Quote(communicator.name), communicator.ranks.size(), from_.tensor,
                                 from_.data, from_.pipeline));
      }
      kinds_.push_back(kind);
    }
    return true;
  }

  // Ranks that differ in a degree that changes make the same calls.
  bool CheckAlike() {
    for (uint32_t rank = 0; rank < trace_.rank_count; ++rank) {
      Place place = PlaceOf(from_, rank);
      if (from_.data != to_.data) place.data = 0;
      if (from_.tensor != to_.tensor) place.tensor = 0;
      const uint32_t like = RankOf(from_, place);
      if (like == rank || IsAlike(like, rank)) continue;
      return Error(fmt::format("ranks[{}]", rank),
                   fmt::format("its calls differ from those of rank {}, so that the program of a "
                               "new rank is not known (expected equal ones)",
                               like));
    }
    return true;
  }

  bool IsAlike(uint32_t a, uint32_t b) const {
    const auto& x = trace_.operations[a];
    const auto& y = trace_.operations[b];
    if (x.size() != y.size()) return false;
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i].kind != y[i].kind || x[i].count != y[i].count || x[i].datatype != y[i].datatype ||
          x[i].root != y[i].root || x[i].peer != y[i].peer || x[i].stream != y[i].stream ||
          x[i].after != y[i].after) {
        return false;
      }
      if (x[i].kind == CollectiveKind::kCompute) continue;
      if (kinds_[trace_.CommunicatorOf(a, x[i].communicator)] !=
          kinds_[trace_.CommunicatorOf(b, y[i].communicator)]) {
        return false;
      }
    }
    return true;
  }

  bool AddRank(uint32_t rank) {
    const Place place = PlaceOf(to_, rank);
    const uint32_t source = RankOf(from_, {.tensor = place.tensor % from_.tensor,
                                           .data = place.data % from_.data,
                                           .stage = place.stage});
    std::vector<TraceOperation> operations = trace_.operations[source];
    for (size_t i = 0; i < operations.size(); ++i) {
      TraceOperation& operation = operations[i];
      operation.measured_ps = 0;  // of another size or number of ranks
      if (operation.kind == CollectiveKind::kCompute) continue;
      const uint32_t old = trace_.CommunicatorOf(source, operation.communicator);
      const GroupKind kind = kinds_[old];
      const bool is_message =
          operation.kind == CollectiveKind::kSend || operation.kind == CollectiveKind::kRecv;
      if (is_message && kind != GroupKind::kStages) {
        return Error(fmt::format("ranks[{}].operations[{}]", source, i),
                     "is a message within a stage, whose peers would be others (expected messages "
                     "between stages)");
      }
      operation.communicator = CommunicatorOf(kind, old, place);
      const auto size =
          static_cast<uint32_t>(result_.communicators[operation.communicator].ranks.size());
      if (!is_message) Resize(kind, trace_.communicators[old].ranks.size(), size, operation);
    }
    result_.operations[rank] = std::move(operations);
    return true;
  }

  void Resize(GroupKind kind, uint64_t old_size, uint64_t size, TraceOperation& operation) const {
    // 128 bits: counts are any that a trace may have.
    unsigned __int128 count = operation.count;
    uint64_t divisor = 1;
    if (IsDivided(operation.kind)) {
      count *= old_size;
      divisor *= size;
    }
    if (kind == GroupKind::kData || kind == GroupKind::kAll) {
      count *= from_.tensor;
      divisor *= to_.tensor;
    }
    operation.count = static_cast<uint64_t>((count + divisor - 1) / divisor);
    if (operation.root >= size) operation.root = 0;
  }

  uint32_t CommunicatorOf(GroupKind kind, uint32_t old, const Place& place) {
    std::vector<uint32_t> ranks;
    switch (kind) {
      case GroupKind::kTensor:
        for (uint32_t i = 0; i < to_.tensor; ++i) {
          ranks.push_back(RankOf(to_, {i, place.data, place.stage}));
        }
        break;
      case GroupKind::kData:
        for (uint32_t i = 0; i < to_.data; ++i) {
          ranks.push_back(RankOf(to_, {place.tensor, i, place.stage}));
        }
        break;
      case GroupKind::kStages:
        for (const uint32_t rank : trace_.communicators[old].ranks) {
          ranks.push_back(RankOf(to_, {place.tensor, place.data, PlaceOf(from_, rank).stage}));
        }
        break;
      case GroupKind::kAll:
      case GroupKind::kOther:
        for (uint32_t i = 0; i < to_.ranks(); ++i) ranks.push_back(i);
        break;
    }
    const auto [at, is_new] = communicator_of_.try_emplace(
        {old, ranks.front(), ranks.back()}, static_cast<uint32_t>(result_.communicators.size()));
    if (is_new)
      result_.communicators.push_back(
          {.name = trace_.communicators[old].name, .ranks = std::move(ranks)});
    return at->second;
  }

  const Trace& trace_;
  const TraceDivision& from_;
  const TraceDivision& to_;
  const std::string& file_;
  Diagnostics& diagnostics_;
  std::vector<GroupKind> kinds_;  // by communicator
  Trace result_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> communicator_of_;
};

}  // namespace

std::optional<Trace> RetargetTrace(const Trace& trace, const TraceDivision& from,
                                   const TraceDivision& to, const std::string& file,
                                   Diagnostics& diagnostics) {
  return TraceRetargeter(trace, from, to, file, diagnostics).Run();
}

}  // namespace railyard
