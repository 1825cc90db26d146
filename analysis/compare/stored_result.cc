// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/compare/stored_result.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "analysis/store/result_store.h"
#include "simulator/diagnostics/names.h"

namespace railyard {
namespace {

void ReadRun(const ResultStore& store, StoredResult& result) {
  StoredRows rows = store.Rows("SELECT key, value FROM run");
  bool has_time = false;
  while (rows.Next()) {
    const std::string key = rows.Text(0);
    if (key == "scenario") result.scenario = rows.Text(1);
    if (key == "fabric") result.fabric = rows.Text(1);
    if (key == "status") result.status = rows.Text(1);
    if (key == "fingerprint") result.fingerprint = rows.Text(1);
    if (key == "simulated_time_ps") {
      result.simulated_time_ps = rows.Integer(1);
      has_time = true;
    }
  }
  if (!has_time || result.status.empty()) throw UnreadableResult{"its table `run` is incomplete"};
}

void ReadCollectives(const ResultStore& store, StoredResult& result) {
  StoredRows rows = store.Rows(
      "SELECT collective_index, kind, ranks, bytes, duration_ps FROM collectives "
      "ORDER BY collective_index");
  while (rows.Next()) {
    StoredCollective collective;
    collective.index = rows.Count(0);
    collective.kind = rows.Text(1);
    collective.ranks = static_cast<uint32_t>(rows.Count(2));
    collective.bytes = rows.Count(3);
    if (!rows.IsNull(4)) collective.duration_ps = static_cast<int64_t>(rows.Count(4));
    result.collectives.push_back(std::move(collective));
  }
}

void ReadTiers(const ResultStore& store, StoredResult& result) {
  StoredRows rows =
      store.Rows("SELECT tier, sum(payload_bytes) FROM links GROUP BY tier ORDER BY min(rowid)");
  while (rows.Next()) {
    result.tiers.push_back({.tier = rows.Text(0), .payload_bytes = rows.Count(1)});
  }
}

}  // namespace

std::optional<StoredResult> ReadStoredResult(const std::string& directory,
                                             Diagnostics& diagnostics) {
  const std::string path = (std::filesystem::path(directory) / "results.sqlite").string();
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    diagnostics.Error({directory}, "", "is no result of a run (expected results.sqlite in it)");
    return std::nullopt;
  }
  StoredResult result;
  result.directory = directory;
  try {
    const ResultStore store(directory);
    ReadRun(store, result);
    ReadCollectives(store, result);
    ReadTiers(store, result);
  } catch (const UnreadableResult& wrong) {
    diagnostics.Error({path}, "",
                      fmt::format("is no result of a run: {} (expected the file that `railyard "
                                  "run` wrote)",
                                  Quote(wrong.why)));
    return std::nullopt;
  }
  return result;
}

}  // namespace railyard
