// SPDX-License-Identifier: GPL-2.0-only
// Damaged logs end in a trace or in findings, never in a crash, and no call gets lost in the
// report.
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/reference_dir.h"
#include "tests/traces/log_text.h"

namespace railyard::testing {
namespace {

std::string Damage(std::string text, std::mt19937& random) {
  const auto below = [&](size_t limit) { return limit == 0 ? 0 : random() % limit; };
  for (size_t edits = 1 + below(20); edits > 0 && !text.empty(); --edits) {
    const size_t at = below(text.size());
    const size_t length = below(std::min<size_t>(text.size() - at, 300) + 1);
    switch (below(7)) {
      case 0:  // a byte becomes another
        text[at] = static_cast<char>(below(256));
        break;
      case 1:  // a piece is lost
        text.erase(at, length);
        break;
      case 2:  // a piece is written into the middle of another line
        text.insert(below(text.size()), text.substr(at, length));
        break;
      case 3:  // a line break is lost
        if (const size_t end = text.find('\n', at); end != std::string::npos) text.erase(end, 1);
        break;
      case 4:  // the log is cut off
        if (below(10) == 0) text.resize(at);
        break;
      case 5:  // a hole, as in a sparse file
        text.replace(at, length, std::string(length, '\0'));
        break;
      case 6:  // a digit becomes many
        text.insert(at, "99999999999");
        break;
    }
  }
  return text;
}

void ImportDamaged(const std::string& text, int rounds, uint32_t seed) {
  std::mt19937 random(seed);
  for (int round = 0; round < rounds; ++round) {
    NcclLogOptions options;
    options.missing_ranks = round % 2 == 0 ? NcclLogOptions::MissingRanks::kReconstruct
                                           : NcclLogOptions::MissingRanks::kRefuse;
    Import(Damage(text, random), options);
  }
}

TEST(NcclLogMutationTest, TheSampleDamaged) {
  const std::string log = ReadFile(RAILYARD_SOURCE_DIR "/traces/samples/h100_4x8_sample.log");
  ImportDamaged(log, 150, 1);
  // Short beginnings and middles, so that damage hits everything.
  ImportDamaged(log.substr(0, 20'000), 300, 2);
  ImportDamaged(log.substr(100'000, 20'000), 300, 3);
}

TEST(NcclLogMutationTest, RealLogsDamaged) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  for (const auto& entry : std::filesystem::directory_iterator(reference_dir + "/nccl-logs")) {
    if (entry.path().extension() == ".log") ImportDamaged(ReadFile(entry.path()), 300, 4);
  }
}

TEST(NcclLogMutationTest, LinesOfAnyBytes) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    std::string text;
    for (int i = 0; i < 5000; ++i) text.push_back(static_cast<char>(random() % 256));
    Import(text);
  }
}

}  // namespace
}  // namespace railyard::testing
