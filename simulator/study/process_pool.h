// SPDX-License-Identifier: GPL-2.0-only
// Runs this program as child processes, a limited number at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace railyard {

// Runs `railyard ARGUMENTS…` for each entry of `commands`, at most `jobs` at a time, each with its
// standard output and error in the file of `logs`. Reports each process as it ends with its exit
// status, which is 128 + signal if a signal ended it. Throws EnvironmentError if one cannot be
// started, and Interrupted, after ending all of them, if a signal requests the end.
void RunProcesses(const std::vector<std::vector<std::string>>& commands,
                  const std::vector<std::string>& logs, uint32_t jobs,
                  const std::function<void(size_t index, int status)>& on_ended);

}  // namespace railyard
