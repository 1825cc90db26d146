// SPDX-License-Identifier: GPL-2.0-only
#pragma once

namespace railyard::testing {

// Runs the tests of the program and returns its exit status. TMPDIR, and with it TempDir(), is a
// directory of this process, removed at the end: tests of other builds and of other users of the
// machine may have files of the same names.
int RunTests(int argc, char** argv);

}  // namespace railyard::testing
