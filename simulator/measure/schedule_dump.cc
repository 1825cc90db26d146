// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/schedule_dump.h"

#include <algorithm>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "traces/trace/collective_blocks.h"
#include "workloads/collectives/replayable.h"
#include "workloads/collectives/schedule_check.h"
#include "workloads/experts/expert_schedule.h"
#include "workloads/nccl/nccl_chunking.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {
namespace {

std::vector<LanePeer> Named(int32_t named, const std::vector<LanePeer>& listed) {
  if (named == kAllPeers) return listed;
  for (const LanePeer& peer : listed) {
    if (static_cast<int32_t>(peer.rank) == named) return {peer};
  }
  return {};
}

std::string_view UseName(ConnectionUse use) {
  switch (use) {
    case ConnectionUse::kRing:
      return "ring";
    case ConnectionUse::kTree:
      return "tree";
    case ConnectionUse::kExchange:
      return "exchange";
    case ConnectionUse::kPointToPoint:
      return "p2p";
    case ConnectionUse::kSwitchOperand:
      return "operand";
    case ConnectionUse::kSwitchResult:
      return "result";
    case ConnectionUse::kNetworkSum:
      return "network sum";
    case ConnectionUse::kRemoteWrite:
      return "write";
  }
  return "";
}

std::string_view UseName(const Step& step, ConnectionUse use) {
  if (use != ConnectionUse::kNetworkSum) return UseName(use);
  if (step.gathers) return "network gather";
  return step.scatters ? "network scatter" : UseName(use);
}

struct Transfer {
  LaneId lane;
  uint64_t step = 0;
  LanePeer to;
  std::string_view by;
  Step what;
  uint64_t wire_bytes = 0;
};
// Returns the step as sent to a peer: of a piece that the network gathers or scatters, one rank's
// part.
Step SentTo(const LaneId& lane, const Step& step, const LanePeers& peers, const LanePeer& to) {
  if ((!step.gathers && !step.scatters) || to.use != ConnectionUse::kNetworkSum) return step;
  const OwnedPiece piece = OwnedPieceOf(step, peers.send_to, step.gathers ? lane.rank : to.rank);
  Step sent = step;
  sent.pieces = 1;
  sent.stride_bytes = 0;
  sent.offset_bytes = piece.offset_bytes;
  sent.bytes = piece.bytes;
  return sent;
}

template <typename Visit>
void ForEachTransfer(const PlannedCollective& planned, const Visit& visit) {
  for (RankIndex rank{0}; rank < planned.schedules.size(); ++rank) {
    const CollectiveSchedule& schedule = *planned.schedules[rank];
    ForEachLaneOf(schedule, rank, [&](const LaneId& lane) {
      const LanePeers peers = schedule.PeersOf(lane);
      const MessageRule& rule = schedule.MessageRuleOf(lane);
      const uint64_t steps = schedule.StepCount(lane);
      for (uint64_t i = 0; i < steps; ++i) {
        const Step step = schedule.StepAt(lane, i);
        for (const LanePeer& peer : Named(step.send_to, peers.send_to)) {
          const Step sent = SentTo(lane, step, peers, peer);
          // Without a payload it only says that the rank takes part.
          if (sent.bytes == 0 && step.bytes != 0) continue;
          visit(
              Transfer{lane, i, peer, UseName(step, peer.use), sent, WireBytes(rule, sent.bytes)});
        }
      }
    });
  }
}

}  // namespace

PlannedCollective PlanFirstCollective(const Scenario& scenario) {
  const Job& job = scenario.job;
  SIM_CHECK(!job.collectives.empty(), "a job without a collective");
  PlannedCollective planned;
  planned.collective = job.collectives.front();
  const JobCollective& collective = planned.collective;
  const std::vector<GlobalRank>& ranks = job.communicators[collective.communicator].ranks;
  const NcclPlanner& planner = *scenario.planners[collective.communicator];
  planned.assumptions = planner.channels().assumptions;
  planned.schedules.resize(ranks.size());
  if (!collective.is_p2p()) {
    const std::optional<ReplayChoice> choice = planner.Choose(collective, StatedChoice(collective));
    SIM_CHECK(choice.has_value(), "a collective that cannot be replayed");
    planned.name = ReplayName(*choice);
    const auto schedule = planner.Plan(collective, *choice);
    std::fill(planned.schedules.begin(), planned.schedules.end(), schedule);
    return planned;
  }
  planned.name = P2pReplayName(collective);
  for (GlobalRank global_rank{0}; global_rank < job.rank_count; ++global_rank) {
    for (const JobOperation& operation : job.operations[global_rank]) {
      if (operation.is_compute() || job.CollectiveOf(global_rank, operation) != 0) continue;
      const RankIndex rank = job.CommunicatorRank(collective.communicator, global_rank);
      planned.in_place = operation.in_place;
      const std::span calls(job.p2p_calls.data() + operation.p2p_first, operation.p2p_count);
      if (collective.expert_kernel != ExpertKernel::kNone) {
        planned.schedules[rank] = std::make_shared<ExpertSchedule>(planner.layout(), rank, calls);
        continue;
      }
      planned.schedules[rank] =
          planner.PlanP2p(rank, calls.data(), operation.p2p_count, operation.in_place);
    }
  }
  for (RankIndex rank{0}; rank < ranks.size(); ++rank) {
    // A rank that neither sends nor receives.
    if (!planned.schedules[rank]) planned.schedules[rank] = planner.PlanP2p(rank, nullptr, 0);
  }
  return planned;
}

PlannedCollective PlanOf(const std::shared_ptr<const ExplicitAlgorithm>& algorithm,
                         uint64_t bytes) {
  const NcclSettings defaults;
  const SlotRule slot = SlotRuleOf(algorithm->protocol, defaults);
  PlannedCollective planned;
  planned.name = ReplayName({Algorithm::kExplicit, algorithm->protocol});
  planned.collective.kind = algorithm->kind;
  planned.collective.root = algorithm->root;
  planned.collective.datatype = Datatype::kInt8;
  planned.collective.bytes = bytes;
  planned.collective.is_planned_whole = algorithm->kind == CollectiveKind::kAllToAll;
  planned.in_place = algorithm->is_in_place;
  planned.collective.count =
      IsMadeOfBlocks(algorithm->kind) ? bytes / algorithm->rank_count : bytes;
  planned.schedules.assign(
      algorithm->rank_count,
      std::make_shared<ExplicitSchedule>(algorithm, planned.collective.count,
                                         slot.payload_bytes - slot.payload_bytes % slot.grain_bytes,
                                         MessageRule{.line_payload_bytes = slot.line_payload_bytes,
                                                     .line_wire_bytes = slot.line_wire_bytes}));
  return planned;
}

std::string CheckPlanned(const PlannedCollective& planned) {
  const JobCollective& collective = planned.collective;
  return CheckSchedule(
      {.kind = collective.kind,
       .block_bytes = collective.count * DatatypeBytes(collective.datatype),
       .root = collective.root,
       .in_place = planned.in_place,
       .is_whole = !collective.is_p2p()},
      static_cast<uint32_t>(planned.schedules.size()),
      [&](RankIndex rank) -> const CollectiveSchedule& { return *planned.schedules[rank]; });
}

uint64_t StepCountOf(const PlannedCollective& planned) {
  uint64_t steps = 0;
  for (RankIndex rank{0}; rank < planned.schedules.size(); ++rank) {
    const CollectiveSchedule& schedule = *planned.schedules[rank];
    ForEachLaneOf(schedule, rank, [&](const LaneId& lane) { steps += schedule.StepCount(lane); });
  }
  return steps;
}

void WriteScheduleTable(const PlannedCollective& planned, uint64_t rows_max,
                        const TextSink& write) {
  write(fmt::format("{:>7} {:>5} {:>5} {:>5} {:>7} {:>5} {:>15} {:>16} {:>12} {:>6}\n", "channel",
                    "from", "batch", "lane", "step", "to", "by", "offset (B)", "bytes", "pieces"));
  uint64_t rows = 0;
  ForEachTransfer(planned, [&](const Transfer& transfer) {
    if (++rows > rows_max) return;
    write(fmt::format("{:>7} {:>5} {:>5} {:>5} {:>7} {:>5} {:>15} {:>16} {:>12} {:>6}\n",
                      transfer.lane.channel, transfer.lane.rank, transfer.lane.batch,
                      transfer.lane.lane, transfer.step, transfer.to.rank, transfer.by,
                      transfer.what.offset_bytes, transfer.what.bytes, transfer.what.pieces));
  });
  if (rows > rows_max) write(fmt::format("… {} more transfers\n", rows - rows_max));
}

void WriteScheduleJson(const PlannedCollective& planned, const TextSink& write) {
  const MessageRule& rule = planned.schedules.front()->message_rule();
  write(fmt::format(
      "{{\"replayed\":\"{}\",\"ranks\":{},\"slices_per_chunk\":{},"
      "\"in_flight_messages\":{},\"transfers\":[",
      planned.name, planned.schedules.size(), rule.slices_per_chunk, rule.in_flight_messages));
  bool is_first = true;
  ForEachTransfer(planned, [&](const Transfer& transfer) {
    write(
        fmt::format("{}\n{{\"channel\":{},\"from\":{},\"batch\":{},\"lane\":{},\"step\":{},"
                    "\"to\":{},\"by\":\"{}\",\"offset_bytes\":{},\"bytes\":{},\"pieces\":{},"
                    "\"stride_bytes\":{},\"wire_bytes\":{}}}",
                    is_first ? "" : ",", transfer.lane.channel, transfer.lane.rank,
                    transfer.lane.batch, transfer.lane.lane, transfer.step, transfer.to.rank,
                    transfer.by, transfer.what.offset_bytes, transfer.what.bytes,
                    transfer.what.pieces, transfer.what.stride_bytes, transfer.wire_bytes));
    is_first = false;
  });
  write("\n]}\n");
}

std::string WhyNotGoal(const PlannedCollective& planned) {
  std::string why;
  ForEachLaneOf(*planned.schedules.front(), RankIndex{0}, [&](const LaneId& lane) {
    const LanePeers peers = planned.schedules.front()->PeersOf(lane);
    for (const LanePeer& peer : peers.send_to) {
      if (peer.use == ConnectionUse::kSwitchOperand || peer.use == ConnectionUse::kSwitchResult ||
          peer.use == ConnectionUse::kNetworkSum) {
        why = fmt::format("{} has switches add up and copy, which GOAL cannot say", planned.name);
      }
    }
  });
  return why;
}

void WriteScheduleGoal(const PlannedCollective& planned, const TextSink& write) {
  write(fmt::format("num_ranks {}\n", planned.schedules.size()));
  for (RankIndex rank{0}; rank < planned.schedules.size(); ++rank) {
    const CollectiveSchedule& schedule = *planned.schedules[rank];
    write(fmt::format("\nrank {} {{\n", rank));
    uint64_t label = 0;
    // The last operations of the channel's previous batch.
    std::vector<uint64_t> before_batch;
    std::vector<uint64_t> ends;
    LaneId last{};
    ForEachLaneOf(schedule, rank, [&](const LaneId& lane) {
      if (lane.channel != last.channel) {
        before_batch.clear();
        ends.clear();
      } else if (lane.batch != last.batch) {
        before_batch.swap(ends);
        ends.clear();
      }
      last = lane;
      const LanePeers peers = schedule.PeersOf(lane);
      std::vector<uint64_t> required = before_batch;
      const uint64_t steps = schedule.StepCount(lane);
      for (uint64_t i = 0; i < steps; ++i) {
        const Step step = schedule.StepAt(lane, i);
        // Received together, then sent together.
        for (const bool sends : {false, true}) {
          std::vector<uint64_t> made;
          for (const LanePeer& peer : sends ? Named(step.send_to, peers.send_to)
                                            : Named(step.recv_from, peers.recv_from)) {
            ++label;
            write(sends ? fmt::format("l{}: send {}b to {} tag {}\n", label, step.bytes, peer.rank,
                                      lane.channel)
                        : fmt::format("l{}: recv {}b from {} tag {}\n", label, step.bytes,
                                      peer.rank, lane.channel));
            for (const uint64_t one : required) {
              write(fmt::format("l{} requires l{}\n", label, one));
            }
            made.push_back(label);
          }
          if (!made.empty()) required = std::move(made);
        }
      }
      ends.insert(ends.end(), required.begin(), required.end());
    });
    write("}\n");
  }
}

}  // namespace railyard
