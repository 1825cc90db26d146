// SPDX-License-Identifier: GPL-2.0-only
// Writes result tables as a SQLite database.
#pragma once

#include <string>
#include <vector>

#include "analysis/writers/result_tables.h"

namespace railyard {

// Writes a new database, which is not forced to disk. Throws EnvironmentError, naming the file, on
// any failure; the file must then be discarded.
void WriteDatabase(const std::string& path, const std::vector<ResultTable>& tables);

// Writes a database that appears complete or not at all, in place of an earlier one.
void WriteDatabaseAt(const std::string& path, const std::vector<ResultTable>& tables);

}  // namespace railyard
