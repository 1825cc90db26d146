// SPDX-License-Identifier: GPL-2.0-only
// There is one fuzz target for each reader of captured jobs, and one for each kind of file of
// Railyard's own. libFuzzer runs them (fuzz_main.cc), and fuzz_corpus_test.cc repeats its findings.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace railyard::testing {

struct FuzzTarget {
  std::string name;               // a format's, or the kind of file
  std::string file;               // the name that the input is given
  bool has_large_numbers = true;  // false: of each number two digits are kept
  // Reads the file at `path`. Anything but an ordinary end is a finding: a signal, an exception, or
  // FuzzFailed.
  std::function<void(const std::string& path)> read;
};

const std::vector<FuzzTarget>& FuzzTargets();

// Writes `bytes` to a file and lets the target read it.
void RunFuzzTarget(const FuzzTarget& target, std::string_view bytes);

// Ends the program with the reason.
[[noreturn]] void FuzzFailed(const std::string& why);

}  // namespace railyard::testing
