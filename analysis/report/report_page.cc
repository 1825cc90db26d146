// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/report/report_page.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "analysis/report/chart.h"
#include "analysis/report/page_contents.h"
#include "analysis/report/page_files.h"
#include "analysis/report/verdict.h"
#include "simulator/diagnostics/names.h"

namespace railyard {
namespace {

// The text of a value of the table `run`.
std::string RunText(const PageContents& contents, std::string_view key) {
  for (const auto& [name, value] : contents.run) {
    if (name != key) continue;
    if (const auto* text = std::get_if<std::string>(&value)) return *text;
    if (const auto* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
  }
  return {};
}

PageContents ContentsOf(const ResultStore& store) {
  PageContents contents;
  StoredRows run = store.Rows("SELECT key, value FROM run");
  while (run.Next()) contents.run.emplace_back(run.Text(0), run.Value(1));
  const std::string scenario = RunText(contents, "scenario");
  contents.title = fmt::format("{}: Railyard report", scenario);
  contents.subject = fmt::format("{} on {}", scenario, RunText(contents, "fabric"));
  if (RunText(contents, "mode") == "flow") {
    contents.subject += ", in flow mode: max-min fair flows, no packets";
  }
  contents.provenance =
      fmt::format("Fingerprint {}, seed {}; data: results.sqlite in the same directory.",
                  RunText(contents, "fingerprint"), RunText(contents, "seed"));
  contents.verdict = VerdictOf(store);
  contents.figures = KeyFiguresOf(store);
  contents.faults = TableOf(
      store, "faults", "SELECT name, from_ps, until_ps FROM faults WHERE begins > 0 LIMIT 200");
  contents.charts = ChartsOf(store);
  StoredRows notes = store.Rows("SELECT note FROM notes");
  while (notes.Next()) contents.notes.push_back(notes.Text(0));
  return contents;
}

}  // namespace

bool CanWriteReports() { return !kEcharts.empty(); }

void AddNoResult(const std::string& directory, const UnreadableResult& unreadable,
                 Diagnostics& diagnostics) {
  diagnostics.Error({directory}, "",
                    fmt::format("is no result of a run: {} (expected a directory that `railyard "
                                "run` wrote)",
                                Quote(unreadable.why)));
}

std::optional<ResultStore> OpenResult(const std::string& directory, Diagnostics& diagnostics) {
  try {
    return ResultStore(directory);
  } catch (const UnreadableResult& unreadable) {
    AddNoResult(directory, unreadable, diagnostics);
    return std::nullopt;
  }
}

std::string ReportPage(const ResultStore& store) { return PageOf(ContentsOf(store)); }

std::string ReportOfOwnResult(const std::string& directory) {
  try {
    return ReportPage(ResultStore(directory));
  } catch (const UnreadableResult& unreadable) {
    throw EnvironmentError(fmt::format("cannot read back the result: {}", unreadable.why));
  }
}

}  // namespace railyard
