// SPDX-License-Identifier: GPL-2.0-only
// Declares the command line: verbs, their options, and the exit status.
#pragma once

#include <string>

namespace railyard {

// Lists the exit statuses on which scripts may rely.
enum ExitStatus : int {
  kExitDone = 0,
  kExitEnvironment = 1,  // a file, a disk or memory failed
  kExitInput = 2,        // the input or the command line is wrong; nothing was written
  kExitJobAborted = 3,   // the simulated job was aborted; results are written
  // The simulated job stalled, simulated time ended before the job did, or a signal interrupted the
  // command. The results so far are written.
  kExitStalled = 4,
  kExitDifference = 5,  // `compare`: a difference exceeds its threshold; `trace diff`: there is one
};

// Runs one command and returns its exit status. Findings and failures go to standard error,
// everything else to standard output. Calls must not overlap. Precondition: InitVirtualTime() was
// called.
int RunCli(int argc, const char* const* argv);

// Prints "railyard: error: WHAT" to standard error; prints nothing if that cannot be written.
void PrintError(const std::string& what);

}  // namespace railyard
