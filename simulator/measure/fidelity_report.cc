// SPDX-License-Identifier: GPL-2.0-only
#include <map>

#include <fmt/format.h>

#include "analysis/tables/text_table.h"
#include "analysis/writers/json_writer.h"
#include "simulator/measure/fidelity.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

constexpr uint64_t kLargeBytes = 1u << 20;

std::string Percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }

std::string TableName(const MeasuredRow& row) { return row.source_id + " " + row.collective; }

// Rows of one source, collective and machine, in the order of the input.
std::vector<std::pair<std::string, std::vector<const FidelityRow*>>> ByTable(
    const FidelityResult& result) {
  std::vector<std::pair<std::string, std::vector<const FidelityRow*>>> tables;
  std::map<std::string, size_t> at;
  for (const FidelityRow& row : result.rows) {
    const std::string name =
        fmt::format("{}\n{}", TableName(row.measured), PointOf(row.measured).modelled_as);
    const auto [entry, is_new] = at.try_emplace(name, tables.size());
    if (is_new) tables.push_back({TableName(row.measured), {}});
    tables[entry->second].second.push_back(&row);
  }
  return tables;
}

std::string Summary(const std::vector<double>& errors) {
  if (errors.empty()) return "-";
  return fmt::format("{:.1f} %, p90 {:.1f} % ({})", 100 * ErrorQuantile(errors, 0.5),
                     100 * ErrorQuantile(errors, 0.9), errors.size());
}

}  // namespace

std::string FidelityTable(const FidelityResult& result) {
  std::string text;
  TextTable totals({{"table", Align::kLeft},
                    {"modelled as", Align::kLeft},
                    {"rows"},
                    {"median |error| from 1 MiB", Align::kLeft},
                    {"below", Align::kLeft}});
  for (const auto& [name, rows] : ByTable(result)) {
    TextTable table({{name, Align::kLeft},
                     {"replayed", Align::kLeft},
                     {"measured us"},
                     {"simulated us"},
                     {"error"},
                     {"packet-hops"}});
    std::vector<double> large;
    std::vector<double> small;
    for (const FidelityRow* row : rows) {
      (row->measured.bytes >= kLargeBytes ? large : small).push_back(row->error());
      table.AddRow({FormatBytes(row->measured.bytes), row->replayed,
                    fmt::format("{:.1f}", row->measured.time_us),
                    fmt::format("{:.1f}", row->simulated_us), Percent(row->error()),
                    fmt::format("{}", row->packet_hops)});
    }
    text += table.ToString() + "\n";
    totals.AddRow({name, PointOf(rows.front()->measured).modelled_as,
                   fmt::format("{}", rows.size()), Summary(large), Summary(small)});
  }
  text += totals.ToString();
  std::map<std::string, std::pair<size_t, std::string>> reasons;
  for (const FidelitySkipped& skipped : result.skipped) {
    auto& [count, first] = reasons[TableName(skipped.measured) + ": " + skipped.reason];
    ++count;
  }
  for (const auto& [reason, entry] : reasons) {
    text += fmt::format("not modelled: {} row{} of {}\n", entry.first, entry.first == 1 ? "" : "s",
                        reason);
  }
  if (!result.not_run.empty()) {
    text += fmt::format("not run: {} rows larger than --max-bytes\n", result.not_run.size());
  }
  return text;
}

std::string FidelityJson(const FidelityResult& result) {
  JsonWriter json;
  json.StartObject();
  json.StartArray("rows");
  std::vector<double> errors;
  for (const FidelityRow& row : result.rows) {
    errors.push_back(row.error());
    json.StartObject();
    json.Text("source_id", row.measured.source_id);
    json.Text("collective", row.measured.collective);
    json.Number("nodes", row.measured.nodes);
    json.Number("gpus_per_node", row.measured.gpus_per_node);
    json.Number("bytes", row.measured.bytes);
    json.Real("measured_us", row.measured.time_us);
    json.Real("simulated_us", row.simulated_us);
    json.Real("error", row.error());
    json.Number("packet_hops", row.packet_hops);
    json.Text("replayed", row.replayed);
    json.EndObject();
  }
  json.EndArray();
  json.StartArray("not_run");
  for (const MeasuredRow& row : result.not_run) {
    json.StartObject();
    json.Text("source_id", row.source_id);
    json.Number("bytes", row.bytes);
    json.EndObject();
  }
  json.EndArray();
  json.StartArray("skipped");
  for (const FidelitySkipped& row : result.skipped) {
    json.StartObject();
    json.Text("source_id", row.measured.source_id);
    json.Number("bytes", row.measured.bytes);
    json.Text("reason", row.reason);
    json.EndObject();
  }
  json.EndArray();
  json.StartObject("summary");
  json.Number("rows", result.rows.size());
  json.Real("median_abs_error",
            errors.empty() ? std::nullopt : std::optional(ErrorQuantile(errors, 0.5)));
  json.Real("p90_abs_error",
            errors.empty() ? std::nullopt : std::optional(ErrorQuantile(errors, 0.9)));
  json.EndObject();
  json.EndObject();
  return json.Take();
}

}  // namespace railyard
