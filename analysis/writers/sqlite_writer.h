// SPDX-License-Identifier: GPL-2.0-only
// Result tables as a SQLite database.
#pragma once

#include <string>
#include <vector>

#include "analysis/writers/result_tables.h"

namespace railyard {

// Writes a new database and forces it to disk. EnvironmentError, naming the file, on any failure;
// what is left of the file then is of no use.
void WriteDatabase(const std::string& path, const std::vector<ResultTable>& tables);

}  // namespace railyard
