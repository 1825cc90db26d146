// SPDX-License-Identifier: GPL-2.0-only
// Writes the sample captures as seeds: fuzz_seeds DIRECTORY makes DIRECTORY/FORMAT/FILE of each,
// and DIRECTORY/trace/FILE of the trace that it becomes; and a small fabric in every format in
// which fabrics are written, DIRECTORY/fabric/FILE; tables, DIRECTORY/tables/FILE; and a result and
// a file of fault-free runs, DIRECTORY/result/FILE.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <sqlite3.h>

#include "analysis/writers/result_files.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/run/baseline_file.h"
#include "tests/analysis/made_up_run.h"
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
  if (!railyard::ToNcclTopology(*fabric, railyard::ServerIndex{0}, nccl).empty()) return false;
  if (!railyard::ToNs3Topology(*fabric, ns3).empty()) return false;
  Write(directory / "topology.textproto", railyard::ToTopologyText(*fabric));
  Write(directory / "fabric.graphml", railyard::ToGraphMl(*fabric));
  Write(directory / "fabric.dot", railyard::ToDot(*fabric));
  Write(directory / "system.xml", nccl);
  Write(directory / "topology.txt", ns3);
  return true;
}

void WriteTables(const std::filesystem::path& directory) {
  Write(directory / "gate.csv",
        "iteration,layer,expert,tokens\n0,0,1,5\n0,1,7,12\n1,0,3,1\n1,1,0,2\n");
  Write(directory / "requests.csv", "arrival_us,prompt_tokens,output_tokens\n0,128,16\n250,64,8\n");
  Write(directory / "faults.csv",
        "time,target,state\n1.5s,server1/nic0--leaf0,down\n2s,server1/nic0--leaf0,up\n");
  Write(
      directory / "times.csv",
      "simulator,source_id,collective,nodes,gpus_per_node,bytes,time_us\na,b,all_reduce,2,8,1,2\n");
}

// Pages of 512 bytes, so that the database is not longer than an input of the fuzzer.
bool WriteResult(const std::filesystem::path& directory) {
  const std::filesystem::path whole = directory.parent_path() / "whole-result";
  railyard::WriteResults(whole.string(), railyard::testing::MadeUpRun());
  std::filesystem::create_directories(directory);
  const std::string path = (directory / "results.sqlite").string();
  std::filesystem::remove(path);
  std::filesystem::copy_file(whole / "results.sqlite", path);
  const std::filesystem::path summary = directory.parent_path() / "summary";
  std::filesystem::create_directories(summary);
  std::filesystem::copy_file(whole / "summary.json", summary / "summary.json",
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::remove_all(whole);
  sqlite3* database = nullptr;
  const bool is_written = sqlite3_open(path.c_str(), &database) == SQLITE_OK &&
                          sqlite3_exec(database, "PRAGMA page_size = 512; VACUUM", nullptr, nullptr,
                                       nullptr) == SQLITE_OK;
  sqlite3_close(database);
  railyard::Baseline::Outcome outcome;
  outcome.simulated_time_ps = 5;
  outcome.collectives.resize(3);
  outcome.job_end_ps.resize(1);
  railyard::WriteBaselineFile({.path = (directory / "baseline").string(), .key = "fuzz"}, outcome);
  return is_written;
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
  WriteTables(directory / "tables");
  if (!WriteResult(directory / "result")) {
    std::fprintf(stderr, "a result cannot be written\n");
    return 1;
  }
  return 0;
}
