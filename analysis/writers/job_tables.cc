// SPDX-License-Identifier: GPL-2.0-only
#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/metrics/job_metrics.h"
#include "analysis/metrics/run_metrics.h"
#include "analysis/writers/cells.h"
#include "analysis/writers/known_time.h"
#include "analysis/writers/result_tables.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

void AppendCollective(const RunResult& result, size_t row, std::vector<Cell>& cells) {
  const CollectiveResult& c = result.collectives[row];
  const bool started = c.last_start_ps != kNeverPs;
  const bool has_baseline = result.has_baseline && c.baseline_duration_ps != 0;
  const auto added = [&](int64_t AddedTime::*part) {
    return has_baseline && c.completed ? Cell(c.added.*part) : Cell();
  };
  const auto rank = [](uint32_t number) {
    return number == UINT32_MAX ? Cell() : IntegerCell(number);
  };
  cells.insert(cells.end(), {IntegerCell(row),
                             TextCell(c.kind),
                             TextCell(c.communicator),
                             IntegerCell(c.rank_count),
                             IntegerCell(c.bytes),
                             TextCell(c.logged),
                             TextCell(c.replayed),
                             SignedCell(UnlessNever(c.first_start_ps)),
                             SignedCell(UnlessNever(c.last_start_ps)),
                             c.completed ? Cell(c.last_end_ps) : Cell(),
                             c.completed ? Cell(c.duration_ps()) : Cell(),
                             started ? Cell(c.wait_ps()) : Cell(),
                             c.bound_ps,
                             RealCell(Slowdown(c)),
                             RealCell(BusbwGBps(c)),
                             has_baseline ? Cell(c.baseline_duration_ps) : Cell(),
                             RealCell(Stretch(result, c)),
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
                             TextCell(c.source),
                             TextCell(result.jobs[c.job].name),
                             c.alone_duration_ps != 0 ? Cell(c.alone_duration_ps) : Cell(),
                             RealCell(Interference(result, c)),
                             c.measured_ps != 0 ? Cell(c.measured_ps) : Cell(),
                             RealCell(MeasuredRatio(c))});
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
                         {IntegerCell(transfer.collective), IntegerCell(transfer.source_gpu),
                          IntegerCell(transfer.destination_gpu), IntegerCell(transfer.bytes),
                          transfer.ready_ps, transfer.posted_ps, transfer.acknowledged_ps});
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
            cells.insert(cells.end(), {IntegerCell(wait.rank), IntegerCell(wait.source_rank),
                                       IntegerCell(wait.destination_rank), IntegerCell(wait.calls),
                                       wait.waited_ps});
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
            const JobOutcome outcome = OutcomeOfJob(result, job);
            const RestartResult& restart = job.restart;
            const AbortResult& abort = job.abort;
            cells.insert(cells.end(), {TextCell(job.name),
                                       RunStatusName(job.status),
                                       IntegerCell(job.gpu_count),
                                       job.start_ps,
                                       job.end_ps,
                                       SignedCell(AloneTimePs(job)),
                                       RealCell(Interference(result, job)),
                                       IntegerCell(restart.restarts),
                                       RealCell(outcome.goodput),
                                       SignedCell(outcome.lost_ps),
                                       RealCell(outcome.effective_training_time_ratio),
                                       restart.rework_ps,
                                       restart.detection_ps + abort.detection_ps,
                                       restart.requeue_ps,
                                       restart.load_ps,
                                       restart.save_ps,
                                       IntegerCell(restart.servers_replaced),
                                       SignedCell(UnlessNegative(abort.first_error_ps)),
                                       IntegerCell(abort.ranks_with_error),
                                       IntegerCell(abort.ranks_hung)});
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
                         {IntegerCell(row + 1), parts.total_ps(), parts.compute_ps, parts.tensor_ps,
                          parts.expert_ps, parts.pipeline_ps, parts.data_ps, parts.wait_ps,
                          parts.bubble_ps, parts.overlap_ps, parts.CommunicationShare()});
          }};
}

}  // namespace railyard
