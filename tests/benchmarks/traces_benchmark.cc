// SPDX-License-Identifier: GPL-2.0-only
// Imports of large captures, from the file to the trace. RAILYARD_KINETO_GIB in the environment
// sets the size of the profile by which PeakMemory measures memory.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <unistd.h>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/chakra/chakra_message.h"
#include "traces/import/import.h"

namespace railyard {
namespace {

constexpr size_t kWriteBytes = size_t{4} << 20;

// A file in the directory for temporary files, removed at the end.
class CaptureFile {
 public:
  explicit CaptureFile(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / fmt::format("{}_{}", getpid(), name)),
        out_(path_, std::ios::binary) {}
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;
  ~CaptureFile() { std::filesystem::remove(path_); }

  void Append(std::string_view text) {
    buffer_ += text;
    if (buffer_.size() >= kWriteBytes) Flush();
  }
  void Close() {
    Flush();
    out_.close();
  }
  uint64_t bytes() const { return bytes_; }

  // The whole import; an error ends the benchmark.
  void Import(benchmark::State& state) const {
    Diagnostics diagnostics;
    const TraceImport import = ImportFiles({path_.string()}, kAutoFormat, {}, diagnostics);
    if (!import.trace) state.SkipWithError(diagnostics.ToString().substr(0, 200).c_str());
  }

 private:
  void Flush() {
    out_ << buffer_;
    bytes_ += buffer_.size();
    buffer_.clear();
  }

  std::filesystem::path path_;
  std::ofstream out_;
  std::string buffer_;
  uint64_t bytes_ = 0;
};

// As PyTorch's profiler writes a step: one of 40 events is a kernel of NCCL.
std::string ProfileEvent(uint64_t event) {
  const uint64_t start_us = 4'458'676'522'690 + event * 10;
  if (event % 40 == 0) {
    return fmt::format(R"j(  {{
    "ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(Arguments)",
    "pid": 0, "tid": 7, "ts": {}.250, "dur": 18.400,
    "args": {{
      "External id": {}, "Collective name": "allreduce", "In msg nelems": 8816192,
      "Out msg nelems": 8816192, "Group size": 2, "dtype": "BFloat16", "Process Group Name": "0",
      "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]", "queued": 0,
      "device": 0, "context": 0, "stream": 7, "correlation": {}, "grid": [24, 1, 1]
    }}
  }})j",
                       start_us, event, event);
  }
  return fmt::format(R"j(  {{
    "ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: DivBackward1",
    "pid": 2910249, "tid": 2919752, "ts": {}.655, "dur": 156.777,
    "args": {{
      "External id": {},"Record function id": {}, "Sequence number": 1080, "Fwd thread id": 1,
      "Ev Idx": {}
    }}
  }})j",
                     start_us, event, event, event);
}

void WriteProfile(CaptureFile& file, uint64_t bytes) {
  file.Append(
      "{\"schemaVersion\": 1, \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 0, "
      "\"world_size\": 2},\n\"traceEvents\": [\n");
  uint64_t written = 0;
  for (uint64_t event = 0; written < bytes; ++event) {
    const std::string text = (event == 0 ? "" : ",\n") + ProfileEvent(event);
    written += text.size();
    file.Append(text);
  }
  file.Append("]}\n");
  file.Close();
}

void ImportKineto(benchmark::State& state) {
  CaptureFile file("benchmark_kineto.json");
  WriteProfile(file, uint64_t{256} << 20);
  for (auto _ : state) file.Import(state);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(file.bytes()));
}

void PeakMemory(benchmark::State& state) {
  const char* const gibibytes = std::getenv("RAILYARD_KINETO_GIB");
  CaptureFile file("benchmark_large_kineto.json");
  WriteProfile(file, std::strtoull(gibibytes == nullptr ? "1" : gibibytes, nullptr, 10) << 30);
  for (auto _ : state) file.Import(state);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(file.bytes()));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_rss_MiB"] = static_cast<double>(usage.ru_maxrss) / 1024;
  state.counters["file_MiB"] = static_cast<double>(file.bytes() >> 20);
}

// Every line is a call of one of eight ranks.
void ImportNcclLog(benchmark::State& state) {
  constexpr int kRanks = 8;
  constexpr int kCallsOfRank = 125'000;
  CaptureFile file("benchmark_nccl.log");
  for (int rank = 0; rank < kRanks; ++rank) {
    file.Append(
        fmt::format("node0:{0}:{0} [{1}] NCCL INFO ncclCommInitRank comm 0x55d{1}caaba00 rank {1} "
                    "nranks 8 cudaDev "
                    "{1} nvmlDev {1} busId d1000 commId 0x5a3c9f1e7b20d486 - Init COMPLETE\n",
                    31'000 + rank, rank));
  }
  for (int call = 0; call < kCallsOfRank; ++call) {
    for (int rank = 0; rank < kRanks; ++rank) {
      file.Append(fmt::format(
          "node0:{0}:{0} [{1}] NCCL INFO AllReduce: opCount {2:x} sendbuff 0x7f3c{2:08x} recvbuff "
          "0x7f3c{2:08x} count 4194304 datatype 9 op 0 root 0 comm 0x55d{1}caaba00 [nranks=8] "
          "stream "
          "0x55d4cb0f1a20\n",
          31'000 + rank, rank, call));
    }
  }
  file.Close();
  for (auto _ : state) file.Import(state);
  state.SetItemsProcessed(state.iterations() * kRanks * (kCallsOfRank + 1));  // lines
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(file.bytes()));
}

// One of ten nodes is a call; each depends on the node before it.
void ImportChakra(benchmark::State& state) {
  constexpr uint64_t kNodes = 2'000'000;
  CaptureFile file("benchmark_chakra.0.et");
  std::string bytes;
  AppendChakraMetadata(bytes);
  for (uint64_t id = 0; id < kNodes; ++id) {
    ChakraNode node;
    node.id = id;
    node.name = "aten::mm";
    if (id > 0) node.data_deps = {id - 1};
    node.type = id % 10 == 0 ? 7 : 4;
    node.duration_us = 12;
    if (node.type == 7) {
      node.comm_type = ChakraCommType(CollectiveKind::kAllReduce);
      node.comm_size = 1 << 20;
    }
    AppendChakraNode(node, bytes);
    if (bytes.size() < kWriteBytes) continue;
    file.Append(bytes);
    bytes.clear();
  }
  file.Append(bytes);
  file.Close();
  for (auto _ : state) file.Import(state);
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kNodes));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(file.bytes()));
}

BENCHMARK(ImportKineto)->Unit(benchmark::kMillisecond);
BENCHMARK(ImportNcclLog)->Unit(benchmark::kMillisecond);
BENCHMARK(ImportChakra)->Unit(benchmark::kMillisecond);
BENCHMARK(PeakMemory)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace railyard

BENCHMARK_MAIN();
