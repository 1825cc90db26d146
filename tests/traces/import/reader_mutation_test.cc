// SPDX-License-Identifier: GPL-2.0-only
// Whatever becomes of the bytes of a file, it is read or refused with a reason, and every call is
// accounted for (ImportedFiles::Import).
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "tests/traces/imported_files.h"
#include "tests/traces/sample_captures.h"
#include "workloads/job/job.h"

namespace railyard {
namespace {

using testing::ImportedFiles;
using testing::SampleCapture;
using testing::SampleCaptures;

class ReaderMutationTest : public ::testing::TestWithParam<SampleCapture> {
 protected:
  // Changes, removes, repeats or cuts off a few bytes.
  std::string Mutated(std::string bytes) {
    for (size_t edits = 1 + Below(4); edits > 0; --edits) {
      const size_t at = Below(bytes.size());
      switch (Below(4)) {
        case 0:
          bytes[at] = static_cast<char>(random_());
          break;
        case 1:
          bytes.erase(at, 1 + Below(8));
          break;
        case 2:
          bytes.insert(at, bytes.substr(Below(bytes.size()), 1 + Below(16)));
          break;
        default:
          bytes.resize(at + 1);
          break;
      }
      if (bytes.empty()) bytes = "x";
    }
    return bytes;
  }

 private:
  size_t Below(size_t end) { return static_cast<size_t>(random_() % end); }

  std::mt19937 random_{1};
};

// RAILYARD_MUTATION_SECONDS in the environment goes on for so long.
TEST_P(ReaderMutationTest, EveryCallIsAccountedFor) {
  constexpr int kRounds = 600;
  const char* const seconds = std::getenv("RAILYARD_MUTATION_SECONDS");
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::seconds(seconds == nullptr ? 0 : std::atoi(seconds));
  const auto& [name, format, whole, options] = GetParam();
  ImportedFiles files;
  ASSERT_TRUE(files.Import({files.Write(name, whole)}, options).trace) << files.findings();
  int traces = 0;
  for (int round = 0; round < kRounds || std::chrono::steady_clock::now() < end; ++round) {
    const TraceImport& import = files.Import({files.Write(name, Mutated(whole))}, options);
    if (!import.trace) {
      ASSERT_NE(files.findings(), "") << round;
      continue;
    }
    ++traces;
    Diagnostics diagnostics;
    BuildJob(*import.trace, diagnostics);  // its calls may not match; it ends
  }
  EXPECT_GT(traces, 0);
}

INSTANTIATE_TEST_SUITE_P(Formats, ReaderMutationTest, ::testing::ValuesIn(SampleCaptures()),
                         [](const auto& test) {
                           std::string name = test.param.file;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace railyard
