// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/job/job_parts.h"

#include <algorithm>
#include <utility>

namespace railyard {
namespace {

// The amounts that a job's numbers grow by when other jobs precede it; In() converts one to its
// number in the joined job.
struct Offsets {
  CommunicatorIndex communicators{};
  CollectiveIndex collectives{};
  uint32_t p2p_calls = 0;
  uint32_t source_files = 0;

  CommunicatorIndex In(CommunicatorIndex own) const {
    return CommunicatorIndex{own + communicators};
  }
  CollectiveIndex In(CollectiveIndex own) const { return CollectiveIndex{own + collectives}; }
};

template <typename Item>
void Append(std::vector<Item> items, std::vector<Item>& to) {
  to.insert(to.end(), std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
}

void AddCommunicators(const JobPart& part, std::vector<TraceCommunicator> added, Job& joined) {
  for (TraceCommunicator& communicator : added) {
    communicator.name = part.name + "/" + communicator.name;
    for (GlobalRank& rank : communicator.ranks) rank = part.global_ranks[rank];
  }
  Append(std::move(added), joined.communicators);
}

// Adds the programs of a part's ranks, which go on sharing them.
template <typename Item>
void AddPrograms(const JobPart& part, RankPrograms<Item> added, RankPrograms<Item>& joined) {
  const uint32_t first = joined.program_count();
  for (uint32_t program = 0; program < added.program_count(); ++program) {
    joined.AddProgram(std::move(added.program(program)));
  }
  for (GlobalRank rank{0}; rank < part.global_ranks.size(); ++rank) {
    joined.SetProgram(part.global_ranks[rank], first + added.program_of_rank(rank));
  }
}

void AddCalls(const JobPart& part, const Offsets& offsets, Job job, Job& joined) {
  for (uint32_t program = 0; program < job.operations.program_count(); ++program) {
    for (JobOperation& operation : job.operations.program(program)) {
      operation.p2p_first += offsets.p2p_calls;
    }
  }
  for (uint32_t list = 0; list < job.called.program_count(); ++list) {
    for (CollectiveIndex& collective : job.called.program(list)) {
      collective = offsets.In(collective);
    }
  }
  joined.iteration_begins.resize(joined.operations.program_count());
  Append(std::move(job.iteration_begins), joined.iteration_begins);
  AddPrograms(part, std::move(job.operations), joined.operations);
  AddPrograms(part, std::move(job.called), joined.called);
}

void Add(Job job, Job& joined) {
  const Offsets offsets{.communicators = CommunicatorIndex{joined.communicators.size()},
                        .collectives = CollectiveIndex{joined.collectives.size()},
                        .p2p_calls = static_cast<uint32_t>(joined.p2p_calls.size()),
                        .source_files = static_cast<uint32_t>(joined.source_files.size())};
  JobPart part = std::move(job.parts.front());
  part.first_communicator = offsets.communicators;
  part.first_collective = offsets.collectives;
  AddCommunicators(part, std::move(job.communicators), joined);
  for (JobCollective& collective : job.collectives) {
    collective.communicator = offsets.In(collective.communicator);
    collective.source_file += offsets.source_files;
  }
  Append(std::move(job.collectives), joined.collectives);
  Append(std::move(job.p2p_calls), joined.p2p_calls);
  Append(std::move(job.source_files), joined.source_files);
  for (GlobalRank rank{0}; rank < part.global_ranks.size(); ++rank) {
    auto& memberships = joined.memberships[part.global_ranks[rank]];
    memberships = std::move(job.memberships[rank]);
    for (auto& membership : memberships) membership.first = offsets.In(membership.first);
  }
  if (joined.nccl_version.empty()) joined.nccl_version = job.nccl_version;
  AddCalls(part, offsets, std::move(job), joined);
  joined.parts.push_back(std::move(part));
}

}  // namespace

Job JoinJobs(std::vector<Job> jobs) {
  Job joined;
  for (const Job& job : jobs) {
    for (const GlobalRank rank : job.parts.front().global_ranks) {
      joined.rank_count = std::max(joined.rank_count, rank + 1);
    }
  }
  joined.operations.resize(joined.rank_count);
  joined.called.resize(joined.rank_count);
  joined.memberships.resize(joined.rank_count);
  for (Job& job : jobs) Add(std::move(job), joined);
  return joined;
}

void SwapRanks(GlobalRank a, GlobalRank b, Job& job) {
  const auto swap_in = [a, b](std::vector<GlobalRank>& ranks) {
    for (GlobalRank& rank : ranks) {
      if (rank == a || rank == b) rank = rank == a ? b : a;
    }
  };
  job.operations.SwapPrograms(a, b);
  job.called.SwapPrograms(a, b);
  std::swap(job.memberships[a], job.memberships[b]);
  for (const GlobalRank rank : {a, b}) {
    for (const auto& [communicator, place] : job.memberships[rank]) {
      job.communicators[communicator].ranks[place] = rank;
    }
  }
  for (JobPart& part : job.parts) swap_in(part.global_ranks);
}

void GrowTo(uint32_t rank_count, Job& job) {
  job.rank_count = std::max(job.rank_count, rank_count);
  job.operations.resize(job.rank_count);
  job.called.resize(job.rank_count);
  job.iteration_begins.resize(job.operations.program_count());
  job.memberships.resize(job.rank_count);
}

bool ToleratesLoss(const Job& job) {
  for (uint32_t i = 0; i < job.operations.program_count(); ++i) {
    const std::vector<JobOperation>& program = job.operations.program(i);
    if (std::any_of(program.begin(), program.end(),
                    [](const JobOperation& call) { return call.loss_tolerance_ppm > 0; })) {
      return true;
    }
  }
  return false;
}

Job ReliableOf(const Job& job) {
  Job reliable = job;
  for (uint32_t i = 0; i < job.operations.program_count(); ++i) {
    for (JobOperation& call : reliable.operations.program(i)) call.loss_tolerance_ppm = 0;
  }
  return reliable;
}

Job AloneOf(const Job& job, PartIndex part) {
  Job alone = job;
  const std::vector<PartIndex> part_of_rank = job.PartsOfRanks();
  for (GlobalRank rank{0}; rank < job.rank_count; ++rank) {
    // Parts share no program.
    if (part_of_rank[rank] == part) continue;
    alone.operations[rank].clear();
    alone.called[rank].clear();
  }
  return alone;
}

}  // namespace railyard
