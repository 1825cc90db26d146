// SPDX-License-Identifier: GPL-2.0-only
#include "traces/goal/goal_binary.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

constexpr uint64_t kMagicBytes = 8;
constexpr uint64_t kOperationBytes = 39;

// The dependents of an operation, as positions in the list after a rank's operations.
struct Dependents {
  uint32_t count = 0;
  uint32_t first = 0;
  uint32_t start_count = 0;
  uint32_t first_start = 0;
};

class GoalBinaryReader {
 public:
  GoalBinaryReader(const GoalBytes& bytes, const std::string& file, Diagnostics& diagnostics)
      : bytes_(bytes), file_(file), diagnostics_(diagnostics) {}

  std::optional<GoalSchedule> Read() {
    if (!ReadHead()) return std::nullopt;
    for (uint32_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      if (!ReadRank(rank)) return std::nullopt;
    }
    return std::move(schedule_);
  }

 private:
  bool Error(std::string what) {
    diagnostics_.Error({.file = file_}, "", fmt::format("byte {}: {}", at_, std::move(what)));
    return false;
  }

  template <typename Number>
  bool Get(Number& number) {
    unsigned char raw[sizeof(Number)];
    if (bytes_(reinterpret_cast<char*>(raw), sizeof raw) < sizeof raw) {
      return Error("the file ends here (expected a whole schedule)");
    }
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof raw; ++i) value |= uint64_t{raw[i]} << (8 * i);
    number = static_cast<Number>(value);
    at_ += sizeof raw;
    return true;
  }

  bool ReadHead() {
    uint64_t magic = 0;
    uint32_t ranks = 0;
    uint8_t cpus = 0;
    uint8_t nics = 0;
    if (!Get(magic)) return false;
    if (magic != kGoalMagic) {
      return Error(magic == kGoalMagicUsed
                       ? "the schedule has been overwritten by a run with --save-mem (expected a "
                         "new one of txt2bin)"
                       : fmt::format("the magic number is missing (expected {})", kGoalMagic));
    }
    if (!Get(ranks) || !Get(cpus) || !Get(nics)) return false;
    if (ranks == 0 || ranks > kTraceRanksMax) {
      return Error(
          fmt::format("{} ranks are out of range (expected 1 to {})", ranks, kTraceRanksMax));
    }
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      Extent extent;
      if (!Get(extent.begin) || !Get(extent.end)) return false;
      extents_.push_back(extent);
    }
    schedule_.ranks.resize(ranks);
    return true;
  }

  bool ReadRank(uint32_t rank) {
    const Extent extent = extents_[rank];
    // Offsets count from behind the magic number; txt2bin writes ranks one after the other.
    if (extent.begin != at_ - kMagicBytes || extent.end < extent.begin) {
      return Error(fmt::format("rank {} is said to lie at bytes {} to {} (expected it here)", rank,
                               extent.begin, extent.end));
    }
    uint32_t count = 0;
    uint32_t roots = 0;
    if (!Get(count) || !Get(roots)) return false;
    const uint64_t bytes = 8 + roots * uint64_t{4} + count * kOperationBytes;
    if (bytes > extent.end - extent.begin || (extent.end - extent.begin - bytes) % 4 != 0) {
      return Error(fmt::format("{} operations do not fit into the {} bytes of rank {}", count,
                               extent.end - extent.begin, rank));
    }
    uint32_t root = 0;  // those that wait for nothing, which their own counts say as well
    for (uint32_t i = 0; i < roots; ++i) {
      if (!Get(root)) return false;
    }
    std::vector<Dependents> dependents;
    for (uint32_t i = 0; i < count; ++i) {
      if (!ReadOperation(schedule_.ranks[rank], dependents)) return false;
    }
    return ReadDependents(schedule_.ranks[rank], dependents,
                          (extent.end - extent.begin - bytes) / 4);
  }

  bool ReadOperation(std::vector<GoalOperation>& operations, std::vector<Dependents>& dependents) {
    uint32_t waits = 0;
    uint8_t kind = 0;
    uint8_t cpu = 0;
    uint8_t nic = 0;
    GoalOperation operation;
    Dependents others;
    if (!Get(waits) || !Get(kind) || !Get(operation.peer) || !Get(operation.size) ||
        !Get(operation.tag) || !Get(cpu) || !Get(nic) || !Get(others.count) || !Get(others.first) ||
        !Get(others.start_count) || !Get(others.first_start)) {
      return false;
    }
    if (kind < static_cast<uint8_t>(GoalKind::kSend) ||
        kind > static_cast<uint8_t>(GoalKind::kCalc)) {
      return Error(fmt::format("kind {} does not exist (expected 1 to 3)", kind));
    }
    operation.kind = static_cast<GoalKind>(kind);
    const bool is_any = operation.kind == GoalKind::kRecv && operation.peer == kGoalAny;
    if (operation.kind != GoalKind::kCalc && !is_any && operation.peer >= schedule_.ranks.size()) {
      return Error(fmt::format("rank {} does not exist (expected up to {})", operation.peer,
                               schedule_.ranks.size() - 1));
    }
    operations.push_back(std::move(operation));
    dependents.push_back(others);
    return true;
  }

  bool ReadDependents(std::vector<GoalOperation>& operations,
                      const std::vector<Dependents>& dependents, uint64_t listed_count) {
    std::vector<uint32_t> listed;
    for (uint64_t i = 0; i < listed_count; ++i) {
      uint32_t operation = 0;
      if (!Get(operation)) return false;
      if (operation >= dependents.size()) {
        return Error(fmt::format("operation {} does not exist (expected less than {})", operation,
                                 dependents.size()));
      }
      listed.push_back(operation);
    }
    uint64_t named = 0;
    for (const Dependents& others : dependents) {
      named += uint64_t{others.count} + others.start_count;
      if (uint64_t{others.first} + others.count > listed.size() ||
          uint64_t{others.first_start} + others.start_count > listed.size() ||
          named > listed.size()) {
        return Error("dependencies lie beyond their list");
      }
    }
    GoalStarts starts(operations);
    for (uint32_t i = 0; i < dependents.size(); ++i) {
      if (dependents[i].start_count > 0) starts.Make(i);
    }
    for (uint32_t i = 0; i < dependents.size(); ++i) {
      const Dependents& others = dependents[i];
      for (uint32_t k = 0; k < others.count; ++k) starts.WaitForEnd(listed[others.first + k], i);
      for (uint32_t k = 0; k < others.start_count; ++k) {
        starts.WaitForStart(listed[others.first_start + k], i);
      }
    }
    return true;
  }

  struct Extent {
    uint64_t begin = 0;
    uint64_t end = 0;
  };

  const GoalBytes& bytes_;
  const std::string& file_;
  Diagnostics& diagnostics_;
  std::vector<Extent> extents_;  // by rank
  GoalSchedule schedule_;
  uint64_t at_ = 0;
};

template <typename Number>
void Put(Number number, std::string& out) {
  for (size_t i = 0; i < sizeof number; ++i) {
    out += static_cast<char>(static_cast<uint64_t>(number) >> (8 * i) & 0xff);
  }
}

std::string RankBinaryOf(const std::vector<GoalOperation>& operations) {
  std::vector<std::vector<uint32_t>> dependents(operations.size());
  std::string roots;
  for (uint32_t i = 0; i < operations.size(); ++i) {
    for (const uint32_t other : operations[i].waits_for) dependents[other].push_back(i);
    if (operations[i].waits_for.empty()) Put(i, roots);
  }
  std::string out;
  Put(static_cast<uint32_t>(operations.size()), out);
  Put(static_cast<uint32_t>(roots.size() / 4), out);
  out += roots;
  uint32_t listed = 0;
  for (uint32_t i = 0; i < operations.size(); ++i) {
    const GoalOperation& operation = operations[i];
    Put(static_cast<uint32_t>(operation.waits_for.size()), out);
    Put(static_cast<uint8_t>(operation.kind), out);
    Put(operation.peer, out);
    Put(operation.size, out);
    Put(operation.tag, out);
    Put(uint8_t{0}, out);
    Put(uint8_t{0}, out);
    Put(static_cast<uint32_t>(dependents[i].size()), out);
    Put(listed, out);
    listed += static_cast<uint32_t>(dependents[i].size());
    Put(uint32_t{0}, out);
    Put(listed, out);
  }
  for (const std::vector<uint32_t>& others : dependents) {
    for (const uint32_t other : others) Put(other, out);
  }
  return out;
}

}  // namespace

std::optional<GoalSchedule> ReadGoalBinary(const GoalBytes& bytes, const std::string& file,
                                           Diagnostics& diagnostics) {
  return GoalBinaryReader(bytes, file, diagnostics).Read();
}

std::string GoalBinaryOf(const GoalSchedule& schedule) {
  std::string out;
  Put(kGoalMagic, out);
  Put(static_cast<uint32_t>(schedule.ranks.size()), out);
  Put(uint8_t{0}, out);
  Put(uint8_t{0}, out);
  uint64_t at = out.size() - kMagicBytes + schedule.ranks.size() * 16;
  std::string ranks;
  for (const std::vector<GoalOperation>& operations : schedule.ranks) {
    const std::string rank = RankBinaryOf(operations);
    Put(at, out);
    at += rank.size();
    Put(at, out);
    ranks += rank;
  }
  return out + ranks;
}

std::string GoalTextOf(const GoalSchedule& schedule) {
  std::string out = fmt::format("num_ranks {}\n", schedule.ranks.size());
  const auto append = std::back_inserter(out);
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    fmt::format_to(append, "\nrank {} {{\n", rank);
    const std::vector<GoalOperation>& operations = schedule.ranks[rank];
    for (size_t i = 0; i < operations.size(); ++i) {
      const GoalOperation& operation = operations[i];
      switch (operation.kind) {
        case GoalKind::kSend:
          fmt::format_to(append, "l{}: send {}b to {} tag {}\n", i + 1, operation.size,
                         operation.peer, operation.tag);
          break;
        case GoalKind::kRecv:
          fmt::format_to(append, "l{}: recv {}b from {} tag {}\n", i + 1, operation.size,
                         operation.peer, operation.tag);
          break;
        case GoalKind::kCalc:
          fmt::format_to(append, "l{}: calc {}\n", i + 1, operation.size);
          break;
      }
      for (const uint32_t other : operation.waits_for) {
        fmt::format_to(append, "l{} requires l{}\n", i + 1, other + 1);
      }
    }
    out += "}\n";
  }
  return out;
}

}  // namespace railyard
