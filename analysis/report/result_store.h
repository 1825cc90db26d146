// SPDX-License-Identifier: GPL-2.0-only
// The tables of one result directory, read by SQL.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include <sqlite3.h>

namespace railyard {

// Thrown where results.sqlite is not a file that `railyard run` wrote.
struct UnreadableResult {
  std::string why;
};

// A cell of a table: NULL, an integer, a real number or a text.
using StoredValue = std::variant<std::monostate, int64_t, double, std::string>;

// The rows that a query selects, one after the other. Every method may throw UnreadableResult.
class StoredRows {
 public:
  StoredRows(sqlite3* database, const std::string& sql);

  // False after the last row.
  bool Next();
  int column_count() const { return sqlite3_column_count(statement_.get()); }
  std::string ColumnName(int column) const { return sqlite3_column_name(statement_.get(), column); }
  StoredValue Value(int column) const;
  bool IsNull(int column) const {
    return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
  }
  int64_t Integer(int column) const;
  // The same as a truth; NULL is none.
  bool Holds(int column) const { return !IsNull(column) && Integer(column) != 0; }
  // A finite number, integers included.
  double Real(int column) const;
  std::string Text(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

// Opens results.sqlite of a directory for reading. Only plain tables are accepted: the file may
// come from anybody, and a view could compute without end.
class ResultStore {
 public:
  // UnreadableResult where there is no such file, or where it is none of Railyard's.
  explicit ResultStore(const std::string& directory);

  StoredRows Rows(const std::string& sql) const { return {database_.get(), sql}; }
  // The first column of the first row; NULL where there is no row.
  StoredValue First(const std::string& sql) const;
  // The same of a query whose answer is a whole number; 0 where it is NULL.
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
