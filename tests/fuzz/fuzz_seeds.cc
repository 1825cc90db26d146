// SPDX-License-Identifier: GPL-2.0-only
// Writes the sample captures as seeds: fuzz_seeds DIRECTORY makes DIRECTORY/FORMAT/FILE of each,
// and DIRECTORY/trace/FILE of the trace that it becomes; and a small fabric in every format in
// which fabrics are written, DIRECTORY/fabric/FILE.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "tests/traces/sample_captures.h"
#include "topologies/formats/fabric_argument_loader.h"
#include "topologies/formats/graph_writer.h"
#include "topologies/formats/nccl_topology_writer.h"
#include "topologies/formats/ns3_topology_writer.h"
#include "traces/import/import.h"
#include "traces/trace/trace_file.h"

namespace {

void Write(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

bool WriteFabrics(const std::filesystem::path& directory) {
  railyard::Diagnostics diagnostics;
  const auto fabric = railyard::LoadFabricArgument("dgx-h100", diagnostics, 2);
  if (!fabric) return false;
  std::string nccl;
  std::string ns3;
  if (!railyard::ToNcclTopology(*fabric, 0, nccl).empty()) return false;
  if (!railyard::ToNs3Topology(*fabric, ns3).empty()) return false;
  Write(directory / "topology.textproto", railyard::ToTopologyText(*fabric));
  Write(directory / "fabric.graphml", railyard::ToGraphMl(*fabric));
  Write(directory / "fabric.dot", railyard::ToDot(*fabric));
  Write(directory / "system.xml", nccl);
  Write(directory / "topology.txt", ns3);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_seeds DIRECTORY\n");
    return 2;
  }
  const std::filesystem::path directory = argv[1];
  std::filesystem::create_directories(directory / "trace");
  for (const auto& sample : railyard::testing::SampleCaptures()) {
    const std::filesystem::path path = directory / sample.format / sample.file;
    Write(path, sample.bytes);
    railyard::Diagnostics diagnostics;
    const railyard::TraceImport import =
        railyard::ImportFiles({path.string()}, sample.format, sample.options, diagnostics);
    if (!import.trace) {
      std::fprintf(stderr, "%s", diagnostics.ToString().c_str());
      return 1;
    }
    railyard::WriteTrace((directory / "trace" / sample.file).string(), *import.trace);
  }
  if (!WriteFabrics(directory / "fabric")) {
    std::fprintf(stderr, "a fabric cannot be written\n");
    return 1;
  }
  return 0;
}
