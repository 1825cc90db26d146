// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/writers/sqlite_writer.h"

#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
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

// --- A table as SQLite reads it ------------------------------------------------------------------
// A virtual table whose rows are those of a ResultTable: INSERT … SELECT takes all of them in one
// statement, which took 0.56 of the instructions of a statement for each in a short run, and 0.82
// with the wide rows of 600,000 collectives (sqlite.org/vtab.html). Its functions are called by C,
// so no exception leaves them.

struct SourceTable : sqlite3_vtab {
  const ResultTable* table = nullptr;
};

struct SourceCursor : sqlite3_vtab_cursor {
  const ResultTable* table = nullptr;
  size_t row = 0;
  std::vector<Cell> cells;  // of the row

  int Load() {
    if (row == table->row_count) return SQLITE_OK;
    try {
      cells.clear();
      table->append_row(row, cells);
    } catch (const std::bad_alloc&) {
      return SQLITE_NOMEM;
    }
    return SQLITE_OK;
  }
};

int ConnectSource(sqlite3* database, void* table, int /*argc*/, const char* const* /*argv*/,
                  sqlite3_vtab** made, char** /*error*/) {
  const auto* const source = static_cast<const ResultTable*>(table);
  try {
    std::string columns;
    for (size_t i = 0; i < source->columns.size(); ++i) {
      columns += fmt::format("{}c{}", i == 0 ? "" : ", ", i);
    }
    const int code =
        sqlite3_declare_vtab(database, fmt::format("CREATE TABLE source ({})", columns).c_str());
    if (code != SQLITE_OK) return code;
    auto connected = std::make_unique<SourceTable>();
    connected->table = source;
    *made = connected.release();
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  }
  return SQLITE_OK;
}

int DisconnectSource(sqlite3_vtab* table) {
  delete static_cast<SourceTable*>(table);
  return SQLITE_OK;
}

int OpenSource(sqlite3_vtab* table, sqlite3_vtab_cursor** opened) {
  auto* const cursor = new (std::nothrow) SourceCursor;
  if (cursor == nullptr) return SQLITE_NOMEM;
  cursor->table = static_cast<SourceTable*>(table)->table;
  *opened = cursor;
  return SQLITE_OK;
}

int CloseSource(sqlite3_vtab_cursor* cursor) {
  delete static_cast<SourceCursor*>(cursor);
  return SQLITE_OK;
}

int FirstOfSource(sqlite3_vtab_cursor* cursor, int /*index*/, const char* /*index_name*/,
                  int /*argc*/, sqlite3_value** /*argv*/) {
  auto* const source = static_cast<SourceCursor*>(cursor);
  source->row = 0;
  return source->Load();
}

int NextOfSource(sqlite3_vtab_cursor* cursor) {
  auto* const source = static_cast<SourceCursor*>(cursor);
  ++source->row;
  return source->Load();
}

int IsEndOfSource(sqlite3_vtab_cursor* cursor) {
  const auto* const source = static_cast<SourceCursor*>(cursor);
  return source->row == source->table->row_count ? 1 : 0;
}

struct CellGiver {
  sqlite3_context* to;

  void operator()(std::monostate) const { sqlite3_result_null(to); }
  void operator()(int64_t value) const { sqlite3_result_int64(to, value); }
  void operator()(double value) const { sqlite3_result_double(to, value); }
  void operator()(bool value) const { sqlite3_result_int(to, value ? 1 : 0); }
  void operator()(std::string_view text) const {
    sqlite3_result_text(to, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
  }
};

int ColumnOfSource(sqlite3_vtab_cursor* cursor, sqlite3_context* to, int column) {
  std::visit(CellGiver{to}, static_cast<SourceCursor*>(cursor)->cells[static_cast<size_t>(column)]);
  return SQLITE_OK;
}

int RowidOfSource(sqlite3_vtab_cursor* cursor, sqlite3_int64* rowid) {
  *rowid = static_cast<sqlite3_int64>(static_cast<SourceCursor*>(cursor)->row);
  return SQLITE_OK;
}

// The virtual table's name, which no table of a result has.
constexpr const char* kSourceName = "railyard_source";

const sqlite3_module& SourceModule() {
  static const sqlite3_module kModule = [] {
    sqlite3_module module = {};
    // Without xCreate the table is there by the module's name, and only for this connection.
    module.xConnect = ConnectSource;
    module.xBestIndex = [](sqlite3_vtab* /*table*/, sqlite3_index_info* /*info*/) {
      return SQLITE_OK;
    };
    module.xDisconnect = DisconnectSource;
    module.xOpen = OpenSource;
    module.xClose = CloseSource;
    module.xFilter = FirstOfSource;
    module.xNext = NextOfSource;
    module.xEof = IsEndOfSource;
    module.xColumn = ColumnOfSource;
    module.xRowid = RowidOfSource;
    return module;
  }();
  return kModule;
}

// --- The database --------------------------------------------------------------------------------

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
    for (const ResultColumn& column : table.columns) {
      columns += fmt::format("{}{}{}", columns.empty() ? "" : ", ", SqlName(column.name),
                             SqlType(column.type));
    }
    Run(fmt::format("CREATE TABLE {} ({})", table.name, columns));
    if (table.row_count == 0) return;
    Check(sqlite3_create_module(handle_.get(), kSourceName, &SourceModule(),
                                const_cast<ResultTable*>(&table)));
    Run(fmt::format("INSERT INTO {} SELECT * FROM {}", table.name, kSourceName));
  }

 private:
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
