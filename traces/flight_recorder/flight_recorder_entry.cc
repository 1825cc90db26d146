// SPDX-License-Identifier: GPL-2.0-only
#include "traces/flight_recorder/flight_recorder_entry.h"

#include <charconv>

#include "simulator/units/units.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

constexpr double kMeasuredMsMax = 1e9;

// Returns the number of elements of tensors with these dimensions, or nullopt if none are stated.
// If there are several tensors, the number of each is added to `parts`. A dimension that is no
// number of 64 bits is put into `wrong`.
std::optional<uint64_t> ElementsOf(const Value* sizes, std::vector<uint64_t>& parts,
                                   std::string& wrong) {
  if (sizes == nullptr || !sizes->IsList() || sizes->items.empty()) return std::nullopt;
  uint64_t all = 0;
  for (const Value& tensor : sizes->items) {
    uint64_t elements = 1;
    for (const Value& dimension : tensor.items) {
      if (!dimension.Unsigned()) wrong = dimension.text;
      const uint64_t length = dimension.Unsigned().value_or(0);
      if (length > 0 && elements > kOperationBytesMax / length) return kOperationBytesMax + 1;
      elements *= length;
    }
    if (sizes->items.size() > 1) parts.push_back(tensor.IsList() ? elements : 0);
    all += tensor.IsList() ? elements : 0;
    if (all > kOperationBytesMax) return kOperationBytesMax + 1;
  }
  return all;
}

std::string FirstText(const Value* list) {
  return list == nullptr || list->items.empty() ? std::string() : list->items.front().text;
}

// Returns the peer of "nccl:send 0->1" (the receiver) or of "nccl:recv 0<-1" (the sender).
std::optional<uint32_t> PeerIn(std::string_view name) {
  const size_t arrow = name.find_first_of("<>");
  if (arrow == std::string_view::npos) return std::nullopt;
  const size_t from = name.find_first_of("0123456789", arrow);
  if (from == std::string_view::npos) return std::nullopt;
  uint32_t peer = 0;
  const char* const end = name.data() + name.size();
  if (std::from_chars(name.data() + from, end, peer).ec != std::errc()) return std::nullopt;
  return peer;
}

// Returns the recorded duration, 0 if there is none, and nullopt if what is recorded is no
// duration. The times at which the watchdog discovered that a call had started and completed are no
// measure: it looks every 100 ms.
std::optional<int64_t> MeasuredPs(const Value& value) {
  const Value* const duration = value.Find("duration_ms");
  if (duration == nullptr || duration->text.empty()) return 0;
  double milliseconds = 0;
  const std::string& text = duration->text;
  std::from_chars(text.data(), text.data() + text.size(), milliseconds);
  if (!(milliseconds >= 0) || milliseconds >= kMeasuredMsMax) return std::nullopt;
  return static_cast<int64_t>(milliseconds * static_cast<double>(kPsPerMs));
}

}  // namespace

std::optional<FlightRecorderEntry> ParseFlightRecorderEntry(const Value& value) {
  FlightRecorderEntry entry;
  CommsRecord& record = entry.record;
  record.collective = value.TextOf("profiling_name");
  if (record.collective.empty()) return std::nullopt;
  entry.record_id = value.UnsignedOf("record_id");
  entry.sequence = value.UnsignedOf("collective_seq_id");
  if (!entry.sequence) entry.sequence = value.UnsignedOf("seq_id");
  entry.message_sequence = value.UnsignedOf("p2p_seq_id");
  const Value* const is_point_to_point = value.Find("is_p2p");
  entry.states_point_to_point = is_point_to_point != nullptr;
  entry.is_point_to_point =
      is_point_to_point != nullptr && is_point_to_point->kind == Value::Kind::kTrue;
  const std::string state = value.TextOf("state");
  if (state == "scheduled") entry.state = FlightRecorderEntry::State::kScheduled;
  if (state == "started") entry.state = FlightRecorderEntry::State::kStarted;
  const std::optional<int64_t> measured_ps = MeasuredPs(value);
  entry.measured_ps = measured_ps.value_or(0);
  entry.duration_is_none = !measured_ps;
  // New versions record a list of the group's name and description, old ones the name alone.
  record.group_name = FirstText(value.Find("process_group"));
  if (record.group_name.empty()) record.group_name = value.TextOf("pg_name");
  if (record.group_name.empty()) record.group_name = value.TextOf("pg_id");
  record.in_elements = ElementsOf(value.Find("input_sizes"), entry.inputs, record.wrong_elements);
  record.out_elements =
      ElementsOf(value.Find("output_sizes"), entry.outputs, record.wrong_elements);
  record.dtype = FirstText(value.Find("input_dtypes"));
  if (record.dtype.empty()) record.dtype = FirstText(value.Find("output_dtypes"));
  const auto kind = PytorchKind(record.collective);
  if (kind == CollectiveKind::kSend || kind == CollectiveKind::kRecv) {
    record.root_or_peer = PeerIn(record.collective);
    entry.sequence.reset();
    entry.is_message = true;
  }
  return entry;
}

}  // namespace railyard
