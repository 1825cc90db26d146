// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/programs/program_order.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

namespace railyard {
namespace {

// The last operation of each key so far. Many in a row have one key.
class LastOf {
 public:
  // The one before.
  std::optional<uint32_t> Replace(uint32_t key, uint32_t operation) {
    if (last_ != nullptr && last_->first == key) return std::exchange(last_->second, operation);
    const auto [it, is_new] = last_of_.try_emplace(key, operation);
    last_ = &*it;
    if (is_new) return std::nullopt;
    return std::exchange(last_->second, operation);
  }

 private:
  std::unordered_map<uint32_t, uint32_t> last_of_;
  std::pair<const uint32_t, uint32_t>* last_ = nullptr;
};

}  // namespace

ProgramOrder::ProgramOrder(const Job& job)
    : job_(job),
      part_of_rank_(job.PartsOfRanks()),
      links_(job.operations.program_count()),
      partly_released_(job.rank_count),
      computed_until_ps_(job.parts.size()),
      trial_of_rank_(job.rank_count) {
  for (uint32_t program = 0; program < links_.size(); ++program) {
    links_[program] = LinksOfProgram(job.operations.program(program));
  }
}

ProgramOrder::Links ProgramOrder::LinksOfProgram(const std::vector<JobOperation>& operations) {
  Links links;
  links.of.resize(operations.size() + 1);
  LastOf last_in_stream;
  LastOf last_in_communicator;
  for (uint32_t index = 0; index < operations.size(); ++index) {
    const JobOperation& operation = operations[index];
    Link& link = links.of[index];
    const std::optional<uint32_t> in_stream = last_in_stream.Replace(operation.stream, index);
    link.first_of_stream = !in_stream;
    if (in_stream) {
      links.of[*in_stream].next_in_stream = index;
      ++link.waits_for;
    }
    if (operation.after != JobOperation::kNone) {
      ++links.of[operation.after + 1].first_follower;  // how many it has; summed up below
      ++link.waits_for;
    }
    if (!operation.is_compute()) {
      const auto in_communicator = last_in_communicator.Replace(operation.communicator, index);
      if (in_communicator && in_communicator != in_stream) {
        links.of[*in_communicator].next_in_communicator = index;
        ++link.waits_for;
      }
    }
  }
  for (size_t i = 1; i < links.of.size(); ++i) {
    links.of[i].first_follower += links.of[i - 1].first_follower;
  }
  links.followers.resize(links.of.back().first_follower);
  std::vector<uint32_t> filled(operations.size(), 0);
  for (uint32_t index = 0; index < operations.size(); ++index) {
    const uint32_t after = operations[index].after;
    if (after == JobOperation::kNone) continue;
    links.followers[links.of[after].first_follower + filled[after]++] = index;
  }
  return links;
}

std::vector<ProgramOrder::PartlyReleased> ProgramOrder::ReleasedBy(uint32_t program_index,
                                                                   uint32_t first,
                                                                   int64_t now_ps) const {
  const std::vector<JobOperation>& program = job_.operations.program(program_index);
  const Links& links = links_[program_index];
  std::map<uint32_t, PartlyReleased> released;  // by operation
  const auto release = [&](uint32_t index, uint8_t count, bool with_gap) {
    PartlyReleased& part =
        released.try_emplace(index, PartlyReleased{index, WaitsFor(links, index), now_ps})
            .first->second;
    part.waits_for = static_cast<uint8_t>(part.waits_for - count);
    if (with_gap) part.earliest_ps = SumPs(now_ps, program[index].compute_before_ps);
  };
  for (uint32_t index = 0; index < first; ++index) {
    const Link& link = links.of[index];
    if (link.next_in_stream != kNone && link.next_in_stream >= first) {
      release(link.next_in_stream, 1, true);
    }
    if (link.next_in_communicator != kNone && link.next_in_communicator >= first) {
      release(link.next_in_communicator, 1, false);
    }
    for (uint32_t i = link.first_follower; i < links.of[index + 1].first_follower; ++i) {
      if (links.followers[i] >= first) release(links.followers[i], 1, true);
    }
  }
  // The gap of an operation that begins its stream and names no other begins now.
  for (uint32_t index = first; index < program.size(); ++index) {
    if (!links.of[index].first_of_stream || program[index].after != JobOperation::kNone) continue;
    if (links.of[index].waits_for == 0 || released.contains(index)) release(index, 0, true);
  }
  std::vector<PartlyReleased> in_order;
  for (const auto& [index, part] : released) in_order.push_back(part);
  return in_order;
}

void ProgramOrder::EndTrial(bool keep) {
  in_trial_ = false;
  if (!keep) {
    for (auto& [rank, waiting] : before_trial_) partly_released_[rank] = std::move(waiting);
    computed_until_ps_ = computed_before_trial_ps_;
  }
  before_trial_.clear();
}

uint32_t ProgramOrder::LastFollowerOf(GlobalRank rank, uint32_t index) const {
  const Links& links = LinksOf(rank);
  const Link& link = links.of[index];
  uint32_t last = index;
  for (const uint32_t next : {link.next_in_stream, link.next_in_communicator}) {
    if (next != kNone) last = std::max(last, next);
  }
  for (uint32_t i = link.first_follower; i < links.of[index + 1].first_follower; ++i) {
    last = std::max(last, links.followers[i]);
  }
  return last;
}

}  // namespace railyard
