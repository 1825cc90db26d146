// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/perfetto/perfetto_trace.h"

#include <google/protobuf/io/coded_stream.h>

#include "analysis/perfetto/perfetto_trace.pb.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

// All packets are of one sequence.
constexpr uint32_t kSequence = 1;
constexpr uint32_t kStateCleared = 1;
// `repeated TracePacket packet = 1`.
constexpr char kPacketTag = 1 << 3 | 2;

}  // namespace

PerfettoTrace::PerfettoTrace(const std::string& path)
    : file_(path), packet_(std::make_unique<perfetto::TracePacket>()) {
  packet_->set_sequence_flags(kStateCleared);
  Write();
}

PerfettoTrace::~PerfettoTrace() = default;

void PerfettoTrace::Write() {
  packet_->set_trusted_packet_sequence_id(kSequence);
  const size_t size = packet_->ByteSizeLong();
  uint8_t length[10];
  const uint8_t* const end =
      google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(size, length);
  buffer_.assign(1, kPacketTag);
  buffer_.append(reinterpret_cast<const char*>(length), static_cast<size_t>(end - length));
  packet_->AppendToString(&buffer_);
  file_.Write(buffer_);
  bytes_ += buffer_.size();
  packet_->Clear();
}

// --- Tracks --------------------------------------------------------------------------------------

PerfettoTrace::Track PerfettoTrace::AddProcess(int32_t number, const std::string& name) {
  auto& track = *packet_->mutable_track_descriptor();
  track.set_uuid(++last_track_);
  track.mutable_process()->set_pid(number);
  track.mutable_process()->set_process_name(name);
  Write();
  return last_track_;
}

PerfettoTrace::Track PerfettoTrace::AddTrack(Track parent, const std::string& name) {
  auto& track = *packet_->mutable_track_descriptor();
  track.set_uuid(++last_track_);
  track.set_parent_uuid(parent);
  track.set_name(name);
  Write();
  return last_track_;
}

PerfettoTrace::Track PerfettoTrace::AddCounter(Track parent, const std::string& name,
                                               const char* unit) {
  auto& track = *packet_->mutable_track_descriptor();
  track.set_uuid(++last_track_);
  track.set_parent_uuid(parent);
  track.set_name(name);
  track.mutable_counter()->set_unit_name(unit);
  Write();
  return last_track_;
}

// --- Events --------------------------------------------------------------------------------------

void PerfettoTrace::Begin(Track track, int64_t time_ps, int type) {
  packet_->set_timestamp(static_cast<uint64_t>(time_ps / kPsPerNs));
  auto& event = *packet_->mutable_track_event();
  event.set_track_uuid(track);
  event.set_type(static_cast<perfetto::TrackEvent::Type>(type));
}

void PerfettoTrace::Annotate(std::string_view name, const Arguments& arguments) {
  auto& event = *packet_->mutable_track_event();
  event.set_name(name.data(), name.size());
  for (const auto& [key, value] : arguments) {
    auto& annotation = *event.add_debug_annotations();
    annotation.set_name(key);
    if (const bool* flag = std::get_if<bool>(&value)) annotation.set_bool_value(*flag);
    if (const uint64_t* number = std::get_if<uint64_t>(&value)) annotation.set_uint_value(*number);
    if (const int64_t* number = std::get_if<int64_t>(&value)) annotation.set_int_value(*number);
    if (const std::string_view* text = std::get_if<std::string_view>(&value)) {
      annotation.set_string_value(text->data(), text->size());
    }
  }
}

void PerfettoTrace::AddSlice(Track track, int64_t begin_ps, int64_t end_ps, std::string_view name,
                             const Arguments& arguments, const PerfettoFlows& flows) {
  Begin(track, begin_ps, perfetto::TrackEvent::SLICE_BEGIN);
  Annotate(name, arguments);
  for (const uint64_t flow : flows.begins) packet_->mutable_track_event()->add_flow_ids(flow);
  for (const uint64_t flow : flows.ends) {
    packet_->mutable_track_event()->add_terminating_flow_ids(flow);
  }
  Write();
  Begin(track, end_ps, perfetto::TrackEvent::SLICE_END);
  Write();
}

void PerfettoTrace::AddOpenSlice(Track track, int64_t begin_ps, std::string_view name,
                                 const Arguments& arguments) {
  Begin(track, begin_ps, perfetto::TrackEvent::SLICE_BEGIN);
  Annotate(name, arguments);
  Write();
}

void PerfettoTrace::AddInstant(Track track, int64_t time_ps, std::string_view name,
                               const Arguments& arguments) {
  Begin(track, time_ps, perfetto::TrackEvent::INSTANT);
  Annotate(name, arguments);
  Write();
}

void PerfettoTrace::AddValue(Track counter, int64_t time_ps, double value) {
  Begin(counter, time_ps, perfetto::TrackEvent::COUNTER);
  packet_->mutable_track_event()->set_double_counter_value(value);
  Write();
}

void PerfettoTrace::Close() { file_.Close(); }

}  // namespace railyard
