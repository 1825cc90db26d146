// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/job/job.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "workloads/job/collective_matcher.h"
#include "workloads/job/p2p_matcher.h"

namespace railyard {
namespace {

// The calls that AlltoAll, Gather and Scatter of NCCL's API become when enqueued (taskAppend in
// src/enqueue.cc, from 2.28). Equal lists, such as those of all ranks of an AlltoAll, are kept
// once.
class P2pExpander {
 public:
  explicit P2pExpander(std::vector<P2pCall>& calls) : calls_(calls) {}

  void Expand(const TraceOperation& operation, RankIndex rank, uint32_t size,
              JobOperation& expanded) {
    const bool all = operation.kind == CollectiveKind::kAllToAll;
    const bool gather = operation.kind == CollectiveKind::kGather;
    const bool is_root = !all && rank == operation.root;
    const RankIndex root{all ? 0 : operation.root};
    const uint64_t bytes = operation.count * DatatypeBytes(operation.datatype);
    const auto [entry, is_new] =
        lists_.try_emplace(Key{operation.kind, size, root, is_root, bytes},
                           std::pair<uint32_t, uint32_t>{static_cast<uint32_t>(calls_.size()), 0});
    if (is_new) {
      if (gather) calls_.push_back({true, root, bytes});
      for (RankIndex peer{0}; peer < size && (all || is_root); ++peer) {
        if (!gather) calls_.push_back({true, peer, bytes});
        if (all || gather) calls_.push_back({false, peer, bytes});
      }
      if (!all && !gather) calls_.push_back({false, root, bytes});
      entry->second.second = static_cast<uint32_t>(calls_.size()) - entry->second.first;
    }
    std::tie(expanded.p2p_first, expanded.p2p_count) = entry->second;
  }

 private:
  using Key = std::tuple<CollectiveKind, uint32_t, uint32_t, bool, uint64_t>;
  std::vector<P2pCall>& calls_;
  std::map<Key, std::pair<uint32_t, uint32_t>> lists_;  // → first, count
};

class JobBuilder {
 public:
  JobBuilder(const Trace& trace, Diagnostics& diagnostics)
      : trace_(trace),
        diagnostics_(diagnostics),
        collective_matcher_(trace, job_.collectives, diagnostics),
        p2p_matcher_(trace, job_.collectives, job_.p2p_calls, diagnostics),
        expander_(job_.p2p_calls),
        rank_in_(trace.communicators.size(), RankIndex::kNone) {}

  std::optional<Job> Build() {
    job_.communicators = trace_.communicators;
    job_.rank_count = trace_.rank_count;
    job_.nccl_version = trace_.nccl_version;
    job_.source_files = trace_.source_files;
    job_.parts.resize(1);
    job_.parts[0].global_ranks.resize(trace_.rank_count);
    std::iota(job_.parts[0].global_ranks.begin(), job_.parts[0].global_ranks.end(), GlobalRank{0});
    job_.operations.resize(trace_.rank_count);
    job_.called.resize(trace_.rank_count);
    job_.iteration_begins.resize(job_.operations.program_count());
    job_.memberships.resize(trace_.rank_count);
    for (uint32_t i = 0; i < trace_.communicators.size(); ++i) {
      const auto& ranks = trace_.communicators[i].ranks;
      for (RankIndex rank{0}; rank < ranks.size(); ++rank) {
        job_.memberships[ranks[rank]].emplace_back(CommunicatorIndex{i}, rank);
      }
    }
    Reserve();
    std::vector<std::optional<FirstOfProgram>> firsts(trace_.operations.program_count());
    for (GlobalRank rank{0}; rank < trace_.rank_count; ++rank) {
      const uint32_t program = trace_.operations.program_of_rank(rank);
      std::optional<FirstOfProgram>& first = firsts[program];
      if (!first) {
        AddRank(rank, std::nullopt);
        first = {rank, MeansTheSameForAll(trace_.operations.program(program))};
      } else if (first->means_the_same && trace_.NumbersAreIndices(rank) &&
                 trace_.NumbersAreIndices(first->rank)) {
        ShareCalls(rank, first->rank);
      } else {
        AddRank(rank, first->rank);
      }
    }
    collective_matcher_.CheckCounts();
    Renumber(p2p_matcher_.Match());
    if (diagnostics_.HasErrors()) return std::nullopt;
    return std::move(job_);
  }

 private:
  struct FirstOfProgram {
    GlobalRank rank{};
    bool means_the_same = false;
  };
  // Returns whether its operations are the same for every rank that runs it.
  static bool MeansTheSameForAll(const std::vector<TraceOperation>& program) {
    return std::none_of(program.begin(), program.end(), [](const TraceOperation& operation) {
      return IsSendOrRecv(operation.kind) || operation.kind == CollectiveKind::kGather ||
             operation.kind == CollectiveKind::kScatter;
    });
  }

  struct CallCounts {
    std::unordered_map<uint32_t, uint64_t> collectives;  // by number of the communicator
    uint64_t groups = 0;                                 // of Send and Recv; about
    uint64_t sends = 0;
    uint64_t recvs = 0;
  };
  static CallCounts CountCalls(const std::vector<TraceOperation>& program) {
    CallCounts counts;
    const TraceOperation* before = nullptr;
    for (const TraceOperation& call : program) {
      if (IsSendOrRecv(call.kind)) {
        ++(call.kind == CollectiveKind::kSend ? counts.sends : counts.recvs);
        const bool goes_on = before != nullptr && call.group != 0 && before->group == call.group &&
                             before->communicator == call.communicator;
        if (!goes_on) ++counts.groups;
      } else if (call.kind != CollectiveKind::kCompute) {
        ++counts.collectives[call.communicator];
      }
      before = &call;
    }
    return counts;
  }

  // Room for what the calls become: a long job's lists would be moved again and again.
  void Reserve() {
    std::vector<uint64_t> collectives(trace_.communicators.size());
    CallCounts total;
    const std::vector<std::vector<GlobalRank>> ranks = trace_.operations.RanksOfPrograms();
    for (uint32_t program = 0; program < ranks.size(); ++program) {
      if (ranks[program].empty()) continue;
      const CallCounts counts = CountCalls(trace_.operations.program(program));
      for (const GlobalRank rank : ranks[program]) {
        for (const auto& [number, calls] : counts.collectives) {
          uint64_t& most = collectives[trace_.CommunicatorOf(rank, number)];
          most = std::max(most, calls);
        }
      }
      total.groups += counts.groups * ranks[program].size();
      total.sends += counts.sends * ranks[program].size();
      total.recvs += counts.recvs * ranks[program].size();
    }
    job_.collectives.reserve(std::accumulate(collectives.begin(), collectives.end(), total.groups));
    p2p_matcher_.Reserve(total.groups, total.sends, total.recvs);
  }

  // The calls of both are of the same collectives.
  void ShareCalls(GlobalRank global_rank, GlobalRank with) {
    job_.operations.SetProgram(global_rank, job_.operations.program_of_rank(with));
    job_.called.SetProgram(global_rank, job_.called.program_of_rank(with));
    for (const auto& [communicator, rank] : job_.memberships[with]) {
      const uint32_t calls = collective_matcher_.CallsOf(communicator, rank);
      if (calls == 0) continue;
      collective_matcher_.AddCalls(communicator, job_.CommunicatorRank(communicator, global_rank),
                                   calls);
    }
  }

  // `alike` is a rank that has the same program in the trace.
  void AddRank(GlobalRank global_rank, std::optional<GlobalRank> alike) {
    for (const auto& [communicator, rank] : job_.memberships[global_rank])
      rank_in_[communicator] = rank;
    const auto& calls = trace_.operations[global_rank];
    std::vector<JobOperation>& operations = operations_;
    operations.clear();
    operations.reserve(calls.size());
    std::vector<CollectiveIndex>& called = job_.called[global_rank];
    called.reserve(calls.size());
    std::vector<uint32_t> operation_of(calls.size());  // by call
    for (size_t i = 0; i < calls.size(); ++i) {
      const TraceOperation& call = calls[i];
      const uint32_t after = call.after == 0 ? JobOperation::kNone : operation_of[call.after - 1];
      operation_of[i] = static_cast<uint32_t>(operations.size());
      if (call.kind == CollectiveKind::kCompute) {
        operations.push_back(
            {.stream = call.stream, .after = after, .compute_before_ps = call.compute_before_ps});
        continue;
      }
      const CommunicatorIndex communicator = trace_.CommunicatorOf(global_rank, call.communicator);
      const RankIndex rank = rank_in_[communicator];
      SIM_CHECK(rank != RankIndex::kNone, "a call on a communicator the rank is not in");
      if (IsSendOrRecv(call.kind)) {
        const size_t count_before = operations.size();
        operation_of[i] = p2p_matcher_.Add(call, communicator, rank, operations, called);
        if (operations.size() > count_before) {
          operations.back().after = after;
          operations.back().loss_tolerance_ppm =
              call.loss_tolerance_ppm & JobOperation::kLossToleranceMask;
        }
        continue;
      }
      JobOperation operation;
      operation.call = static_cast<uint32_t>(called.size());
      operation.communicator = call.communicator;
      operation.stream = call.stream;
      operation.after = after;
      operation.loss_tolerance_ppm = call.loss_tolerance_ppm & JobOperation::kLossToleranceMask;
      operation.compute_before_ps = call.compute_before_ps;
      operation.in_place = call.in_place;
      called.push_back(collective_matcher_.Match(call, communicator, rank));
      if (job_.collectives[called.back()].is_p2p()) {
        const size_t size = trace_.communicators[communicator].ranks.size();
        operation.is_p2p = true;
        expander_.Expand(call, rank, static_cast<uint32_t>(size), operation);
      }
      operations.push_back(operation);
    }
    p2p_matcher_.FinishRank(operations);
    if (alike && operations == job_.operations[*alike] && AreAsLarge(global_rank, *alike)) {
      job_.operations.SetProgram(global_rank, job_.operations.program_of_rank(*alike));
    } else {
      job_.operations[global_rank].assign(operations.begin(), operations.end());
      NoteIterations(global_rank, calls, operation_of);
    }
    for (const auto& membership : job_.memberships[global_rank]) {
      rank_in_[membership.first] = RankIndex::kNone;
    }
  }

  // Returns whether the communicators that two ranks' calls are on have as many ranks.
  bool AreAsLarge(GlobalRank a, GlobalRank b) const {
    const std::vector<CollectiveIndex>& of_a = job_.called[a];
    const std::vector<CollectiveIndex>& of_b = job_.called[b];
    const auto size = [this](CollectiveIndex collective) {
      return job_.communicators[job_.collectives[collective].communicator].ranks.size();
    };
    return std::ranges::equal(of_a, of_b, {}, size, size);
  }

  void NoteIterations(GlobalRank global_rank, const std::vector<TraceOperation>& calls,
                      const std::vector<uint32_t>& operation_of) {
    const uint32_t program = job_.operations.program_of_rank(global_rank);
    for (size_t i = 0; i < calls.size(); ++i) {
      if (calls[i].begins_iteration) {
        job_.iteration_begins[program].push_back(operation_of[i]);
      }
    }
  }

  // Closes the gaps that merged collectives leave; the order stays.
  void Renumber(std::vector<uint32_t> merged_into) {
    std::vector<uint32_t> number(merged_into.size());
    uint32_t count = 0;
    for (uint32_t i = 0; i < merged_into.size(); ++i) {
      if (merged_into[i] != i) continue;
      number[i] = count;
      job_.collectives[count++] = job_.collectives[i];
    }
    if (count == merged_into.size()) return;
    job_.collectives.resize(count);
    for (uint32_t list = 0; list < job_.called.program_count(); ++list) {
      for (CollectiveIndex& collective : job_.called.program(list)) {
        collective = CollectiveIndex{number[merged_into[collective]]};
      }
    }
  }

  const Trace& trace_;
  Diagnostics& diagnostics_;
  Job job_;
  CollectiveMatcher collective_matcher_;
  P2pMatcher p2p_matcher_;
  P2pExpander expander_;
  // State of the global rank being added: its rank by communicator, and its operations.
  std::vector<RankIndex> rank_in_;
  std::vector<JobOperation> operations_;
};

}  // namespace

PartIndex Job::PartOf(CommunicatorIndex communicator) const {
  const auto next = std::upper_bound(parts.begin(), parts.end(), communicator,
                                     [](CommunicatorIndex number, const JobPart& part) {
                                       return number < part.first_communicator;
                                     });
  return PartIndex{next - parts.begin() - 1};
}

std::vector<PartIndex> Job::PartsOfRanks() const {
  std::vector<PartIndex> part_of_rank(rank_count, PartIndex::kNone);
  for (PartIndex part{}; part < parts.size(); ++part) {
    for (const GlobalRank rank : parts[part].global_ranks) part_of_rank[rank] = part;
  }
  return part_of_rank;
}

RankIndex Job::CommunicatorRank(CommunicatorIndex communicator, GlobalRank rank) const {
  const auto& of_rank = memberships[rank];
  const auto it =
      std::lower_bound(of_rank.begin(), of_rank.end(), std::pair{communicator, RankIndex{0}});
  SIM_CHECK(it != of_rank.end() && it->first == communicator,
            "a call on a communicator the rank is not in");
  return it->second;
}

void PlanAllToAllsWhole(uint32_t rank_count, Job& job) {
  for (JobCollective& collective : job.collectives) {
    collective.is_planned_whole =
        collective.is_planned_whole ||
        (collective.kind == CollectiveKind::kAllToAll && collective.rank_count == rank_count &&
         collective.expert_kernel == ExpertKernel::kNone);
  }
  // Ranks of one program may differ in which of its calls are.
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, uint32_t> program_with;
  std::set<uint32_t> changed;
  for (GlobalRank rank{0}; rank < job.rank_count; ++rank) {
    const std::vector<JobOperation>& operations = std::as_const(job.operations)[rank];
    std::vector<uint32_t> whole;
    for (uint32_t i = 0; i < operations.size(); ++i) {
      const bool is_call = !operations[i].is_compute();
      if (is_call && job.collectives[job.CollectiveOf(rank, operations[i])].is_planned_whole) {
        whole.push_back(i);
      }
    }
    const uint32_t shared = job.operations.program_of_rank(rank);
    const auto [entry, is_new] = program_with.try_emplace({shared, whole}, shared);
    if (is_new && !changed.insert(shared).second) {
      entry->second = job.operations.AddProgram(job.operations.program(shared));
      if (shared < job.iteration_begins.size()) {
        job.iteration_begins.resize(job.operations.program_count());
        job.iteration_begins.back() = job.iteration_begins[shared];
      }
    }
    job.operations.SetProgram(rank, entry->second);
  }
  for (const auto& [key, program] : program_with) {
    for (const uint32_t i : key.second) {
      JobOperation& operation = job.operations.program(program)[i];
      operation.is_p2p = false;
      operation.p2p_first = operation.p2p_count = 0;
    }
  }
}

std::optional<Job> BuildJob(const Trace& trace, Diagnostics& diagnostics) {
  return JobBuilder(trace, diagnostics).Build();
}

}  // namespace railyard
