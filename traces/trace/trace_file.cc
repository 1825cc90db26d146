// SPDX-License-Identifier: GPL-2.0-only
#include "traces/trace/trace_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/stubs/logging.h>

#include "simulator/files/output_file.h"
#include "traces/trace/trace.pb.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

constexpr uint32_t kSchemaVersionMin = 1;
constexpr uint32_t kSchemaVersion = 2;
// Operations per TraceRank message: some 2 MiB. A message is parsed as a whole, so its size bounds
// what reading needs beside the trace itself.
constexpr size_t kOperationsPerMessage = 65'536;
constexpr uint32_t kRankMessageBytesMax = 16U << 20;
// The header holds every communicator: kTraceMembersMax ranks of up to 3 bytes, and names.
constexpr uint32_t kHeaderBytesMax = 512U << 20;
// Decompression must not turn a small file into more than a trace of this size.
constexpr uint64_t kTraceOperationsMax = 200'000'000;

// Not over a stream: one clears all that the text ever had room for, message by message.
void AppendDelimited(const google::protobuf::Message& message, std::string& out) {
  size_t bytes = message.ByteSizeLong();
  for (; bytes >= 0x80; bytes >>= 7) out += static_cast<char>(0x80 | (bytes & 0x7f));
  out += static_cast<char>(bytes);
  message.AppendToString(&out);
}

void ToProto(const ExpertCall& expert, protos::ExpertCall* out) {
  out->set_kernel(static_cast<protos::ExpertCall::Kernel>(static_cast<int>(expert.kernel)));
  out->set_token_bytes(expert.token_bytes);
  out->set_channels(expert.channels);
  if (expert.combines) out->set_combines(true);
  if (expert.relayed_for != 0) out->set_relayed_for(expert.relayed_for);
}

// Returns the error as a message, or an empty string.
std::string FromProto(const protos::ExpertCall& in, ExpertCall& expert) {
  if (in.kernel() < 1 || in.kernel() >= kExpertKernelCount) {
    return fmt::format("expert.kernel {} does not exist", static_cast<int>(in.kernel()));
  }
  if (in.channels() > UINT8_MAX) return fmt::format("expert.channels {} exceed 255", in.channels());
  expert = {.relayed_for = in.relayed_for(),
            .token_bytes = in.token_bytes(),
            .kernel = static_cast<ExpertKernel>(in.kernel()),
            .combines = in.combines(),
            .channels = static_cast<uint8_t>(in.channels())};
  return {};
}

void ToProto(const TraceOperation& operation, protos::TraceOperation* out) {
  out->set_kind(static_cast<protos::TraceOperation::Kind>(static_cast<int>(operation.kind) + 1));
  out->set_communicator(operation.communicator);
  out->set_count(operation.count);
  out->set_datatype(static_cast<uint32_t>(operation.datatype));
  if (operation.root != 0) out->set_root(operation.root);
  if (operation.peer != 0) out->set_peer(operation.peer);
  if (operation.stream != 0) out->set_stream(operation.stream);
  if (operation.group != 0) out->set_group(operation.group);
  if (operation.all_to_all != 0) out->set_all_to_all(operation.all_to_all);
  if (operation.expert.kernel != ExpertKernel::kNone) {
    ToProto(operation.expert, out->mutable_expert());
  }
  if (operation.loss_tolerance_ppm != 0) out->set_loss_tolerance_ppm(operation.loss_tolerance_ppm);
  if (operation.in_place) out->set_in_place(true);
  if (operation.measured_ps != 0) out->set_measured_ps(operation.measured_ps);
  if (operation.compute_before_ps != 0) out->set_compute_before_ps(operation.compute_before_ps);
  if (operation.algorithm != Algorithm::kUnstated) {
    out->set_algorithm(static_cast<uint32_t>(operation.algorithm));
  }
  if (operation.protocol != Protocol::kUnstated) {
    out->set_protocol(static_cast<uint32_t>(operation.protocol));
  }
  if (operation.after != 0) out->set_after(operation.after);
  if (operation.begins_iteration) out->set_begins_iteration(true);
  if (operation.source_file != 0) out->set_source_file(operation.source_file);
  if (operation.source_line != 0) out->set_source_line(operation.source_line);
}

// Returns the error of the operation as a message, or an empty string. CheckTrace checks its
// values.
std::string FromProto(const protos::TraceOperation& in, TraceOperation& operation) {
  const int kind = static_cast<int>(in.kind());
  if (kind < 1 || kind > static_cast<int>(CollectiveKind::kCompute) + 1) {
    return fmt::format("kind {} does not exist", kind);
  }
  const bool is_compute = in.kind() == protos::TraceOperation::COMPUTE;
  if ((!in.has_datatype() && !is_compute) ||
      in.datatype() > static_cast<uint32_t>(Datatype::kFloat8E5M2)) {
    return in.has_datatype() ? fmt::format("datatype {} does not exist", in.datatype())
                             : std::string("datatype is missing");
  }
  if (in.algorithm() > static_cast<uint32_t>(Algorithm::kPat)) {
    return fmt::format("algorithm {} does not exist", in.algorithm());
  }
  if (in.protocol() > static_cast<uint32_t>(Protocol::kSimple)) {
    return fmt::format("protocol {} does not exist", in.protocol());
  }
  if (in.count() == 0 && !is_compute) return "count is 0 or missing";
  operation.kind = static_cast<CollectiveKind>(kind - 1);
  operation.communicator = in.communicator();
  operation.count = in.count();
  operation.datatype = static_cast<Datatype>(in.datatype());
  operation.root = in.root();
  operation.peer = in.peer();
  operation.stream = in.stream();
  operation.group = in.group();
  operation.all_to_all = in.all_to_all();
  if (in.has_expert()) {
    if (std::string error = FromProto(in.expert(), operation.expert); !error.empty()) return error;
  }
  operation.loss_tolerance_ppm = in.loss_tolerance_ppm();
  operation.in_place = in.in_place();
  operation.measured_ps = in.measured_ps();
  operation.compute_before_ps = in.compute_before_ps();
  operation.algorithm = static_cast<Algorithm>(in.algorithm());
  operation.protocol = static_cast<Protocol>(in.protocol());
  operation.after = in.after();
  operation.begins_iteration = in.begins_iteration();
  operation.source_file = in.source_file();
  operation.source_line = in.source_line();
  return {};
}

class TraceFileReader {
 public:
  TraceFileReader(const std::string& path, std::istream& stream, Diagnostics& diagnostics)
      : path_(path), input_(&stream), diagnostics_(diagnostics) {}

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
    const uint32_t rank = rank_message_.rank();
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
    for (const protos::TraceOperation& in : rank_message_.operations()) {
      TraceOperation operation;
      const std::string defect = FromProto(in, operation);
      if (!defect.empty()) {
        return Error(fmt::format("rank {}, operation {}: {}", rank, operations.size(), defect));
      }
      operations.push_back(operation);
    }
    return true;
  }

  bool AddCommunicators(uint32_t rank) {
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

  bool ShareProgram(uint32_t rank) {
    const uint32_t same_as = rank_message_.same_as();
    if (same_as >= rank) {
      return Error(fmt::format("rank {} does the same as rank {} (a lower rank was expected)", rank,
                               same_as));
    }
    if (rank_message_.operations_size() > 0 || !trace_.operations[rank].empty()) {
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
  Diagnostics& diagnostics_;
  Trace trace_;
  protos::TraceRank rank_message_;
  int64_t message_begin_ = 0;
  uint32_t rank_ = 0;
  uint64_t operation_count_ = 0;
  uint64_t operations_expected_ = 0;
  uint64_t numbers_count_ = 0;  // of communicators, in the lists of ranks
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
  std::string bytes;
  protos::TraceHeader header;
  header.set_schema_version(trace.communicators_of_rank.empty() ? kSchemaVersionMin
                                                                : kSchemaVersion);
  header.set_origin(trace.origin);
  header.set_nccl_version(trace.nccl_version);
  header.set_rank_count(trace.rank_count);
  header.set_operation_count(trace.operations.OperationCount());
  for (const std::string& source : trace.source_files) header.add_source_files(source);
  for (const TraceCommunicator& communicator : trace.communicators) {
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
  AppendDelimited(header, bytes);
  file.Write(bytes);
  protos::TraceRank message;
  const auto add_communicators = [&](uint32_t rank) {
    if (trace.NumbersAreIndices(rank)) return;
    const std::vector<uint32_t>& of_rank = trace.communicators_of_rank[rank];
    message.mutable_communicators()->Add(of_rank.begin(), of_rank.end());
  };
  std::vector<std::optional<uint32_t>> first_of_program(trace.operations.program_count());
  for (uint32_t rank = 0; rank < trace.operations.size(); ++rank) {
    const std::vector<TraceOperation>& operations = trace.operations[rank];
    std::optional<uint32_t>& first = first_of_program[trace.operations.program_of_rank(rank)];
    if (first && !operations.empty()) {
      message.Clear();
      message.set_rank(rank);
      message.set_same_as(*first);
      add_communicators(rank);
      bytes.clear();
      AppendDelimited(message, bytes);
      file.Write(bytes);
      continue;
    }
    first = rank;
    for (size_t begin = 0; begin < operations.size(); begin += kOperationsPerMessage) {
      message.Clear();
      message.set_rank(rank);
      const size_t end = std::min(operations.size(), begin + kOperationsPerMessage);
      if (begin == 0) add_communicators(rank);
      for (size_t i = begin; i < end; ++i) ToProto(operations[i], message.add_operations());
      bytes.clear();
      AppendDelimited(message, bytes);
      file.Write(bytes);
    }
  }
  file.Close();
}

std::optional<Trace> ReadTrace(const std::string& path, Diagnostics& diagnostics) {
  if (!std::filesystem::is_regular_file(path)) {
    diagnostics.Error({.file = path}, "",
                      std::filesystem::exists(path) ? "is not a file (a trace was expected)"
                                                    : "does not exist (a trace was expected)");
    return std::nullopt;
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw EnvironmentError(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  const auto from_file = [&](std::optional<Trace> trace) {
    if (trace) trace->file = path;
    return trace;
  };
  if (!StartsAsGzip(file)) return from_file(TraceFileReader(path, file, diagnostics).Read());
  // A stream that is not gzip after all ends early, as a truncated one does.
  boost::iostreams::filtering_istream decompressed;
  decompressed.push(boost::iostreams::gzip_decompressor());
  decompressed.push(file);
  return from_file(TraceFileReader(path, decompressed, diagnostics).Read());
}

}  // namespace railyard
