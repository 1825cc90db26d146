// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/sqlite/sqlite_error.h"

#include <new>

namespace railyard {
namespace {

// More than SQLite asks for at a time to read a file with values of kStoredBytesMax.
constexpr int kAllocationBytesMax = 16 * kStoredBytesMax;

bool IsMemoryScarce() {
  void* const memory = sqlite3_malloc(kAllocationBytesMax);
  sqlite3_free(memory);
  return memory == nullptr;
}

}  // namespace

std::string SqliteError(sqlite3* database) {
  if (sqlite3_errcode(database) != SQLITE_NOMEM) return sqlite3_errmsg(database);
  if (IsMemoryScarce()) throw std::bad_alloc();
  return sqlite3_errstr(SQLITE_CORRUPT);
}

}  // namespace railyard
