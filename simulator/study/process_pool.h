// SPDX-License-Identifier: GPL-2.0-only
// Runs of this program as child processes, so many at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace railyard {

// Runs `railyard ARGUMENTS…` for each entry of `commands`, at most `jobs` at a time, each with its
// standard output and error in the file of `logs`, and tells how each ended, in the order in which
// they do: its exit status, 128 + signal where a signal ended it. Throws EnvironmentError if one
// cannot be started, and Interrupted, all of them ended, where a signal asks for the end.
void RunProcesses(const std::vector<std::vector<std::string>>& commands,
                  const std::vector<std::string>& logs, uint32_t jobs,
                  const std::function<void(size_t index, int status)>& on_ended);

}  // namespace railyard
