// SPDX-License-Identifier: GPL-2.0-only
#include "traces/trace/trace_messages.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>
#include <google/protobuf/repeated_field.h>

namespace railyard {
namespace {

using Column = google::protobuf::RepeatedField<int64_t>;

void ToProto(const ExpertCall& expert, protos::ExpertCall* out) {
  out->set_kernel(static_cast<protos::ExpertCall::Kernel>(static_cast<int>(expert.kernel)));
  out->set_token_bytes(expert.token_bytes);
  out->set_channels(expert.channels);
  if (expert.combines) out->set_combines(true);
  if (expert.relayed_for != 0) out->set_relayed_for(expert.relayed_for);
  if (expert.server_ranks != 0) out->set_server_ranks(expert.server_ranks);
}

// Returns the error as a message, or an empty string.
std::string FromProto(const protos::ExpertCall& in, ExpertCall& expert) {
  if (in.kernel() < 1 || in.kernel() >= kExpertKernelCount) {
    return fmt::format("expert.kernel {} does not exist", static_cast<int>(in.kernel()));
  }
  if (in.channels() > UINT8_MAX) return fmt::format("expert.channels {} exceed 255", in.channels());
  if (in.server_ranks() > UINT8_MAX) {
    return fmt::format("expert.server_ranks {} exceed 255", in.server_ranks());
  }
  expert = {.relayed_for = in.relayed_for(),
            .token_bytes = in.token_bytes(),
            .kernel = static_cast<ExpertKernel>(in.kernel()),
            .combines = in.combines(),
            .channels = static_cast<uint8_t>(in.channels()),
            .server_ranks = static_cast<uint8_t>(in.server_ranks())};
  return {};
}

// A column is stored if a value of it is not 0.
void KeepIfNotZero(Column* column) {
  if (std::all_of(column->begin(), column->end(), [](int64_t value) { return value == 0; })) {
    column->Clear();
  }
}

bool AddTo(uint32_t& number, int64_t step) {
  int64_t sum = 0;
  if (__builtin_add_overflow(int64_t{number}, step, &sum) || sum < 0 || sum > UINT32_MAX) {
    return false;
  }
  number = static_cast<uint32_t>(sum);
  return true;
}

bool AddTo(int64_t& number, int64_t step) { return !__builtin_add_overflow(number, step, &number); }

int64_t At(const Column& column, size_t i) {
  return column.empty() ? 0 : column.Get(static_cast<int>(i));
}

// Turns an operation into the one of the next iteration; `later` counts the operations of the
// iterations after the first.
bool StepOperation(const protos::TraceLoop& loop, size_t i, size_t later, TraceOperation& next) {
  return AddTo(next.group, At(loop.group_steps(), i)) &&
         AddTo(next.all_to_all, At(loop.all_to_all_steps(), i)) &&
         AddTo(next.after, At(loop.after_steps(), i)) &&
         AddTo(next.source_line, At(loop.source_line_steps(), i)) &&
         AddTo(next.source_line, At(loop.source_line_changes(), later)) &&
         AddTo(next.compute_before_ps, At(loop.compute_before_changes(), later)) &&
         AddTo(next.measured_ps, At(loop.measured_changes(), later));
}

}  // namespace

void OperationToProto(const TraceOperation& operation, protos::TraceOperation* out) {
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

std::string OperationFromProto(const protos::TraceOperation& in, TraceOperation& operation) {
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

void LoopToProto(const std::vector<TraceOperation>& program, const ProgramLoop& loop,
                 protos::TraceLoop* out) {
  const size_t length = loop.length;
  const size_t end = loop.begin + length * loop.iterations;
  out->set_iterations(loop.iterations);
  for (size_t i = loop.begin; i < loop.begin + length; ++i) {
    const TraceOperation& first = program[i];
    const TraceOperation& second = program[i + length];
    OperationToProto(first, out->add_operations());
    out->add_group_steps(int64_t{second.group} - first.group);
    out->add_all_to_all_steps(int64_t{second.all_to_all} - first.all_to_all);
    out->add_after_steps(int64_t{second.after} - first.after);
    out->add_source_line_steps(int64_t{second.source_line} - first.source_line);
  }
  bool lines_step = true;
  for (size_t i = loop.begin + length; i < end; ++i) {
    const TraceOperation& before = program[i - length];
    out->add_source_line_changes(int64_t{program[i].source_line} - before.source_line);
    out->add_compute_before_changes(program[i].compute_before_ps - before.compute_before_ps);
    out->add_measured_changes(program[i].measured_ps - before.measured_ps);
    lines_step =
        lines_step && out->source_line_changes().Get(static_cast<int>(i - loop.begin - length)) ==
                          out->source_line_steps().Get(static_cast<int>((i - loop.begin) % length));
  }
  lines_step ? out->clear_source_line_changes() : out->clear_source_line_steps();
  for (Column* column :
       {out->mutable_group_steps(), out->mutable_all_to_all_steps(), out->mutable_after_steps(),
        out->mutable_source_line_steps(), out->mutable_source_line_changes(),
        out->mutable_compute_before_changes(), out->mutable_measured_changes()}) {
    KeepIfNotZero(column);
  }
}

std::string CheckLoopSize(const protos::TraceLoop& in) {
  const auto length = static_cast<uint64_t>(in.operations_size());
  const uint64_t iterations = in.iterations();
  if (length == 0 || iterations < 2 || length * iterations > kLoopOperationsMax) {
    return fmt::format(
        "its loop has {} iterations of {} operations (expected 2 or more of 1 or more, and at most "
        "{} operations in all)",
        iterations, length, kLoopOperationsMax);
  }
  const auto is_column = [](const Column& column, uint64_t size) {
    return column.empty() || static_cast<uint64_t>(column.size()) == size;
  };
  const uint64_t later = length * (iterations - 1);
  if (!is_column(in.group_steps(), length) || !is_column(in.all_to_all_steps(), length) ||
      !is_column(in.after_steps(), length) || !is_column(in.source_line_steps(), length) ||
      !is_column(in.source_line_changes(), later) ||
      !is_column(in.compute_before_changes(), later) || !is_column(in.measured_changes(), later)) {
    return fmt::format("its loop has a column that is neither empty nor of its {} operations",
                       length);
  }
  return {};
}

std::string AppendLoop(const protos::TraceLoop& in, std::vector<TraceOperation>& program) {
  const auto length = static_cast<size_t>(in.operations_size());
  const size_t size = program.size() + length * in.iterations();
  if (program.capacity() < size) program.reserve(std::max(size, 2 * program.capacity()));
  for (const protos::TraceOperation& operation : in.operations()) {
    TraceOperation added;
    if (std::string error = OperationFromProto(operation, added); !error.empty()) return error;
    program.push_back(added);
  }
  for (size_t later = 0; later < length * (in.iterations() - 1); ++later) {
    TraceOperation next = program[program.size() - length];
    if (!StepOperation(in, later % length, later, next)) {
      return "a number of its loop is out of range in a later iteration";
    }
    program.push_back(next);
  }
  return {};
}

}  // namespace railyard
