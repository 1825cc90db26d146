// SPDX-License-Identifier: GPL-2.0-only
#include "traces/trace/trace_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/stubs/logging.h>

#include "simulator/diagnostics/checked_reading.h"
#include "simulator/files/output_file.h"
#include "traces/trace/trace.pb.h"
#include "traces/trace/trace_check.h"
#include "traces/trace/trace_loops.h"
#include "traces/trace/trace_messages.h"

namespace railyard {
namespace {

constexpr uint32_t kSchemaVersionMin = 1;
constexpr uint32_t kSchemaVersionOfNumbers = 2;  // TraceRank::communicators
constexpr uint32_t kSchemaVersionOfLoops = 3;
constexpr uint32_t kSchemaVersion = kSchemaVersionOfLoops;
// Operations per TraceRank message: some 2 MiB. A message is parsed as a whole, so its size bounds
// what reading needs beside the trace itself.
constexpr size_t kOperationsPerMessage = 65'536;
constexpr uint32_t kRankMessageBytesMax = 16U << 20;
// The header holds every communicator: kTraceMembersMax ranks of up to 3 bytes, and names.
constexpr uint32_t kHeaderBytesMax = 512U << 20;
constexpr uint64_t kTraceOperationsMax = 200'000'000;
// A compressed trace is bounded by its size, so that a small file cannot exhaust the memory.
constexpr uint64_t kExpansionMax = 250;
constexpr uint64_t kExpansionFreeBytes = 64U << 20;

// Not over a stream: one clears all that the text ever had room for, message by message.
void AppendDelimited(const google::protobuf::Message& message, std::string& out) {
  size_t bytes = message.ByteSizeLong();
  for (; bytes >= 0x80; bytes >>= 7) out += static_cast<char>(0x80 | (bytes & 0x7f));
  out += static_cast<char>(bytes);
  message.AppendToString(&out);
}

class TraceFileReader {
 public:
  TraceFileReader(const std::string& path, std::istream& stream, uint64_t bytes_max,
                  Diagnostics& diagnostics)
      : path_(path), input_(&stream), bytes_max_(bytes_max), diagnostics_(diagnostics) {}

  std::optional<Trace> Read() {
    if (!ReadHeader()) return std::nullopt;
    for (;;) {
      const Next next = ReadMessage(rank_message_, kRankMessageBytesMax, "rank");
      if (next == Next::kEnd) break;
      if (next == Next::kError || !AddRank()) return std::nullopt;
    }
    message_begin_ = input_.ByteCount();
    if (operation_count_ != operations_expected_) {
      Error(fmt::format("the file ends after {} of {} operations", operation_count_,
                        operations_expected_));
      return std::nullopt;
    }
    if (!CheckTrace(trace_, path_, diagnostics_)) return std::nullopt;
    return std::move(trace_);
  }

 private:
  enum class Next { kMessage, kEnd, kError };

  bool Error(const std::string& what) {
    // All of it is one line, of bytes.
    const auto column = static_cast<int>(std::min<int64_t>(message_begin_, INT32_MAX - 1)) + 1;
    diagnostics_.Error({.file = path_, .line = 1, .column = column}, "",
                       fmt::format("byte {}: {} (a trace written by railyard import was expected)",
                                   message_begin_, what));
    return false;
  }

  // The next delimited message. A coded stream per message keeps its byte count, an int, small.
  Next ReadMessage(google::protobuf::Message& message, uint32_t bytes_max, std::string_view name) {
    message_begin_ = input_.ByteCount();
    google::protobuf::io::CodedInputStream coded(&input_);
    uint32_t bytes = 0;
    const void* data = nullptr;
    int available = 0;
    if (!coded.GetDirectBufferPointer(&data, &available)) return Next::kEnd;
    if (!coded.ReadVarint32(&bytes)) {
      Error(fmt::format("the length of the {} message is cut off or malformed", name));
      return Next::kError;
    }
    if (bytes > bytes_max) {
      Error(fmt::format("the {} message of {} bytes is too large (at most {})", name, bytes,
                        bytes_max));
      return Next::kError;
    }
    const auto limit = coded.PushLimit(static_cast<int>(bytes));
    // It prints what it thinks of text that is not UTF-8; the finding says so.
    const google::protobuf::LogSilencer silent;
    if (!message.ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage() ||
        coded.BytesUntilLimit() != 0) {
      Error(
          fmt::format("the {} message is cut off, malformed, or has text that is not UTF-8", name));
      return Next::kError;
    }
    coded.PopLimit(limit);
    if (static_cast<uint64_t>(message_begin_) + bytes > bytes_max_) {
      Error(fmt::format("the compressed file expands to more than {} bytes", bytes_max_));
      return Next::kError;
    }
    return Next::kMessage;
  }

  bool ReadHeader() {
    protos::TraceHeader header;
    switch (ReadMessage(header, kHeaderBytesMax, "header")) {
      case Next::kEnd:
        return Error("the file is empty");
      case Next::kError:
        return false;
      case Next::kMessage:
        break;
    }
    if (header.schema_version() < kSchemaVersionMin || header.schema_version() > kSchemaVersion) {
      return Error(fmt::format("schema version {} is not known (versions {} to {} are)",
                               header.schema_version(), kSchemaVersionMin, kSchemaVersion));
    }
    if (header.rank_count() < 1 || header.rank_count() > kTraceRanksMax) {
      return Error(fmt::format("rank_count {} is out of range (1 to {})", header.rank_count(),
                               kTraceRanksMax));
    }
    operations_expected_ = header.operation_count();
    trace_.origin = header.origin();
    trace_.nccl_version = header.nccl_version();
    trace_.rank_count = header.rank_count();
    trace_.source_files.assign(header.source_files().begin(), header.source_files().end());
    trace_.communicators.reserve(static_cast<size_t>(header.communicators_size()));
    for (const protos::TraceCommunicator& communicator : header.communicators()) {
      TraceCommunicator& added = trace_.communicators.emplace_back();
      added.name = communicator.name();
      added.ranks = {communicator.ranks().begin(), communicator.ranks().end()};
      for (const protos::TraceRing& ring : communicator.rings()) {
        added.rings.emplace_back(ring.ranks().begin(), ring.ranks().end());
      }
      for (const protos::TraceTree& tree : communicator.trees()) {
        added.tree_parents.emplace_back(tree.parents().begin(), tree.parents().end());
      }
    }
    trace_.operations.resize(trace_.rank_count);
    return true;
  }

  bool AddRank() {
    const GlobalRank rank{rank_message_.rank()};
    if (rank >= trace_.rank_count) {
      return Error(fmt::format("rank {} does not exist (0 to {})", rank, trace_.rank_count - 1));
    }
    if (rank < rank_) {
      return Error(fmt::format("rank {} follows rank {} (ranks are in order)", rank, rank_));
    }
    rank_ = rank;
    operation_count_ += static_cast<uint64_t>(rank_message_.operations_size());
    if (operation_count_ > kTraceOperationsMax) {
      return Error(fmt::format("more than {} operations", kTraceOperationsMax));
    }
    if (rank_message_.communicators_size() > 0 && !AddCommunicators(rank)) return false;
    if (rank_message_.has_same_as()) return ShareProgram(rank);
    std::vector<TraceOperation>& operations = trace_.operations[rank];
    if (rank_message_.has_loop()) return AddLoop(rank, operations);
    for (const protos::TraceOperation& in : rank_message_.operations()) {
      TraceOperation operation;
      const std::string defect = OperationFromProto(in, operation);
      if (!defect.empty()) {
        return Error(fmt::format("rank {}, operation {}: {}", rank, operations.size(), defect));
      }
      operations.push_back(operation);
    }
    return true;
  }

  bool AddLoop(GlobalRank rank, std::vector<TraceOperation>& operations) {
    const protos::TraceLoop& loop = rank_message_.loop();
    std::string defect = rank_message_.operations_size() > 0
                             ? "has a loop and operations in one message (one of both was expected)"
                             : CheckLoopSize(loop);
    if (!defect.empty()) return Error(fmt::format("rank {}: {}", rank, defect));
    const auto length = static_cast<uint64_t>(loop.operations_size());
    operation_count_ += length * loop.iterations();
    if (operation_count_ > kTraceOperationsMax) {
      return Error(fmt::format("more than {} operations", kTraceOperationsMax));
    }
    if (!loop_budget_.Take(length * (loop.iterations() - 1),
                           static_cast<uint64_t>(input_.ByteCount()))) {
      return Error("its loops expand to more operations than a file of this size may have");
    }
    defect = AppendLoop(loop, operations);
    if (defect.empty()) return true;
    return Error(fmt::format("rank {}, operation {}: {}", rank, operations.size(), defect));
  }

  bool AddCommunicators(GlobalRank rank) {
    const auto& communicators = rank_message_.communicators();
    trace_.communicators_of_rank.resize(trace_.rank_count);
    std::vector<uint32_t>& of_rank = trace_.communicators_of_rank[rank];
    if (!of_rank.empty() || !trace_.operations[rank].empty()) {
      return Error(fmt::format(
          "rank {} says what its communicators are again, or late (its first message was expected "
          "to)",
          rank));
    }
    numbers_count_ += static_cast<uint64_t>(communicators.size());
    if (numbers_count_ > kTraceMembersMax) {
      return Error(fmt::format("more than {} communicators of ranks", kTraceMembersMax));
    }
    of_rank.assign(communicators.begin(), communicators.end());
    return true;
  }

  bool ShareProgram(GlobalRank rank) {
    const GlobalRank same_as{rank_message_.same_as()};
    if (same_as >= rank) {
      return Error(fmt::format("rank {} does the same as rank {} (a lower rank was expected)", rank,
                               same_as));
    }
    if (rank_message_.operations_size() > 0 || rank_message_.has_loop() ||
        !trace_.operations[rank].empty()) {
      return Error(
          fmt::format("rank {} does the same as rank {} and has operations of its own (one of both "
                      "was expected)",
                      rank, same_as));
    }
    operation_count_ += trace_.operations[same_as].size();
    if (operation_count_ > kTraceOperationsMax) {
      return Error(fmt::format("more than {} operations", kTraceOperationsMax));
    }
    trace_.operations.SetProgram(rank, trace_.operations.program_of_rank(same_as));
    return true;
  }

  const std::string& path_;
  google::protobuf::io::IstreamInputStream input_;
  uint64_t bytes_max_;  // of the decompressed file
  Diagnostics& diagnostics_;
  Trace trace_;
  protos::TraceRank rank_message_;
  int64_t message_begin_ = 0;
  GlobalRank rank_{};
  uint64_t operation_count_ = 0;
  uint64_t operations_expected_ = 0;
  uint64_t numbers_count_ = 0;  // of communicators, in the lists of ranks
  LoopBudget loop_budget_;
};

class TraceFileWriter {
 public:
  TraceFileWriter(OutputFile& file, const Trace& trace) : file_(file), trace_(trace) {}

  void Write() {
    FindAllLoops();
    for (GlobalRank rank{0}; rank < trace_.operations.size(); ++rank) {
      has_numbers_ =
          has_numbers_ || !(trace_.operations[rank].empty() || trace_.NumbersAreIndices(rank));
    }
    WriteHeader();
    std::vector<std::optional<uint32_t>> first_of_program(trace_.operations.program_count());
    for (GlobalRank rank{0}; rank < trace_.operations.size(); ++rank) {
      const uint32_t program = trace_.operations.program_of_rank(rank);
      std::optional<uint32_t>& first = first_of_program[program];
      if (first && !trace_.operations[rank].empty()) {
        Begin(rank);
        message_.set_same_as(*first);
        AddCommunicators(rank);
        Put(message_);
        continue;
      }
      first = rank;
      WriteProgram(rank, trace_.operations[rank], loops_[program]);
    }
  }

 private:
  void FindAllLoops() {
    std::vector<bool> is_used(trace_.operations.program_count());
    for (GlobalRank rank{0}; rank < trace_.operations.size(); ++rank) {
      is_used[trace_.operations.program_of_rank(rank)] = true;
    }
    for (const bool used : is_used) {
      const auto program = static_cast<uint32_t>(loops_.size());
      loops_.push_back(used ? FindLoops(trace_.operations.program(program))
                            : std::vector<ProgramLoop>());
      has_loops_ = has_loops_ || !loops_.back().empty();
    }
  }

  void WriteHeader() {
    protos::TraceHeader header;
    header.set_schema_version(has_loops_     ? kSchemaVersionOfLoops
                              : has_numbers_ ? kSchemaVersionOfNumbers
                                             : kSchemaVersionMin);
    header.set_origin(trace_.origin);
    header.set_nccl_version(trace_.nccl_version);
    header.set_rank_count(trace_.rank_count);
    header.set_operation_count(trace_.operations.OperationCount());
    for (const std::string& source : trace_.source_files) header.add_source_files(source);
    for (const TraceCommunicator& communicator : trace_.communicators) {
      protos::TraceCommunicator* out = header.add_communicators();
      out->set_name(communicator.name);
      out->mutable_ranks()->Add(communicator.ranks.begin(), communicator.ranks.end());
      for (const auto& ring : communicator.rings) {
        out->add_rings()->mutable_ranks()->Add(ring.begin(), ring.end());
      }
      for (const auto& parents : communicator.tree_parents) {
        out->add_trees()->mutable_parents()->Add(parents.begin(), parents.end());
      }
    }
    Put(header);
  }

  void WriteProgram(GlobalRank rank, const std::vector<TraceOperation>& operations,
                    const std::vector<ProgramLoop>& loops) {
    size_t written = 0;
    for (const ProgramLoop& loop : loops) {
      Begin(rank);
      if (written == 0 && loop.begin == 0) AddCommunicators(rank);
      LoopToProto(operations, loop, message_.mutable_loop());
      std::string bytes;
      AppendDelimited(message_, bytes);
      // The operations before the loop are written first, which only raises the bound.
      if (!loop_budget_.Take(uint64_t{loop.length} * (loop.iterations - 1),
                             bytes_written_ + bytes.size())) {
        continue;
      }
      WriteOperations(rank, operations, written, loop.begin);
      Put(bytes);
      written = loop.begin + size_t{loop.length} * loop.iterations;
    }
    WriteOperations(rank, operations, written, operations.size());
  }

  void WriteOperations(GlobalRank rank, const std::vector<TraceOperation>& operations, size_t begin,
                       size_t end) {
    for (size_t at = begin; at < end;) {
      Begin(rank);
      if (at == 0) AddCommunicators(rank);
      const size_t stop = std::min(end, at + kOperationsPerMessage);
      for (; at < stop; ++at) OperationToProto(operations[at], message_.add_operations());
      Put(message_);
    }
  }

  void AddCommunicators(GlobalRank rank) {
    if (trace_.NumbersAreIndices(rank)) return;
    const std::vector<uint32_t>& of_rank = trace_.communicators_of_rank[rank];
    message_.mutable_communicators()->Add(of_rank.begin(), of_rank.end());
  }

  void Begin(GlobalRank rank) {
    message_.Clear();
    message_.set_rank(rank);
  }
  void Put(const google::protobuf::Message& message) {
    bytes_.clear();
    AppendDelimited(message, bytes_);
    Put(bytes_);
  }
  void Put(const std::string& bytes) {
    file_.Write(bytes);
    bytes_written_ += bytes.size();
  }

  OutputFile& file_;
  const Trace& trace_;
  std::vector<std::vector<ProgramLoop>> loops_;  // by program
  bool has_loops_ = false;
  bool has_numbers_ = false;  // operations whose communicators are numbers of their rank
  LoopBudget loop_budget_;
  uint64_t bytes_written_ = 0;
  protos::TraceRank message_;
  std::string bytes_;
};

bool StartsAsGzip(std::istream& stream) {
  const int first = stream.get();
  const int second = stream.get();
  stream.clear();
  stream.seekg(0);
  return first == 0x1f && second == 0x8b;
}

}  // namespace

void WriteTrace(const std::string& path, const Trace& trace) {
  OutputFile file(path);
  TraceFileWriter(file, trace).Write();
  file.Close();
}

std::optional<Trace> ReadTrace(const std::string& path, Diagnostics& diagnostics) {
  if (!std::filesystem::is_regular_file(path)) {
    diagnostics.Error({.file = path}, "",
                      std::filesystem::exists(path) ? "is not a file (a trace was expected)"
                                                    : "does not exist (a trace was expected)");
    return std::nullopt;
  }
  std::ifstream file = OpenToRead(path);
  const auto from_file = [&](std::optional<Trace> trace) {
    file.peek();  // a decompressor keeps the failure of what it reads to itself
    CheckReading(file, path);
    if (trace) trace->file = path;
    return trace;
  };
  if (!StartsAsGzip(file)) {
    return from_file(TraceFileReader(path, file, UINT64_MAX, diagnostics).Read());
  }
  // A stream that is not gzip after all ends early, as a truncated one does.
  boost::iostreams::filtering_istream decompressed;
  decompressed.push(boost::iostreams::gzip_decompressor());
  decompressed.push(file);
  const uint64_t bytes_max = kExpansionFreeBytes + kExpansionMax * std::filesystem::file_size(path);
  return from_file(TraceFileReader(path, decompressed, bytes_max, diagnostics).Read());
}

}  // namespace railyard
