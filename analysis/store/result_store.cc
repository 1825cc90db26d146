// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/store/result_store.h"

#include <cmath>
#include <filesystem>
#include <new>

#include <fmt/format.h>

#include "simulator/diagnostics/checked_reading.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/sqlite/sqlite_error.h"

namespace railyard {
namespace {

// Throws what the last call failed for: EnvironmentError if the disk failed, std::bad_alloc without
// memory, else UnreadableResult.
[[noreturn]] void ThrowFailure(sqlite3* database) {
  const bool has_disk_failed = sqlite3_errcode(database) == SQLITE_IOERR;
  const std::string error = SqliteError(database);
  if (!has_disk_failed) throw UnreadableResult{error};
  throw EnvironmentError(
      fmt::format("cannot read {}: {}", sqlite3_db_filename(database, "main"), error));
}

}  // namespace

StoredRows::StoredRows(sqlite3* database, const std::string& sql) : database_(database) {
  sqlite3_stmt* prepared = nullptr;
  const int code = sqlite3_prepare_v2(database_, sql.c_str(), -1, &prepared, nullptr);
  statement_.reset(prepared);
  if (code != SQLITE_OK) ThrowFailure(database_);
}

bool StoredRows::Next() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  ThrowFailure(database_);
}

StoredValue StoredRows::Value(int column) const {
  switch (sqlite3_column_type(statement_.get(), column)) {
    case SQLITE_INTEGER:
      return sqlite3_column_int64(statement_.get(), column);
    case SQLITE_FLOAT:
      return Real(column);
    case SQLITE_TEXT:
      return Text(column);
    case SQLITE_NULL:
      return {};
    default:
      throw UnreadableResult{fmt::format("column {} holds neither a number nor a text",
                                         sqlite3_column_name(statement_.get(), column))};
  }
}

int64_t StoredRows::Integer(int column) const {
  if (sqlite3_column_type(statement_.get(), column) != SQLITE_INTEGER) {
    throw UnreadableResult{fmt::format("column {} holds no whole number",
                                       sqlite3_column_name(statement_.get(), column))};
  }
  return sqlite3_column_int64(statement_.get(), column);
}

uint64_t StoredRows::Count(int column) const {
  const int64_t value = Integer(column);
  if (value < 0) {
    throw UnreadableResult{fmt::format("column {} holds a negative number",
                                       sqlite3_column_name(statement_.get(), column))};
  }
  return static_cast<uint64_t>(value);
}

double StoredRows::Real(int column) const {
  const int type = sqlite3_column_type(statement_.get(), column);
  const double value = sqlite3_column_double(statement_.get(), column);
  if ((type != SQLITE_INTEGER && type != SQLITE_FLOAT) || !std::isfinite(value)) {
    throw UnreadableResult{
        fmt::format("column {} holds no number", sqlite3_column_name(statement_.get(), column))};
  }
  return value;
}

std::string StoredRows::Text(int column) const {
  const int type = sqlite3_column_type(statement_.get(), column);
  if (type == SQLITE_BLOB) {
    throw UnreadableResult{
        fmt::format("column {} holds no text", sqlite3_column_name(statement_.get(), column))};
  }
  const auto* const text =
      reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (text != nullptr) return text;
  if (type != SQLITE_NULL) ThrowFailure(database_);
  return {};
}

ResultStore::ResultStore(const std::string& directory) {
  const std::string path = (std::filesystem::path(directory) / "results.sqlite").string();
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw UnreadableResult{"results.sqlite is missing"};
  }
  OpenToRead(path);
  sqlite3* opened = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
  database_.reset(opened);
  if (code == SQLITE_NOMEM) throw std::bad_alloc();
  if (code != SQLITE_OK) throw UnreadableResult{sqlite3_errstr(code)};
  sqlite3_limit(database_.get(), SQLITE_LIMIT_LENGTH, kStoredBytesMax);
  sqlite3_db_config(database_.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database_.get(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  StoredRows foreign =
      Rows("SELECT name FROM sqlite_master WHERE type <> 'table' OR sql LIKE 'CREATE VIRTUAL%'");
  if (foreign.Next()) throw UnreadableResult{foreign.Text(0) + " is not a plain table"};
  for (const char* table : {"run", "jobs", "collectives", "pairs", "links", "traffic", "iterations",
                            "iteration_pairs", "breakdown", "drops", "faults", "waits", "notes"}) {
    if (!HasTable(table)) throw UnreadableResult{fmt::format("its table {} is missing", table)};
  }
}

StoredValue ResultStore::First(const std::string& sql) const {
  StoredRows rows = Rows(sql);
  return rows.Next() ? rows.Value(0) : StoredValue();
}

int64_t ResultStore::Count(const std::string& sql) const {
  StoredRows rows = Rows(sql);
  return rows.Next() && !rows.IsNull(0) ? rows.Integer(0) : 0;
}

bool ResultStore::HasTable(const std::string& name) const {
  return Count(fmt::format(
             "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = '{}'", name)) > 0;
}

}  // namespace railyard
