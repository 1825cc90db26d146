// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/faults/fault_anchor_loader.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "simulator/scenario/check/field_ranges.h"
#include "simulator/scenario/schema/scenario.pb.h"
#include "workloads/job/job_iterations.h"

namespace railyard {
namespace {

class AnchorLoader {
 public:
  AnchorLoader(const FaultNames& names, const Job* job, Diagnostics& diagnostics)
      : names_(names), job_(job), diagnostics_(diagnostics) {}

  void Load(const ProtoCursor& when, FaultAnchor& anchor) {
    const int given =
        when.Has("begin_of") + when.Has("end_of") + when.Has("number") + when.Has("iteration");
    if (given != 1) {
      when.Error(diagnostics_, "number",
                 given == 0
                     ? "missing (expected begin_of, end_of, the number of a collective or an "
                       "iteration)"
                     : "stands beside another anchor, or another beside it (expected one of "
                       "begin_of, end_of, number and iteration)");
      return;
    }
    for (const char* field : {"begin_of", "end_of"}) {
      if (!when.Has(field)) continue;
      const std::string name = when.Text(field, "");
      const auto it = names_.index_by_name.find(name);
      if (it == names_.index_by_name.end()) {
        // One that is wrong in itself has been reported.
        if (names_.path_by_name.contains(name)) return;
        std::vector<std::string> names;
        for (const auto& [known, index] : names_.index_by_name) names.push_back(known);
        when.Error(diagnostics_, field, UnknownName("fault", name, names));
        return;
      }
      anchor.fault = FaultIndex{it->second};
      anchor.at_end = field == std::string_view("end_of");
    }
    for (const char* field : {"kind", "communicator", "progress"}) {
      if (when.Has(field) && !when.Has("number")) {
        when.Error(diagnostics_, field, "has no effect without number (expected it beside number)");
      }
    }
    if (when.Has("job") && !when.Has("iteration")) {
      when.Error(diagnostics_, "job", "has no effect without iteration (expected it beside that)");
    }
    if (when.Has("number") && job_ != nullptr) FindCollective(when, anchor);
    if (when.Has("iteration") && job_ != nullptr) FindIteration(when, anchor);
  }

 private:
  // Returns the part of the job to which the iteration belongs; nullopt after an error.
  std::optional<PartIndex> PartOf(const ProtoCursor& when) {
    std::vector<std::string> names;
    for (const JobPart& part : job_->parts) names.push_back(part.name);
    if (!when.Has("job")) {
      if (names.size() == 1) return PartIndex{0};
      when.Missing(diagnostics_, "job", JoinAlternatives(names));
      return std::nullopt;
    }
    const std::string name = when.Text("job", "");
    const auto it = std::find(names.begin(), names.end(), name);
    if (names.size() > 1 && it != names.end()) return PartIndex{it - names.begin()};
    when.Error(diagnostics_, "job",
               names.size() == 1 ? "names one of several jobs, and there is one (expected none)"
                                 : UnknownName("job", name, names));
    return std::nullopt;
  }

  // The first call of every rank in it: it begins when the first of these does.
  void FindIteration(const ProtoCursor& when, FaultAnchor& anchor) {
    const std::optional<PartIndex> part = PartOf(when);
    if (!part) return;
    const IterationBegins iterations = FindIterations(*job_, *part);
    const uint64_t number = when.Number(diagnostics_, "iteration", 1, 1, UINT32_MAX);
    if (number > iterations.count) {
      when.Error(
          diagnostics_, "iteration",
          fmt::format("the job has {} (expected 1 to {})", iterations.count, iterations.count));
      return;
    }
    std::set<CollectiveIndex> first_calls;
    for (const GlobalRank rank : job_->parts[*part].global_ranks) {
      const auto& begins = iterations.of_program[job_->operations.program_of_rank(rank)];
      const std::vector<JobOperation>& operations = job_->operations[rank];
      if (operations.empty()) continue;
      const uint32_t begin = begins[number - 1];
      // An operation that waits for nothing of the iteration may begin before it, because Recvs are
      // posted early.
      const auto is_call = [begin](const JobOperation& operation) {
        return !operation.is_compute() &&
               (operation.after == JobOperation::kNone || operation.after >= begin);
      };
      const auto call = std::find_if(operations.begin() + begin, operations.end(), is_call);
      if (call != operations.end()) first_calls.insert(job_->CollectiveOf(rank, *call));
    }
    anchor.collectives.assign(first_calls.begin(), first_calls.end());
  }

  void FindCollective(const ProtoCursor& when, FaultAnchor& anchor) {
    const auto& message = when.As<protos::FaultAnchor>();
    const uint64_t number = when.Number(diagnostics_, "number", 1, 1, UINT32_MAX);
    if (when.Has("progress"))
      anchor.progress = LoadShare(when, "progress", message.progress(), 0, 1, diagnostics_);
    const auto is_of_kind = [&](CollectiveKind kind) {
      return !when.Has("kind") || kind == CollectiveKindOf(message.kind());
    };
    uint64_t found = 0;
    std::set<std::string> communicators;
    for (CollectiveIndex i{}; i < job_->collectives.size(); ++i) {
      const JobCollective& collective = job_->collectives[i];
      const std::string& communicator = job_->communicators[collective.communicator].name;
      communicators.insert(communicator);
      if (!is_of_kind(collective.kind)) continue;
      if (when.Has("communicator") && communicator != message.communicator()) continue;
      if (++found != number) continue;
      anchor.collectives = {i};
      if (anchor.progress > 0 && collective.is_p2p()) {
        when.Error(diagnostics_, "progress",
                   "is not kept of what is made of Send and Recv (expected none, or another "
                   "collective)");
      }
      return;
    }
    if (when.Has("communicator") && !communicators.contains(message.communicator())) {
      when.Error(diagnostics_, "communicator",
                 UnknownName("communicator", message.communicator(),
                             {communicators.begin(), communicators.end()}));
      return;
    }
    when.Error(diagnostics_, "number",
               fmt::format("the job has {} of these (expected 1 to {})", found, found));
  }

  static CollectiveKind CollectiveKindOf(protos::ProgramCollective::Kind kind) {
    switch (kind) {
      case protos::ProgramCollective::ALL_GATHER:
        return CollectiveKind::kAllGather;
      case protos::ProgramCollective::REDUCE_SCATTER:
        return CollectiveKind::kReduceScatter;
      case protos::ProgramCollective::BROADCAST:
        return CollectiveKind::kBroadcast;
      case protos::ProgramCollective::REDUCE:
        return CollectiveKind::kReduce;
      case protos::ProgramCollective::ALL_TO_ALL:
        return CollectiveKind::kAllToAll;
      case protos::ProgramCollective::GATHER:
        return CollectiveKind::kGather;
      case protos::ProgramCollective::SCATTER:
        return CollectiveKind::kScatter;
      case protos::ProgramCollective::SEND_RECV:
      case protos::ProgramCollective::PERMUTATION:
        return CollectiveKind::kSend;
      default:
        return CollectiveKind::kAllReduce;
    }
  }

  const FaultNames& names_;
  const Job* job_;
  Diagnostics& diagnostics_;
};

}  // namespace

void LoadFaultAnchor(const ProtoCursor& when, const FaultNames& names, const Job* job,
                     FaultAnchor& anchor, Diagnostics& diagnostics) {
  AnchorLoader(names, job, diagnostics).Load(when, anchor);
}

}  // namespace railyard
