// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/result_recorder.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/diagnostics/check.h"
#include "simulator/diagnostics/names.h"
#include "simulator/run/iteration_recorder.h"
#include "simulator/run/pair_ledger.h"
#include "simulator/run/traffic_ledger.h"
#include "simulator/units/mix64.h"
#include "simulator/units/time_end.h"
#include "simulator/units/units.h"
#include "workloads/collectives/collective_sizes.h"
#include "workloads/collectives/replayable.h"

namespace railyard {

namespace {

double BusbwFactorOf(const JobCollective& collective) {
  return collective.is_all_to_all_v ? AllToAllvBusbwFactor(collective.rank_count)
                                    : BusbwFactor(collective.kind, collective.rank_count);
}

class Recorder {
 public:
  explicit Recorder(const RecordedSimulation& simulation)
      : scenario_(simulation.scenario),
        job_(simulation.job),
        network_(simulation.network),
        replay_(simulation.replay),
        losses_(simulation.losses),
        faults_(simulation.faults),
        interruption_(simulation.interruption),
        goes_on_(simulation.goes_on),
        is_within_event_(simulation.is_within_event) {}

  RunResult Record() {
    RecordRun();
    RecordCollectives();
    RecordLinks();
    PairLedger(scenario_.fabric, replay_.executor().connection_table()).Record(result_);
    TrafficLedger(job_, replay_.executor().connection_table(), result_.links.size())
        .Record(job_, replay_, result_);
    IterationRecorder(scenario_, job_, replay_, result_).Record();
    RecordWaits();
    RecordDropsAndFaults();
    RecordConservation();
    result_.fingerprint = Fingerprint();
    if (network_.settings().hashes_trajectory) {
      result_.trajectory_hash = fmt::format("{:016x}", network_.taps().trajectory_hash());
    }
    return std::move(result_);
  }

 private:
  void RecordRun() {
    result_.scenario = scenario_.name;
    result_.seed = scenario_.seed;
    result_.mode = scenario_.stack.uses_flows ? RunMode::kFlow : RunMode::kPacket;
    result_.fabric = scenario_.fabric.name;
    result_.server_count = scenario_.fabric.server_count();
    result_.gpu_count = static_cast<uint32_t>(scenario_.fabric.gpus().size());
    result_.simulated_time_ps = std::min(replay_.end_ps(), kTimeEndPs);
    result_.calls = replay_.ledger().calls_started();
    result_.notes = scenario_.notes;
    for (std::string& note : replay_.plans().Assumptions())
      result_.notes.push_back(std::move(note));
    for (ReplayObstacle& obstacle : replay_.replay_obstacles()) {
      result_.notes.push_back(
          fmt::format("The replay cache does not cover {}: {}.", obstacle.owner, obstacle.why));
      result_.never_replayed.push_back({std::move(obstacle.owner), std::move(obstacle.why)});
    }
    result_.verified_episodes = replay_.episodes_verified();
    RecordJobs();
    const NetworkCounters& counters = network_.counters();
    result_.packets = counters.packets;
    result_.packet_hops = counters.packet_hops;
    result_.control_hops = counters.control_hops;
    const uint64_t hops = counters.packet_hops + counters.control_hops;
    result_.short_form_hops = hops - std::min(counters.general_hops, hops);
    for (const HoldReport& report : network_.hold_reports()) {
      result_.notes.push_back(NoteOf(report));
    }
  }

  // The run's status is the worst of its jobs': aborted, else stalled. If the run was interrupted,
  // the outcome of its jobs is unknown.
  void RecordJobs() {
    const std::vector<JobPart>& parts = job_.parts;
    if (!replay_.is_complete() || replay_.HasReachedTimeEnd()) {
      result_.status = StatusOfUnfinished();
      result_.status_detail = WhyUnfinished();
    }
    std::string aborts;
    for (PartIndex i{}; i < parts.size(); ++i) {
      const CallLedger::PartProgress& progress = replay_.ledger().parts()[i];
      JobResult job;
      job.name = parts[i].name;
      job.gpu_count = static_cast<uint32_t>(parts[i].global_ranks.size());
      job.start_ps = parts[i].start_ps;
      const int64_t end_ps = replay_.EndOfPartPs(i);
      job.end_ps = std::min(end_ps, kTimeEndPs);
      if (progress.calls_left > 0 || end_ps > kTimeEndPs) job.status = StatusOfUnfinished();
      if (!progress.abort_reason.empty()) {
        job.status = RunStatus::kJobAborted;
        aborts += aborts.empty() ? "" : "\n";
        if (parts.size() > 1) aborts += "job " + parts[i].name + ": ";
        aborts += progress.abort_reason;
      }
      result_.jobs.push_back(std::move(job));
    }
    if (aborts.empty()) return;
    if (result_.status != RunStatus::kInterrupted && result_.status != RunStatus::kRunning) {
      result_.status = RunStatus::kJobAborted;
    }
    if (!result_.status_detail.empty()) aborts += "\n" + result_.status_detail;
    result_.status_detail = aborts;
  }

  RunStatus StatusOfUnfinished() const {
    if (goes_on_) return RunStatus::kRunning;
    if (!interruption_.empty()) return RunStatus::kInterrupted;
    return replay_.HasReachedTimeEnd() ? RunStatus::kTimeEnded : RunStatus::kStalled;
  }

  std::string WhyUnfinished() const {
    if (goes_on_) return "these are its results so far";
    if (!interruption_.empty()) return interruption_;
    if (!replay_.HasReachedTimeEnd()) return replay_.ExplainWaiting();
    return fmt::format("simulated time ends after {}, before the job does",
                       FormatDuration(kTimeEndPs));
  }

  void RecordCollectives() {
    const Job& job = job_;
    std::vector<std::string_view> communicators;
    for (const TraceCommunicator& communicator : job.communicators) {
      communicators.push_back(Keep(communicator.name));
    }
    std::vector<bool> is_hit(job.collectives.size());
    for (const LossRecorder::FaultLosses& losses : losses_.losses()) {
      for (const CollectiveIndex collective : losses.collectives) is_hit[collective] = true;
    }
    result_.collectives.reserve(job.collectives.size());
    for (CollectiveIndex i{}; i < job.collectives.size(); ++i) {
      const JobCollective& collective = job.collectives[i];
      const CollectiveTimes& times = replay_.ledger().times()[i];
      CollectiveResult row;
      row.job = job.PartOf(collective.communicator);
      row.kind = KindName(collective);
      row.communicator = communicators[collective.communicator];
      row.rank_count = collective.rank_count;
      row.bytes = collective.bytes;
      row.busbw_factor = BusbwFactorOf(collective);
      if (collective.logged_algorithm != Algorithm::kUnstated) {
        row.logged = NameOf({collective.logged_algorithm, collective.logged_protocol});
      }
      row.replayed = collective.is_p2p() ? Keep(P2pReplayName(collective))
                                         : NameOf(replay_.plans().ReplayedBy(i));
      if (collective.source_line > 0) {
        row.source = Keep(
            fmt::format("{}:{}", job.source_files[collective.source_file], collective.source_line));
      }
      row.first_start_ps = times.first_start_ps;
      row.last_start_ps = times.last_start_ps;
      row.last_end_ps = times.last_end_ps;
      row.bound_ps = times.bound_ps;
      row.completed = times.last_end_ps != kNeverPs;
      row.hit_by_fault = is_hit[i];
      row.measured_ps = collective.measured_ps;
      if (row.completed && !scenario_.faults.empty()) {
        row.held_up_by_source = replay_.ledger().paths()[i].worst_from;
        row.held_up_by_destination = replay_.ledger().paths()[i].worst_to;
      }
      if (row.completed) {
        const bool is_replayed = times.replayed_by != ReplayRule::kNone;
        ++(is_replayed ? result_.replayed_collectives : result_.simulated_collectives);
        if (times.replayed_by == ReplayRule::kPartition) ++result_.replayed_by_partition;
        if (times.replayed_by == ReplayRule::kLikePartition) ++result_.replayed_by_like_partition;
      }
      result_.collectives.push_back(row);
    }
  }

  std::string_view Keep(std::string_view text) { return result_.texts->Keep(text); }

  std::string_view NameOf(const ReplayChoice& choice) {
    const auto [name, is_new] = choice_names_.try_emplace(choice);
    if (is_new) name->second = Keep(ReplayName(choice));
    return name->second;
  }

  void RecordLinks() {
    const FabricGraph& graph = scenario_.fabric;
    result_.links.reserve(graph.link_count());
    for (LinkId id{0}; id < graph.link_count(); ++id) {
      const LinkProperties& link = graph.link(id);
      const LinkCounters counters = network_.CountersOfLink(id);
      result_.links.push_back({.name = result_.texts->Add(link.name),
                               .tier = TierName(link.tier),
                               .rate_bps = link.rate_bps,
                               .payload_bytes = counters.payload_bytes,
                               .header_bytes = counters.header_bytes,
                               .retransmitted_bytes = counters.retransmitted_bytes,
                               .packets = counters.packets,
                               .dropped_packets = counters.dropped_packets});
    }
  }

  // A run without faults may keep paths for whoever shows them.
  void RecordWaits() {
    if (scenario_.faults.empty()) return;
    for (const auto& [wait, totals] : replay_.ledger().waits()) {
      result_.waits.push_back({.rank = wait.rank,
                               .source_rank = wait.source_rank,
                               .destination_rank = wait.destination_rank,
                               .calls = totals.calls,
                               .waited_ps = totals.waited_ps});
    }
  }

  void RecordDropsAndFaults() {
    const NetworkCounters& counters = network_.counters();
    for (size_t reason = 0; reason < kDropReasonCount; ++reason) {
      if (counters.dropped_packets[reason] == 0) continue;
      result_.drops.push_back({.reason = DropReasonName(static_cast<DropReason>(reason)),
                               .packets = counters.dropped_packets[reason],
                               .bytes = counters.dropped_bytes[reason]});
    }
    for (size_t i = 0; i < scenario_.faults.size(); ++i) {
      const FaultSpec& fault = scenario_.faults[i];
      const LossRecorder::FaultLosses& losses = losses_.losses()[i];
      FaultResult row;
      row.name = fault.name;
      row.kind = FaultKindName(fault.kind);
      row.target = fault.target;
      const FaultInjector::History& history = faults_.history(FaultIndex{i});
      row.from_ps = history.first_begin_ps;
      row.until_ps = history.last_end_ps;
      row.begins = history.begins;
      // Known even where the run ended before it began.
      if (history.begins == 0 && fault.timeline.IsOnceAtGivenTime()) {
        row.from_ps = fault.timeline.at_ps;
        row.until_ps = fault.timeline.until_ps;
      }
      row.dropped_packets = losses.packets;
      row.retransmitted_bytes = losses.retransmitted_bytes;
      row.collectives.assign(losses.collectives.begin(), losses.collectives.end());
      row.ranks_hit = static_cast<uint32_t>(losses.gpus.size());
      for (const CollectiveIndex collective : losses.collectives) {
        row.bytes_hit += job_.collectives[collective].bytes;
      }
      if (history.first_detection_ps != kNeverPs) {
        row.time_to_detect_ps = history.first_detection_ps - history.first_begin_ps;
      }
      row.first_retransmission_ps = losses.first_retransmission_ps;
      const bool is_recovered = losses.unrecovered.empty() && losses.halted_parts.empty();
      if (losses.last_recovery_ps >= 0 && is_recovered) {
        row.time_to_recover_ps = losses.last_recovery_ps - row.from_ps;
      }
      result_.faults.push_back(std::move(row));
    }
    const StackCounters rdma = replay_.executor().network_stack().counters();
    result_.transport.ecn_marked = counters.ecn_marked;
    result_.transport.cnp = rdma.cnp;
    result_.transport.pfc_pause_ps = static_cast<uint64_t>(network_.PausedPs());
    result_.transport.retransmitted_packets = rdma.retransmitted_packets;
    result_.transport.timeouts = rdma.timeouts;
    result_.transport.nacks = rdma.nacks;
    result_.transport.qp_errors = rdma.queue_pair_errors;
    const PortCounters ports = replay_.executor().network_stack().port_counters();
    result_.transport.port_failovers = ports.failovers;
    result_.transport.port_recoveries = ports.recoveries;
    result_.transport.nic_failovers = replay_.executor().nic_failovers();
    result_.transport.missing_packets = rdma.missing_packets;
    result_.transport.missing_bytes = rdma.missing_bytes;
    if (rdma.tolerant_messages > 0 && rdma.dispensable_packets == 0) {
      result_.notes.push_back(
          fmt::format("loss_tolerance had no effect: it is rounded down to whole packets of a "
                      "message, and was less than one in each of {}",
                      Counted(rdma.tolerant_messages, "message")));
    }
  }

  void RecordConservation() {
    const NetworkCounters& counters = network_.counters();
    result_.conservation = {.injected_bytes = counters.injected_bytes,
                            .replicated_bytes = counters.replicated_bytes,
                            .delivered_bytes = counters.delivered_bytes,
                            .reduced_bytes = counters.reduced_bytes,
                            .dropped_bytes = counters.dropped_data_bytes(),
                            .in_flight_bytes = network_.InFlightBytes()};
    if (is_within_event_) return;
    SIM_CHECK(result_.conservation.Holds(), "bytes are not conserved");
    if (!replay_.has_ended_in_replay()) network_.CheckConservation();
  }

  std::string NoteOf(const HoldReport& report) const {
    std::string note = fmt::format("{} at {}: {} had to wait for longer than the storm threshold",
                                   HoldKindName(report.kind), FormatDuration(report.time_ps),
                                   scenario_.fabric.link(report.link).name);
    if (report.cycle.empty()) return note;
    return fmt::format("{}; the packets of each link wait for the next: {} -> {}", note,
                       fmt::join(report.cycle, " -> "), report.cycle.front());
  }

  // 128 bits over every operation's start and end per rank, the faults, the final ledgers and what
  // the network reported.
  std::string Fingerprint() const {
    std::string text;
    for (uint64_t hash : replay_.TimesHash()) {
      const auto mix = [&hash](uint64_t value) { hash = Mix64(hash ^ value); };
      mix(static_cast<uint64_t>(result_.status));
      mix(static_cast<uint64_t>(result_.simulated_time_ps));
      for (const FaultSpec& fault : scenario_.faults) {
        mix(static_cast<uint64_t>(fault.kind));
        for (const LinkId link : fault.links) mix(link);
        for (const GpuIndex gpu : fault.gpus) mix(gpu);
        mix(static_cast<uint64_t>(fault.timeline.at_ps));
        mix(static_cast<uint64_t>(fault.timeline.until_ps));
      }
      for (const LinkResult& link : result_.links) {
        mix(link.payload_bytes);
        mix(link.header_bytes);
        mix(link.retransmitted_bytes);
        mix(link.packets);
        mix(link.dropped_packets);
      }
      for (const uint64_t packets : network_.counters().dropped_packets) mix(packets);
      for (const HoldReport& report : network_.hold_reports()) {
        mix(static_cast<uint64_t>(report.time_ps));
        mix(report.link);
        mix(static_cast<uint64_t>(report.kind));
      }
      text += fmt::format("{:016x}", hash);
    }
    return text;
  }

  const Scenario& scenario_;
  const Job& job_;
  const FabricNetwork& network_;
  const ReplayEngine& replay_;
  const LossRecorder& losses_;
  const FaultInjector& faults_;
  const std::string& interruption_;
  const bool goes_on_;
  const bool is_within_event_;
  RunResult result_;
  std::map<ReplayChoice, std::string_view> choice_names_;  // among the result's texts
};

}  // namespace

std::string_view KindName(const JobCollective& collective) {
  if (collective.is_all_to_all_v) return "AllToAllv";
  if (collective.kind == CollectiveKind::kAllToAll) return "AllToAll";
  return collective.kind == CollectiveKind::kSend ? "SendRecv"
                                                  : CollectiveKindName(collective.kind);
}

RunResult RecordResult(const RecordedSimulation& simulation) {
  return Recorder(simulation).Record();
}

}  // namespace railyard
