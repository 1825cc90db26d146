// SPDX-License-Identifier: GPL-2.0-only
// Reads the tables of one result directory by SQL.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include <sqlite3.h>

namespace railyard {

// Is thrown if results.sqlite is not a file that `railyard run` wrote.
struct UnreadableResult {
  std::string why;
};

// Holds a cell of a table: NULL, an integer, a real number or a text.
using StoredValue = std::variant<std::monostate, int64_t, double, std::string>;

// Returns the rows that a query selects, one after the other. Every method may throw
// UnreadableResult.
class StoredRows {
 public:
  StoredRows(sqlite3* database, const std::string& sql);

  // Returns false after the last row.
  bool Next();
  int column_count() const { return sqlite3_column_count(statement_.get()); }
  std::string ColumnName(int column) const { return sqlite3_column_name(statement_.get(), column); }
  StoredValue Value(int column) const;
  bool IsNull(int column) const {
    return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
  }
  int64_t Integer(int column) const;
  // Returns an integer that is not negative.
  uint64_t Count(int column) const;
  // Returns the cell as a bool; NULL is false.
  bool Holds(int column) const { return !IsNull(column) && Integer(column) != 0; }
  // Returns a finite number, which may be an integer in the table.
  double Real(int column) const;
  std::string Text(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

// Opens results.sqlite of a directory for reading. Only plain tables are accepted, because the file
// may come from anybody and a view could compute forever.
class ResultStore {
 public:
  // Throws UnreadableResult if there is no such file, or if Railyard did not write it.
  explicit ResultStore(const std::string& directory);

  StoredRows Rows(const std::string& sql) const { return {database_.get(), sql}; }
  // Returns the first column of the first row, or NULL if there is none.
  StoredValue First(const std::string& sql) const;
  // Returns the same for a query of an integer; 0 if it is NULL.
  int64_t Count(const std::string& sql) const;
  bool HasTable(const std::string& name) const;
  // Returns whether the run was compared with one without its faults.
  bool HasBaseline() const {
    return Count("SELECT value FROM run WHERE key = 'baseline_simulated_time_ps'") > 0;
  }

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
  };
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace railyard
