// SPDX-License-Identifier: GPL-2.0-only
#include "traces/aicb/aicb_reader.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "traces/aicb/aicb_call_list.h"
#include "traces/aicb/aicb_job.h"
#include "traces/aicb/aicb_workload.h"
#include "traces/reading/lines.h"

namespace railyard {
namespace {

constexpr size_t kLineBytesMax = 65'536;
constexpr uint32_t kRanksAssumed = 8;  // a server of today

std::string_view FirstLine(std::string_view head) { return head.substr(0, head.find('\n')); }

bool LooksLikeAicb(std::string_view head) {
  return IsAicbWorkloadHead(FirstLine(head)) || IsAicbCallListHead(head);
}

class FileReader {
 public:
  FileReader(const ImportOptions& options, TraceImport& import, Diagnostics& diagnostics)
      : options_(options), report_(import.report), import_(import), diagnostics_(diagnostics) {}

  bool Read(InputStream& stream) {
    if (!report_.files.empty()) {
      diagnostics_.Error({.file = stream.name()}, "",
                         "is a second file (expected one, which all ranks have in common)");
      return false;
    }
    report_.files.push_back({.path = stream.name()});
    if (IsAicbCallListHead(stream.Peek(InputStream::kPeekBytesMax))) {
      ReadCallList(stream);
    } else {
      ReadWorkload(stream);
    }
    report_.files.front().bytes_read = stream.bytes_read();
    return true;
  }

 private:
  template <typename Parser>
  bool ReadLines(InputStream& stream, Parser& parser) {
    return ForEachLine(
        stream, kLineBytesMax, report_.files.front(),
        [&](std::string_view line) { return parser.ReadLine(line); }, diagnostics_);
  }

  void ReadWorkload(InputStream& stream) {
    AicbWorkloadParser parser(stream.name(), diagnostics_);
    if (!ReadLines(stream, parser)) return;
    const std::optional<AicbWorkload> workload = parser.Finish();
    if (!workload) return;
    if (workload->layers.size() != workload->layers_stated) {
      report_.assumed.push_back(
          fmt::format("The file states {} layers and has {}: those are the job.",
                      workload->layers_stated, workload->layers.size()));
    }
    AicbParallelism parallelism;
    parallelism.tensor = workload->is_micro ? 1 : workload->tensor;
    parallelism.pipeline = workload->pipeline;
    parallelism.expert = workload->expert;
    parallelism.ranks = workload->ranks;
    if (!workload->is_micro && workload->tensor == 1) {
      report_.assumed.push_back(
          "Without tensor parallel ranks, calls of the forward pass and of input gradients are "
          "those "
          "of data parallel ranks.");
    }
    if (workload->pipeline > 1) {
      report_.assumed.push_back("Every stage of the pipeline has these layers.");
      report_.assumed.push_back(
          workload->stage_bytes == 0
              ? "What stages send to one another is not in the file."
              : fmt::format(
                    "What stages send to one another, {} bytes (pp_comm) for a micro-batch, is "
                    "not imported.",
                    workload->stage_bytes));
    }
    std::vector<AicbCall> calls = CallsOf(*workload);
    for (const AicbCall& call : calls) {
      report_.files.front().calls_seen += call.kind == CollectiveKind::kCompute ? 0 : 1;
    }
    report_.assumed.push_back("Times are nanoseconds, sizes those of a call's larger buffer.");
    Finish(std::move(calls), parallelism, stream.name());
  }

  void ReadCallList(InputStream& stream) {
    AicbCallListParser parser(stream.name(), report_, diagnostics_);
    if (!ReadLines(stream, parser) || !parser.Finish()) return;
    AicbParallelism parallelism;
    const auto size_of = [&](AicbGroup group) { return std::max(1u, parser.size_of(group)); };
    parallelism.tensor = size_of(AicbGroup::kTensor);
    parallelism.expert = size_of(AicbGroup::kExpert);
    parallelism.ranks = std::max(parser.ranks(), parser.size_of(AicbGroup::kAll));
    const uint64_t stage = uint64_t{parallelism.tensor} * size_of(AicbGroup::kData);
    if (parallelism.ranks == 0 && stage > 1 && stage <= UINT32_MAX) {
      parallelism.ranks = static_cast<uint32_t>(stage);
    }
    if (parser.size_of(AicbGroup::kData) > 0 && parallelism.ranks % stage == 0) {
      parallelism.pipeline = static_cast<uint32_t>(parallelism.ranks / stage);
    }
    std::vector<AicbCall> calls;
    for (const AicbCall& call : parser.calls()) {
      const bool is_stated = call.kind == CollectiveKind::kCompute ||
                             call.group == AicbGroup::kAll || parser.size_of(call.group) > 0;
      if (is_stated) {
        calls.push_back(call);
      } else {
        report_.Drop(CallDropReason::kAmbiguousCommunicator, 0, call.line,
                     "no row states the size of its group");
      }
    }
    report_.assumed.push_back(
        "Sizes are those of a call's larger buffer; measured times of calls are not gaps.");
    Finish(std::move(calls), parallelism, stream.name());
  }

  void Finish(std::vector<AicbCall> calls, AicbParallelism parallelism, const std::string& file) {
    if (options_.ranks) parallelism.ranks = *options_.ranks;
    if (parallelism.ranks == 0) {
      // Two of each group at least, for a group of one moves nothing.
      const uint64_t least = uint64_t{2} * parallelism.tensor * parallelism.pipeline *
                             std::max(1u, parallelism.expert);
      parallelism.ranks = static_cast<uint32_t>(std::min<uint64_t>(
          UINT32_MAX, parallelism.tensor * uint64_t{parallelism.pipeline} * parallelism.expert == 1
                          ? kRanksAssumed
                          : least));
      report_.assumed.push_back(
          fmt::format("The job has {} ranks, which the file does not say (--ranks says another "
                      "number).",
                      parallelism.ranks));
    }
    if (const std::string problem = parallelism.Problem(); !problem.empty()) {
      diagnostics_.Error({.file = file}, "", problem);
      return;
    }
    if (options_.ignore_times) {
      for (AicbCall& call : calls) call.compute_before_ps = 0;
    }
    import_.trace = TraceOfAicb(calls, parallelism, report_, diagnostics_);
  }

  const ImportOptions& options_;
  ImportReport& report_;
  TraceImport& import_;
  Diagnostics& diagnostics_;
};

TraceImport ReadFiles(const InputFiles& files, const ImportOptions& options,
                      Diagnostics& diagnostics) {
  TraceImport import;
  FileReader reader(options, import, diagnostics);
  files.ForEach([&](InputStream& stream) { return reader.Read(stream); }, diagnostics);
  if (!import.trace) import.report.DropRemaining();
  return import;
}

}  // namespace

constinit const TraceReader kAicbReader = {
    .format = "aicb",
    .description = "SimAI's workload text and AICB's CSV of calls",
    .recognizes = LooksLikeAicb,
    .read = ReadFiles,
    .takes_rank_count = true};

}  // namespace railyard
