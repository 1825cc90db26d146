// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/writers/result_tables.h"

#include <optional>
#include <string_view>
#include <vector>

#include "analysis/metrics/job_metrics.h"
#include "analysis/metrics/run_metrics.h"
#include "simulator/units/units.h"

namespace railyard {

namespace {

Cell Integer(uint64_t value) { return static_cast<int64_t>(value); }
Cell Time(int64_t time_ps) { return time_ps == kNeverPs ? Cell() : Cell(time_ps); }
// For times that say "never" with -1.
Cell TimeOrNegative(int64_t time_ps) { return time_ps < 0 ? Cell() : Cell(time_ps); }
Cell Text(std::string_view text) { return text; }
Cell Real(std::optional<double> value) { return value ? Cell(*value) : Cell(); }

void AppendCollective(const RunResult& result, size_t row, std::vector<Cell>& cells) {
  const CollectiveResult& c = result.collectives[row];
  const bool started = c.last_start_ps != kNeverPs;
  const bool has_baseline = result.has_baseline && c.baseline_duration_ps != 0;
  const auto added = [&](int64_t AddedTime::*part) {
    return has_baseline && c.completed ? Cell(c.added.*part) : Cell();
  };
  const auto rank = [](uint32_t number) { return number == UINT32_MAX ? Cell() : Integer(number); };
  cells.insert(cells.end(), {Integer(row),
                             Text(c.kind),
                             Text(c.communicator),
                             Integer(c.rank_count),
                             Integer(c.bytes),
                             Text(c.logged),
                             Text(c.replayed),
                             Time(c.first_start_ps),
                             Time(c.last_start_ps),
                             c.completed ? Cell(c.last_end_ps) : Cell(),
                             c.completed ? Cell(c.duration_ps()) : Cell(),
                             started ? Cell(c.wait_ps()) : Cell(),
                             c.bound_ps,
                             Real(Slowdown(c)),
                             Real(BusbwGBps(c)),
                             has_baseline ? Cell(c.baseline_duration_ps) : Cell(),
                             Real(Stretch(result, c)),
                             c.completed,
                             c.hit_by_fault,
                             added(&AddedTime::queueing_ps),
                             added(&AddedTime::retransmission_ps),
                             added(&AddedTime::timeout_ps),
                             added(&AddedTime::rerouting_ps),
                             added(&AddedTime::slow_peer_ps),
                             added(&AddedTime::other_ps),
                             rank(c.held_up_by_source),
                             rank(c.held_up_by_destination),
                             Text(c.source),
                             Text(result.jobs[c.job].name),
                             c.alone_duration_ps != 0 ? Cell(c.alone_duration_ps) : Cell(),
                             Real(Interference(result, c)),
                             c.measured_ps != 0 ? Cell(c.measured_ps) : Cell(),
                             Real(MeasuredRatio(c))});
}

}  // namespace

ResultTable CollectivesTable(const RunResult& result) {
  return {.name = "collectives",
          .columns = {{"collective_index", ColumnType::kInteger},
                      {"kind", ColumnType::kText},
                      {"communicator", ColumnType::kText},
                      {"ranks", ColumnType::kInteger},
                      {"bytes", ColumnType::kInteger},
                      {"logged", ColumnType::kText},
                      {"replayed", ColumnType::kText},
                      {"start_ps", ColumnType::kInteger},
                      {"last_start_ps", ColumnType::kInteger},
                      {"end_ps", ColumnType::kInteger},
                      {"duration_ps", ColumnType::kInteger},
                      {"wait_ps", ColumnType::kInteger},
                      {"bound_ps", ColumnType::kInteger},
                      {"slowdown", ColumnType::kReal},
                      {"busbw_GBps", ColumnType::kReal},
                      {"baseline_duration_ps", ColumnType::kInteger},
                      {"stretch", ColumnType::kReal},
                      {"completed", ColumnType::kBoolean},
                      {"hit_by_fault", ColumnType::kBoolean},
                      {"added_queueing_ps", ColumnType::kInteger},
                      {"added_retransmission_ps", ColumnType::kInteger},
                      {"added_timeout_ps", ColumnType::kInteger},
                      {"added_rerouting_ps", ColumnType::kInteger},
                      {"added_slow_peer_ps", ColumnType::kInteger},
                      {"added_other_ps", ColumnType::kInteger},
                      {"held_up_by_source", ColumnType::kInteger},
                      {"held_up_by_destination", ColumnType::kInteger},
                      {"source", ColumnType::kText},
                      {"job", ColumnType::kText},
                      {"alone_duration_ps", ColumnType::kInteger},
                      {"interference", ColumnType::kReal},
                      {"measured_ps", ColumnType::kInteger},
                      {"measured_ratio", ColumnType::kReal}},
          .row_count = result.collectives.size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            AppendCollective(result, row, cells);
          }};
}

ResultTable JobsTable(const RunResult& result) {
  return {.name = "jobs",
          .columns = {{"job", ColumnType::kText},
                      {"status", ColumnType::kText},
                      {"gpus", ColumnType::kInteger},
                      {"start_ps", ColumnType::kInteger},
                      {"end_ps", ColumnType::kInteger},
                      {"alone_time_ps", ColumnType::kInteger},
                      {"interference", ColumnType::kReal},
                      {"restarts", ColumnType::kInteger},
                      {"goodput", ColumnType::kReal},
                      {"lost_ps", ColumnType::kInteger},
                      {"effective_training_time_ratio", ColumnType::kReal},
                      {"rework_ps", ColumnType::kInteger},
                      {"detection_ps", ColumnType::kInteger},
                      {"requeue_ps", ColumnType::kInteger},
                      {"load_ps", ColumnType::kInteger},
                      {"save_ps", ColumnType::kInteger},
                      {"servers_replaced", ColumnType::kInteger},
                      {"first_error_ps", ColumnType::kInteger},
                      {"ranks_with_error", ColumnType::kInteger},
                      {"ranks_hung", ColumnType::kInteger}},
          .row_count = result.jobs.size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            const JobResult& job = result.jobs[row];
            const std::optional<int64_t> alone_ps = AloneTimePs(job);
            const JobOutcome outcome = OutcomeOfJob(result, job);
            const RestartResult& restart = job.restart;
            const AbortResult& abort = job.abort;
            cells.insert(cells.end(),
                         {Text(job.name),
                          RunStatusName(job.status),
                          Integer(job.gpu_count),
                          job.start_ps,
                          job.end_ps,
                          alone_ps ? Cell(*alone_ps) : Cell(),
                          Real(Interference(result, job)),
                          Integer(restart.restarts),
                          Real(outcome.goodput),
                          outcome.lost_ps ? Cell(*outcome.lost_ps) : Cell(),
                          Real(outcome.effective_training_time_ratio),
                          restart.rework_ps,
                          restart.detection_ps + abort.detection_ps,
                          restart.requeue_ps,
                          restart.load_ps,
                          restart.save_ps,
                          Integer(restart.servers_replaced),
                          abort.first_error_ps < 0 ? Cell() : Cell(abort.first_error_ps),
                          Integer(abort.ranks_with_error),
                          Integer(abort.ranks_hung)});
          }};
}

ResultTable PairsTable(const RunResult& result) {
  return {.name = "pairs",
          .columns = {{"source_gpu", ColumnType::kInteger},
                      {"destination_gpu", ColumnType::kInteger},
                      {"tiers_crossed", ColumnType::kText},
                      {"payload_bytes", ColumnType::kInteger}},
          .row_count = result.pairs.size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            const PairResult& pair = result.pairs[row];
            cells.insert(cells.end(), {Integer(pair.source_gpu), Integer(pair.destination_gpu),
                                       Text(pair.tiers), Integer(pair.payload_bytes)});
          }};
}

ResultTable InNetworkTable(const RunResult& result) {
  return {.name = "in_network",
          .columns = {{"gpu", ColumnType::kInteger},
                      {"switches", ColumnType::kText},
                      {"operation", ColumnType::kText},
                      {"tiers_crossed", ColumnType::kText},
                      {"sent_bytes", ColumnType::kInteger},
                      {"received_bytes", ColumnType::kInteger}},
          .row_count = result.in_network.size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            const InNetworkResult& of_gpu = result.in_network[row];
            cells.insert(cells.end(), {Integer(of_gpu.gpu), Text(of_gpu.switches),
                                       Text(of_gpu.operation), Text(of_gpu.tiers),
                                       Integer(of_gpu.sent_bytes), Integer(of_gpu.received_bytes)});
          }};
}

ResultTable LinksTable(const RunResult& result) {
  return {.name = "links",
          .columns = {{"link", ColumnType::kText},
                      {"tier", ColumnType::kText},
                      {"rate_bps", ColumnType::kInteger},
                      {"payload_bytes", ColumnType::kInteger},
                      {"header_bytes", ColumnType::kInteger},
                      {"retransmitted_bytes", ColumnType::kInteger},
                      {"packets", ColumnType::kInteger},
                      {"dropped_packets", ColumnType::kInteger}},
          .row_count = result.links.size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            const LinkResult& link = result.links[row];
            cells.insert(cells.end(), {Text(link.name), Text(link.tier), Integer(link.rate_bps),
                                       Integer(link.payload_bytes), Integer(link.header_bytes),
                                       Integer(link.retransmitted_bytes), Integer(link.packets),
                                       Integer(link.dropped_packets)});
          }};
}

ResultTable TrafficTable(const RunResult& result) {
  return {.name = "traffic",
          .columns = {{"link", ColumnType::kText},
                      {"tier", ColumnType::kText},
                      {"flows", ColumnType::kInteger},
                      {"flow_entropy_bits", ColumnType::kReal},
                      {"bursts", ColumnType::kInteger},
                      {"on_ps", ColumnType::kInteger},
                      {"period_ps", ColumnType::kInteger},
                      {"duty", ColumnType::kReal}},
          .row_count = result.links.size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            const LinkResult& link = result.links[row];
            cells.insert(
                cells.end(),
                {Text(link.name), Text(link.tier), Integer(link.flows), link.flow_entropy_bits,
                 Integer(link.load.bursts), link.load.on_ps,
                 link.load.period_ps ? Cell(*link.load.period_ps) : Cell(), Real(link.load.duty)});
          }};
}

ResultTable MessageSizesTable(const RunResult& result) {
  return {.name = "message_sizes",
          .columns = {{"bytes", ColumnType::kInteger}, {"messages", ColumnType::kInteger}},
          .row_count = result.traffic.message_sizes.size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            const MessageSizeResult& size = result.traffic.message_sizes[row];
            cells.insert(cells.end(), {Integer(size.bytes), Integer(size.count)});
          }};
}

ResultTable IterationsTable(const RunResult& result) {
  return {.name = "iterations",
          .columns = {{"job", ColumnType::kText},
                      {"iteration", ColumnType::kInteger},
                      {"drift", ColumnType::kReal},
                      {"all_to_all_drift", ColumnType::kReal},
                      {"all_to_all_imbalance", ColumnType::kReal}},
          .row_count = result.traffic.iterations.size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            const IterationResult& iteration = result.traffic.iterations[row];
            cells.insert(cells.end(),
                         {Text(result.jobs[iteration.job].name), Integer(iteration.iteration),
                          Real(iteration.drift), Real(iteration.all_to_all_drift),
                          Real(iteration.all_to_all_imbalance)});
          }};
}

ResultTable IterationPairsTable(const RunResult& result) {
  return {.name = "iteration_pairs",
          .columns = {{"job", ColumnType::kText},
                      {"iteration", ColumnType::kInteger},
                      {"kind", ColumnType::kText},
                      {"layer", ColumnType::kInteger},
                      {"source_gpu", ColumnType::kInteger},
                      {"destination_gpu", ColumnType::kInteger},
                      {"payload_bytes", ColumnType::kInteger}},
          .row_count = result.traffic.iteration_pairs.size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            const IterationPairResult& pair = result.traffic.iteration_pairs[row];
            const bool has_layer = pair.layer != IterationPairResult::kNoLayer;
            cells.insert(cells.end(), {Text(result.jobs[pair.job].name), Integer(pair.iteration),
                                       Text(pair.kind), has_layer ? Integer(pair.layer) : Cell(),
                                       Integer(pair.source_gpu), Integer(pair.destination_gpu),
                                       Integer(pair.payload_bytes)});
          }};
}

ResultTable TransfersTable(const RunResult& result) {
  return {.name = "transfers",
          .columns = {{"collective_index", ColumnType::kInteger},
                      {"source_gpu", ColumnType::kInteger},
                      {"destination_gpu", ColumnType::kInteger},
                      {"bytes", ColumnType::kInteger},
                      {"ready_ps", ColumnType::kInteger},
                      {"posted_ps", ColumnType::kInteger},
                      {"acknowledged_ps", ColumnType::kInteger}},
          .row_count = result.transfers.size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            const TransferResult& transfer = result.transfers[row];
            cells.insert(cells.end(),
                         {Integer(transfer.collective), Integer(transfer.source_gpu),
                          Integer(transfer.destination_gpu), Integer(transfer.bytes),
                          transfer.ready_ps, transfer.posted_ps, transfer.acknowledged_ps});
          }};
}

ResultTable BreakdownTable(const RunResult& result) {
  return {.name = "breakdown",
          .columns = {{"iteration", ColumnType::kInteger},
                      {"total_ps", ColumnType::kInteger},
                      {"compute_ps", ColumnType::kInteger},
                      {"tensor_ps", ColumnType::kInteger},
                      {"expert_ps", ColumnType::kInteger},
                      {"pipeline_ps", ColumnType::kInteger},
                      {"data_ps", ColumnType::kInteger},
                      {"wait_ps", ColumnType::kInteger},
                      {"bubble_ps", ColumnType::kInteger},
                      {"overlap_ps", ColumnType::kInteger},
                      {"communication_share", ColumnType::kReal}},
          .row_count = result.estimate ? result.estimate->simulated.size() : 0,
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            const TimeBreakdown& parts = result.estimate->simulated[row];
            cells.insert(cells.end(),
                         {Integer(row + 1), parts.total_ps(), parts.compute_ps, parts.tensor_ps,
                          parts.expert_ps, parts.pipeline_ps, parts.data_ps, parts.wait_ps,
                          parts.bubble_ps, parts.overlap_ps, parts.CommunicationShare()});
          }};
}

ResultTable DropsTable(const RunResult& result) {
  return {
      .name = "drops",
      .columns = {{"reason", ColumnType::kText},
                  {"packets", ColumnType::kInteger},
                  {"bytes", ColumnType::kInteger}},
      .row_count = result.drops.size(),
      .append_row = [&result](size_t row, std::vector<Cell>& cells) {
        const DropResult& drop = result.drops[row];
        cells.insert(cells.end(), {Text(drop.reason), Integer(drop.packets), Integer(drop.bytes)});
      }};
}

ResultTable WaitsTable(const RunResult& result) {
  return {.name = "waits",
          .columns = {{"rank", ColumnType::kInteger},
                      {"source_rank", ColumnType::kInteger},
                      {"destination_rank", ColumnType::kInteger},
                      {"calls", ColumnType::kInteger},
                      {"waited_ps", ColumnType::kInteger}},
          .row_count = result.waits.size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            const WaitResult& wait = result.waits[row];
            cells.insert(cells.end(),
                         {Integer(wait.rank), Integer(wait.source_rank),
                          Integer(wait.destination_rank), Integer(wait.calls), wait.waited_ps});
          }};
}

ResultTable FaultsTable(const RunResult& result) {
  return {.name = "faults",
          .columns = {{"name", ColumnType::kText},
                      {"kind", ColumnType::kText},
                      {"target", ColumnType::kText},
                      {"from_ps", ColumnType::kInteger},
                      {"until_ps", ColumnType::kInteger},
                      {"begins", ColumnType::kInteger},
                      {"dropped_packets", ColumnType::kInteger},
                      {"retransmitted_bytes", ColumnType::kInteger},
                      {"collectives_hit", ColumnType::kInteger},
                      {"ranks_hit", ColumnType::kInteger},
                      {"bytes_hit", ColumnType::kInteger},
                      {"time_to_detect_ps", ColumnType::kInteger},
                      {"first_retransmission_ps", ColumnType::kInteger},
                      {"time_to_recover_ps", ColumnType::kInteger},
                      {"time_to_full_busbw_ps", ColumnType::kInteger}},
          .row_count = result.faults.size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            const FaultResult& fault = result.faults[row];
            const std::optional<int64_t> full_busbw_ps = TimeToFullBusbwPs(result, fault);
            cells.insert(cells.end(),
                         {Text(fault.name), Text(fault.kind), Text(fault.target),
                          Time(fault.from_ps), Time(fault.until_ps), Integer(fault.begins),
                          Integer(fault.dropped_packets), Integer(fault.retransmitted_bytes),
                          Integer(fault.collectives.size()), Integer(fault.ranks_hit),
                          Integer(fault.bytes_hit), TimeOrNegative(fault.time_to_detect_ps),
                          TimeOrNegative(fault.first_retransmission_ps),
                          TimeOrNegative(fault.time_to_recover_ps),
                          full_busbw_ps ? Cell(*full_busbw_ps) : Cell()});
          }};
}

ResultTable NotesTable(const RunResult& result) {
  return {.name = "notes",
          .columns = {{"note", ColumnType::kText}},
          .row_count = result.notes.size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            cells.push_back(Text(result.notes[row]));
          }};
}

}  // namespace railyard
