// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>

#include <sqlite3.h>

namespace railyard {

// The longest text or other value that is read of a database. No name or note is as long.
constexpr int kStoredBytesMax = 1 << 20;

// Returns why the last call on the database failed, in SQLite's words. Throws std::bad_alloc if
// there was no memory for it. A damaged file is none such, though SQLite says the same of some: for
// a cell whose overflow has no pages it asks for no bytes (accessPayload() of SQLite 3.40.1).
std::string SqliteError(sqlite3* database);

}  // namespace railyard
