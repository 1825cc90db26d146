// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/calibration_options.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/cli/cli.h"
#include "simulator/cli/command.h"
#include "simulator/cli/fabric_option.h"
#include "simulator/cli/output_options.h"
#include "simulator/diagnostics/names.h"
#include "simulator/files/output_file.h"
#include "simulator/measure/nccl_tests_rows.h"
#include "simulator/measure/platform_calibration.h"
#include "topologies/platforms/platform.h"
#include "topologies/platforms/shipped_platforms.h"

namespace railyard {
namespace {

// The text of a platform that can be calibrated; nullopt after an error.
std::optional<std::string> UncalibratedText(const std::string& platform) {
  for (const ShippedPlatform& shipped : ShippedPlatforms()) {
    if (shipped.name == platform) return std::string(shipped.text);
  }
  Diagnostics diagnostics;
  const std::optional<Platform> loaded = LoadPlatform(platform, diagnostics);
  fmt::print(stderr, "{}", diagnostics.ToString());
  if (!loaded) return std::nullopt;
  if (loaded->calibration != PlatformCalibration()) {
    PrintError(
        fmt::format("--fabric: {} is calibrated (expected a platform that is not)", platform));
    return std::nullopt;
  }
  std::ifstream file(platform);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::vector<NcclTestsRow> ReadTables(const std::vector<std::string>& files, uint64_t bytes_max,
                                     Diagnostics& diagnostics) {
  std::vector<NcclTestsRow> measured;
  for (const std::string& file : files) {
    for (const NcclTestsRow& row : ReadNcclTests(file, diagnostics)) {
      if (row.bytes <= bytes_max) measured.push_back(row);
    }
  }
  if (!diagnostics.HasErrors() && measured.size() < 2) {
    diagnostics.Error(
        {.file = files.front(), .line = 1, .column = 1}, "",
        fmt::format("{} rows of at most {} B (expected two or more)", measured.size(), bytes_max));
  }
  return measured;
}

// Rows of another test or number of ranks than the point's are errors.
void CheckTables(const std::vector<NcclTestsRow>& rows, const std::string& collective,
                 uint32_t gpu_count, Diagnostics& diagnostics) {
  const auto expected = FindNcclTest(collective + "_perf");
  for (const NcclTestsRow& row : rows) {
    if (row.table.test && row.table.test != expected) {
      diagnostics.Error(row.where, "",
                        fmt::format("is of another test (expected rows of {}_perf)", collective));
      return;
    }
    if (row.table.ranks > 0 && row.table.ranks != gpu_count) {
      diagnostics.Error(row.where, "",
                        fmt::format("is of {} ranks (expected {}, which --fabric and --nodes have)",
                                    row.table.ranks, gpu_count));
      return;
    }
  }
}

// Sizes that cannot be simulated are errors at their rows.
void CheckSizes(const std::vector<NcclTestsRow>& rows, PerfPoint point, Diagnostics& diagnostics) {
  std::set<uint64_t> checked;
  for (const NcclTestsRow& row : rows) {
    if (!checked.insert(row.bytes).second) continue;
    point.bytes = row.bytes;
    Diagnostics of_point;
    if (LoadPoint(point, of_point)) continue;
    for (const Finding& finding : of_point.findings()) {
      if (finding.severity != Severity::kError) continue;
      const bool is_of_row = finding.field == "size";
      diagnostics.Error(is_of_row ? row.where : finding.where, finding.field, finding.what);
      if (!is_of_row) return;  // these errors do not depend on the size
    }
  }
}

}  // namespace

void CalibrationOptions::AddOptions(CLI::App* parser) {
  parser->add_option("--collective", collective_, "The measured operation, with --calibrate")
      ->check(ShowNames(PerfCollectiveNames()));
  parser->add_option("--fabric", fabric_, "The measured platform, with --calibrate");
  parser->add_option("--nodes", nodes_,
                     "Number of measured servers, with --calibrate (default: 1)");
}

std::string CalibrationOptions::Given() const {
  if (!collective_.empty()) return "--collective";
  if (!fabric_.empty()) return "--fabric";
  return nodes_ ? "--nodes" : "";
}

ExitStatus CalibrationOptions::Run(const std::vector<std::string>& files, uint64_t bytes_max,
                                   const std::string& output) const {
  const auto collective = FindPerfCollective(collective_);
  if (!collective) {
    PrintError("--collective: " + UnknownName("collective", collective_, PerfCollectiveNames()));
  }
  Diagnostics diagnostics;
  const std::vector<NcclTestsRow> rows = ReadTables(files, bytes_max, diagnostics);
  fmt::print(stderr, "{}", diagnostics.ToString());
  if (!collective || diagnostics.HasErrors()) return kExitInput;
  if (FindPlatform(fabric_) == nullptr && !IsPlatformFile(fabric_)) {
    PrintError("--fabric: " + UnknownName("platform", fabric_, PlatformNames()));
    return kExitInput;
  }
  if (std::filesystem::exists(output)) {
    PrintError(fmt::format("--calibrate: {} is there already (expected a new file)", output));
    return kExitInput;
  }
  if (!IsPlatformFile(output)) {
    PrintError(fmt::format(
        "--calibrate: {} would be taken for a name (expected a '/' or a '.' in it)", output));
    return kExitInput;
  }
  CheckOutputs({{"--calibrate", output}}, {}, diagnostics);
  if (diagnostics.HasErrors()) {
    fmt::print(stderr, "{}", diagnostics.ToString());
    return kExitInput;
  }
  const auto text = UncalibratedText(fabric_);
  if (!text) return kExitInput;
  const auto fabric = ReadFabricOption(fabric_, nodes_.value_or(1));
  if (!fabric) return kExitInput;
  CalibrationPlan plan;
  plan.point = {
      .collective = *collective, .bytes = rows.front().bytes, .scenario = fabric->scenario};
  CheckTables(rows, collective_, fabric->gpus, diagnostics);
  if (!diagnostics.HasErrors()) CheckSizes(rows, plan.point, diagnostics);
  if (diagnostics.HasErrors()) {
    fmt::print(stderr, "{}", diagnostics.ToString());
    return kExitInput;
  }
  for (const NcclTestsRow& row : rows) plan.measured.push_back({row.bytes, row.time_us});
  const CalibrationResult result = RunCalibration(plan);
  const std::string source =
      fmt::format("{} on {}: {}", collective_, fabric->name, fmt::join(files, ", "));
  const char* const line_end = text->ends_with('\n') ? "" : "\n";
  WriteOutput(output, *text + line_end + CalibrationBlock(result, source));
  fmt::print("{}Written to {}.\n", CalibrationTable(plan, result), output);
  return kExitDone;
}

}  // namespace railyard
