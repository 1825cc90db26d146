// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/metrics/run_metrics.h"
#include "analysis/writers/cells.h"
#include "analysis/writers/figure_paths.h"
#include "analysis/writers/result_tables.h"
#include "analysis/writers/summary.h"

namespace railyard {
namespace {

struct Figure {
  std::string_view key;
  Cell value;
};

std::vector<Figure> FiguresOfRun(const RunResult& r) {
  return {
      {"schema_version", int64_t{kSummarySchemaVersion}},
      {"scenario", TextCell(r.scenario)},
      {"mode", RunModeName(r.mode)},
      {"fingerprint", TextCell(r.fingerprint)},
      {"status", RunStatusName(r.status)},
      {"status_detail", TextCell(r.status_detail)},
      {"fabric", TextCell(r.fabric)},
      {"servers", IntegerCell(r.server_count)},
      {"gpus", IntegerCell(r.gpu_count)},
      {"simulated_time_ps", r.simulated_time_ps},
      {"baseline_simulated_time_ps", r.has_baseline ? Cell(r.baseline_simulated_time_ps) : Cell()},
      {"wall_seconds", r.wall_seconds},
      {"cpu_seconds", r.cpu_seconds},
      {"baseline_cpu_seconds", r.baseline_cpu_seconds},
      {"peak_rss_bytes", IntegerCell(r.peak_rss_bytes)},
      {"threads", IntegerCell(r.threads)},
      {"threads_why", TextCell(r.threads_why)},
      {"events", IntegerCell(r.events)},
      {"transfers_seen", IntegerCell(r.transfers_seen)},
      {"packets", IntegerCell(r.packets)},
      {"packet_hops", IntegerCell(r.packet_hops)},
      {"control_hops", IntegerCell(r.control_hops)},
      {"short_form_hops", IntegerCell(r.short_form_hops)},
      {"calls", IntegerCell(r.calls)},
      {"simulated_collectives", IntegerCell(r.simulated_collectives)},
      {"replayed_collectives", IntegerCell(r.replayed_collectives)},
      {"replayed_by_part", IntegerCell(r.replayed_by_partition)},
      {"replayed_by_like_part", IntegerCell(r.replayed_by_like_partition)},
      {"verified_episodes", IntegerCell(r.verified_episodes)},
      {"payload_bytes", IntegerCell(r.payload_bytes)},
      {"payload_left_server_bytes", IntegerCell(r.payload_left_server_bytes)},
      {"payload_reached_spine_bytes", IntegerCell(r.payload_reached_spine_bytes)},
      {"retransmitted_packets", IntegerCell(r.transport.retransmitted_packets)},
      {"timeouts", IntegerCell(r.transport.timeouts)},
      {"nacks", IntegerCell(r.transport.nacks)},
      {"ecn_marked", IntegerCell(r.transport.ecn_marked)},
      {"cnp", IntegerCell(r.transport.cnp)},
      {"pfc_pause_ps", IntegerCell(r.transport.pfc_pause_ps)},
      {"qp_errors", IntegerCell(r.transport.qp_errors)},
      {"port_failovers", IntegerCell(r.transport.port_failovers)},
      {"port_recoveries", IntegerCell(r.transport.port_recoveries)},
      {"nic_failovers", IntegerCell(r.transport.nic_failovers)},
      {"missing_packets", IntegerCell(r.transport.missing_packets)},
      {"missing_bytes", IntegerCell(r.transport.missing_bytes)},
      {"reliable_simulated_time_ps",
       r.reliable_simulated_time_ps != 0 ? Cell(r.reliable_simulated_time_ps) : Cell()},
      {"injected_bytes", IntegerCell(r.conservation.injected_bytes)},
      {"replicated_bytes", IntegerCell(r.conservation.replicated_bytes)},
      {"delivered_bytes", IntegerCell(r.conservation.delivered_bytes)},
      {"reduced_bytes", IntegerCell(r.conservation.reduced_bytes)},
      {"dropped_bytes", IntegerCell(r.conservation.dropped_bytes)},
      {"in_flight_bytes", IntegerCell(r.conservation.in_flight_bytes)},
      {"conservation_ok", r.conservation.Holds()}};
}

// Holds figures with the texts that they refer to.
class RunFigures final : public FigurePaths {
 public:
  explicit RunFigures(const RunResult& result) : figures_(FiguresOfRun(result)) {
    // A seed may need the 64th bit, which the database's integers do not have.
    figures_.push_back({"seed", Keep(std::to_string(result.seed))});
    VisitSummary(result, *this);
  }

  const std::vector<Figure>& figures() const { return figures_; }

  void Text(const char* key, std::string_view value) override { Add(key, value); }
  void Number(const char* key, std::optional<uint64_t> value) override {
    if (!value) return Null(key);
    // As for the seed.
    if (*value > INT64_MAX) return Text(key, std::to_string(*value));
    Add(key, IntegerCell(*value));
  }
  void Signed(const char* key, std::optional<int64_t> value) override {
    Add(key, SignedCell(value));
  }
  void Real(const char* key, std::optional<double> value) override { Add(key, RealCell(value)); }
  void Flag(const char* key, bool value) override { Add(key, value); }
  void Null(const char* key) override { Add(key, Cell()); }

 private:
  std::string_view Keep(std::string text) { return texts_.emplace_back(std::move(text)); }

  // Adds what is in no list and not among the figures already, by its path.
  void Add(const char* key, Cell value) {
    if (IsInArray()) return;
    std::string path = PathOf(key);
    if (std::ranges::count(figures_, path, &Figure::key) > 0) return;
    if (const auto* const text = std::get_if<std::string_view>(&value)) {
      value = Keep(std::string(*text));
    }
    figures_.push_back({Keep(std::move(path)), value});
  }

  std::deque<std::string> texts_;
  std::vector<Figure> figures_;
};

}  // namespace

ResultTable RunFiguresTable(const RunResult& result) {
  const auto run = std::make_shared<const RunFigures>(result);
  return {.name = "run",
          .columns = {{"key", ColumnType::kText}, {"value", ColumnType::kAny}},
          .row_count = run->figures().size(),
          .append_row = [run](size_t row, std::vector<Cell>& cells) {
            const Figure& figure = run->figures()[row];
            cells.insert(cells.end(), {figure.key, figure.value});
          }};
}

ResultTable NotesTable(const RunResult& result) {
  return {.name = "notes",
          .columns = {{"note", ColumnType::kText}},
          .row_count = result.notes.size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            cells.push_back(TextCell(result.notes[row]));
          }};
}

}  // namespace railyard
