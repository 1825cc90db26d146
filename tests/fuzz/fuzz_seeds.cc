// SPDX-License-Identifier: GPL-2.0-only
// Writes the sample captures as seeds: fuzz_seeds DIRECTORY makes DIRECTORY/FORMAT/FILE of each,
// and DIRECTORY/trace/FILE of the trace that it becomes.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "tests/traces/sample_captures.h"
#include "traces/import/import.h"
#include "traces/trace/trace_file.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_seeds DIRECTORY\n");
    return 2;
  }
  const std::filesystem::path directory = argv[1];
  std::filesystem::create_directories(directory / "trace");
  for (const auto& sample : railyard::testing::SampleCaptures()) {
    const std::filesystem::path path = directory / sample.format / sample.file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << sample.bytes;
    railyard::Diagnostics diagnostics;
    const railyard::TraceImport import =
        railyard::ImportFiles({path.string()}, sample.format, sample.options, diagnostics);
    if (!import.trace) {
      std::fprintf(stderr, "%s", diagnostics.ToString().c_str());
      return 1;
    }
    railyard::WriteTrace((directory / "trace" / sample.file).string(), *import.trace);
  }
  return 0;
}
