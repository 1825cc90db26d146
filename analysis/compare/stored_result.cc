// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/compare/stored_result.h"

#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sqlite3.h>

#include "simulator/diagnostics/names.h"

namespace railyard {
namespace {

// The file is not what a run writes.
struct NotAResult {
  std::string why;
};

class Rows {
 public:
  Rows(sqlite3* database, const std::string& query) : database_(database) {
    sqlite3_stmt* prepared = nullptr;
    const int code = sqlite3_prepare_v2(database_, query.c_str(), -1, &prepared, nullptr);
    statement_.reset(prepared);
    if (code != SQLITE_OK) throw NotAResult{sqlite3_errmsg(database_)};
  }

  // False behind the last row.
  bool Next() {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    throw NotAResult{sqlite3_errmsg(database_)};
  }

  bool IsNull(int column) const {
    return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
  }
  std::string Text(int column) const {
    const auto* const text =
        reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
    return text == nullptr ? std::string() : std::string(text);
  }
  int64_t Integer(int column) const {
    if (sqlite3_column_type(statement_.get(), column) != SQLITE_INTEGER) {
      throw NotAResult{
          fmt::format("column {} holds no integer", sqlite3_column_name(statement_.get(), column))};
    }
    return sqlite3_column_int64(statement_.get(), column);
  }
  // Precondition of a sound file: the integer is not negative.
  uint64_t Count(int column) const {
    const int64_t value = Integer(column);
    if (value < 0) {
      throw NotAResult{fmt::format("column {} holds a negative number",
                                   sqlite3_column_name(statement_.get(), column))};
    }
    return static_cast<uint64_t>(value);
  }

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

struct Close {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};

void ReadRun(sqlite3* database, StoredResult& result) {
  Rows rows(database, "SELECT key, value FROM run");
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
  if (!has_time || result.status.empty()) throw NotAResult{"its table `run` is incomplete"};
}

void ReadCollectives(sqlite3* database, StoredResult& result) {
  Rows rows(database,
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

void ReadTiers(sqlite3* database, StoredResult& result) {
  Rows rows(database,
            "SELECT tier, sum(payload_bytes) FROM links GROUP BY tier ORDER BY min(rowid)");
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
  sqlite3* opened = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
  const std::unique_ptr<sqlite3, Close> database(opened);
  StoredResult result;
  result.directory = directory;
  try {
    if (code != SQLITE_OK) throw NotAResult{sqlite3_errstr(code)};
    ReadRun(database.get(), result);
    ReadCollectives(database.get(), result);
    ReadTiers(database.get(), result);
  } catch (const NotAResult& wrong) {
    diagnostics.Error({path}, "",
                      fmt::format("is no result of a run: {} (expected the file that `railyard "
                                  "run` wrote)",
                                  Quote(wrong.why)));
    return std::nullopt;
  }
  return result;
}

}  // namespace railyard
