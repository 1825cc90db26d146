// SPDX-License-Identifier: GPL-2.0-only
#include "traces/pytorch_et/pytorch_et_reader.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "traces/pytorch/pair_communicators.h"
#include "traces/pytorch_et/execution_trace_calls.h"
#include "traces/reading/captured_job.h"

namespace railyard {
namespace {

class ExecutionTraceImport {
 public:
  ExecutionTraceImport(const ImportOptions& options, ImportReport& report, Diagnostics& diagnostics)
      : options_(options), report_(report), diagnostics_(diagnostics) {}

  void ReadFile(InputStream& stream) {
    const auto index = static_cast<uint32_t>(report_.files.size());
    report_.files.push_back({.path = stream.name()});
    ExecutionTraceCalls::File& file = calls_.ReadFile(stream, report_, diagnostics_);
    report_.files[index].bytes_read = stream.bytes_read();
    report_.files[index].calls_seen = file.calls.size() + file.defects.size();
    for (ExecutionTraceCalls::Defect& of : file.defects) {
      report_.Drop(of.defect.reason, index, of.line, std::move(of.defect.detail));
    }
    if (job_.calls().contains(file.rank)) {
      report_.assumed.push_back(
          fmt::format("{} goes on with the calls of rank {}, of which there is an earlier file",
                      stream.name(), file.rank));
    }
    job_.AddRank(file.rank);
  }

  std::optional<Trace> Finish() {
    calls_.SizeGroups();
    std::map<uint32_t, uint32_t> steps_of_rank;  // in the files so far
    for (uint32_t index = 0; index < calls_.files().size(); ++index) {
      const ExecutionTraceCalls::File& file = calls_.files()[index];
      std::map<uint32_t, uint32_t> batch_sizes;
      for (const ExecutionTraceCalls::Call& call : file.calls) ++batch_sizes[call.batch];
      for (const auto& [line, record, batch, step] : file.calls) {
        CapturedCall call;
        call.step = steps_of_rank[file.rank] + step;
        call.operation.group = batch_sizes[batch] > 1 ? batch : 0;
        if (auto defect = CallOfRecord(record, job_, call)) {
          report_.Drop(defect->reason, index, line, std::move(defect->detail));
          continue;
        }
        call.operation.stream = job_.StreamOf(file.rank, call.operation.communicator);
        call.operation.source_file = index;
        call.operation.source_line = static_cast<uint32_t>(std::min<uint64_t>(line, UINT32_MAX));
        job_.Add(file.rank, std::move(call));
      }
      steps_of_rank[file.rank] += file.steps;
    }
    if (!calls_.files().empty()) {
      report_.assumed.push_back(
          "an execution trace has no times: the calls of a group follow each other");
    }
    std::optional<Trace> trace = BuildTrace(std::move(job_), options_, report_, diagnostics_);
    if (trace) SeparatePairsInCircles(*trace, report_);
    return trace;
  }

 private:
  const ImportOptions& options_;
  ImportReport& report_;
  Diagnostics& diagnostics_;
  CapturedJob job_{"pytorch-et"};
  ExecutionTraceCalls calls_;
};

}  // namespace

constinit const TraceReader kPytorchEtReader = {
    .format = "pytorch-et",
    .description = "execution traces of PyTorch's ExecutionTraceObserver",
    .recognizes = LooksLikeExecutionTrace,
    .read = ReadEachFile<ExecutionTraceImport>,
    .records_times = false};

}  // namespace railyard
