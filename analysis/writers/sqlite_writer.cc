// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/writers/sqlite_writer.h"

#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <sqlite3.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/files/output_file.h"
#include "simulator/processes/interruption.h"

namespace railyard {

namespace {

const char* SqlType(ColumnType type) {
  switch (type) {
    case ColumnType::kInteger:
    case ColumnType::kBoolean:
      return " INTEGER";
    case ColumnType::kReal:
      return " REAL";
    case ColumnType::kText:
      return " TEXT";
    case ColumnType::kAny:
      return "";
  }
  return "";
}

// In double quotes where it is no plain name.
std::string SqlName(std::string_view name) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  const bool begins_plainly = !name.empty() && (name[0] < '0' || name[0] > '9');
  if (begins_plainly && name.find_first_not_of(kPlain) == std::string_view::npos &&
      sqlite3_keyword_check(name.data(), static_cast<int>(name.size())) == 0) {
    return std::string(name);
  }
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

class Database {
 public:
  explicit Database(std::string path) : path_(std::move(path)) {
    sqlite3* opened = nullptr;
    // One thread uses it.
    const int code =
        sqlite3_open_v2(path_.c_str(), &opened,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
    handle_.reset(opened);
    Check(code);
    // The file is not visible before it is complete, so it needs neither a journal nor locks.
    Run("PRAGMA page_size=32768");
    Run("PRAGMA locking_mode=EXCLUSIVE");
    Run("PRAGMA journal_mode=OFF");
    Run("PRAGMA synchronous=OFF");
    // Rows are appended: a page that is full is not looked at again. In KiB.
    Run("PRAGMA cache_size=-512");
  }

  void Run(const std::string& sql) {
    Check(sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr));
  }

  void WriteTable(const ResultTable& table) {
    std::string columns;
    std::string marks;
    for (const ResultColumn& column : table.columns) {
      const char* separator = columns.empty() ? "" : ", ";
      columns += fmt::format("{}{}{}", separator, SqlName(column.name), SqlType(column.type));
      marks += fmt::format("{}?", separator);
    }
    Run(fmt::format("CREATE TABLE {} ({})", table.name, columns));
    InsertRows(table, fmt::format("INSERT INTO {} VALUES ({})", table.name, marks));
  }

 private:
  struct Binder {
    sqlite3_stmt* statement;
    int index;

    int operator()(std::monostate) const { return sqlite3_bind_null(statement, index); }
    int operator()(int64_t value) const { return sqlite3_bind_int64(statement, index, value); }
    int operator()(double value) const { return sqlite3_bind_double(statement, index, value); }
    int operator()(bool value) const { return sqlite3_bind_int(statement, index, value ? 1 : 0); }
    int operator()(std::string_view text) const {
      return sqlite3_bind_text(statement, index, text.data(), static_cast<int>(text.size()),
                               SQLITE_STATIC);
    }
  };

  void InsertRows(const ResultTable& table, const std::string& sql) {
    sqlite3_stmt* prepared = nullptr;
    Check(sqlite3_prepare_v2(handle_.get(), sql.c_str(), -1, &prepared, nullptr));
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(prepared,
                                                                          sqlite3_finalize);
    std::vector<Cell> cells;
    std::vector<Cell> bound(table.columns.size());  // so far; nothing is bound to begin with
    for (size_t row = 0; row < table.row_count; ++row) {
      cells.clear();
      table.append_row(row, cells);
      for (size_t i = 0; i < cells.size(); ++i) {
        if (cells[i] == bound[i]) continue;  // stays bound from row to row
        Check(std::visit(Binder{prepared, static_cast<int>(i) + 1}, cells[i]));
        bound[i] = cells[i];
      }
      const int stepped = sqlite3_step(prepared);
      if (stepped != SQLITE_DONE) Check(stepped);
      Check(sqlite3_reset(prepared));
    }
  }

  void Check(int code) const {
    if (code == SQLITE_OK) return;
    const int system_error = handle_ == nullptr ? 0 : sqlite3_system_errno(handle_.get());
    throw EnvironmentError(
        fmt::format("cannot write {}: {}", path_,
                    system_error != 0 ? std::strerror(system_error) : sqlite3_errstr(code)));
  }

  std::string path_;
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> handle_{nullptr, sqlite3_close};
};

}  // namespace

void WriteDatabase(const std::string& path, const std::vector<ResultTable>& tables) {
  Database database(path);
  database.Run("BEGIN");
  for (const ResultTable& table : tables) database.WriteTable(table);
  database.Run("COMMIT");
}

void WriteDatabaseAt(const std::string& path, const std::vector<ResultTable>& tables) {
  namespace fs = std::filesystem;
  const fs::path target(path);
  const fs::path unfinished = target.parent_path() / ("." + target.filename().string() + ".part");
  std::error_code error;
  fs::remove(unfinished, error);
  const Interruptible interruptible;  // a signal takes effect after the file has its name
  try {
    WriteDatabase(unfinished.string(), tables);
    SyncPath(unfinished.string());
  } catch (const EnvironmentError&) {
    fs::remove(unfinished, error);
    throw;
  }
  fs::rename(unfinished, target, error);
  if (error) throw EnvironmentError(fmt::format("cannot write {}: {}", path, error.message()));
  SyncPath(target.parent_path().string());
}

}  // namespace railyard
