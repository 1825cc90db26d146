// SPDX-License-Identifier: GPL-2.0-only
#include "traces/kineto/kineto_events.h"

#include <array>
#include <cstring>
#include <string_view>

#include "simulator/units/number.h"
#include "simulator/units/units.h"
#include "traces/reading/json_events.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

// The fields of an event or its args that are read, as text.
enum class Field : uint8_t {
  kNone,
  kCategory,
  kName,
  kStart,
  kDuration,
  kProcess,
  kThread,
  kArguments,
  kCollective,
  kDtype,
  kIn,
  kOut,
  kInSplit,
  kOutSplit,
  kGroupSize,
  kGroupName,
  kGroupRanks,
  kRankStart,
  kRankStride,
  kRootOrRank,
  kSource,
  kDestination,
  kExternalId,
  kCorrelation,
  kDevice,
  kStream,
  kSequence,
};
constexpr size_t kFieldCount = static_cast<size_t>(Field::kSequence) + 1;

constexpr std::string_view kStepName = "ProfilerStep#";

// Compares with a text of constant length, which takes a few instructions.
template <size_t kBytes>
bool Is(std::string_view key, const char (&text)[kBytes]) {
  return key.size() == kBytes - 1 && std::memcmp(key.data(), text, kBytes - 1) == 0;
}

Field EventField(std::string_view key) {
  if (Is(key, "cat")) return Field::kCategory;
  if (Is(key, "name")) return Field::kName;
  if (Is(key, "ts")) return Field::kStart;
  if (Is(key, "dur")) return Field::kDuration;
  if (Is(key, "args")) return Field::kArguments;
  if (Is(key, "pid")) return Field::kProcess;
  if (Is(key, "tid")) return Field::kThread;
  return Field::kNone;
}

// Compares keys of args by their length first, so that most others are skipped at once.
Field ArgumentField(std::string_view key) {
  switch (key.size()) {
    case 3:
      return Is(key, "Seq") ? Field::kSequence : Field::kNone;
    case 4:
      return Is(key, "Rank") ? Field::kRootOrRank : Field::kNone;
    case 5:
      return Is(key, "dtype") ? Field::kDtype : Field::kNone;
    case 6:
      return Is(key, "stream") ? Field::kStream : Is(key, "device") ? Field::kDevice : Field::kNone;
    case 8:
      return Is(key, "Src Rank")   ? Field::kSource
             : Is(key, "Dst Rank") ? Field::kDestination
                                   : Field::kNone;
    case 10:
      return Is(key, "Group size") ? Field::kGroupSize : Field::kNone;
    case 11:
      return Is(key, "External id") || Is(key, "external id") ? Field::kExternalId
             : Is(key, "correlation")                         ? Field::kCorrelation
                                                              : Field::kNone;
    case 13:
      return Is(key, "In msg nelems")   ? Field::kIn
             : Is(key, "In split size") ? Field::kInSplit
                                        : Field::kNone;
    case 14:
      return Is(key, "Out msg nelems")   ? Field::kOut
             : Is(key, "Out split size") ? Field::kOutSplit
                                         : Field::kNone;
    case 15:
      return Is(key, "Collective name") ? Field::kCollective : Field::kNone;
    case 17:
      return Is(key, "Global rank start") ? Field::kRankStart : Field::kNone;
    case 18:
      return Is(key, "Process Group Name")   ? Field::kGroupName
             : Is(key, "Global rank stride") ? Field::kRankStride
                                             : Field::kNone;
    case 19:
      return Is(key, "Process Group Ranks") ? Field::kGroupRanks : Field::kNone;
    default:
      return Field::kNone;
  }
}

// RCCL runs some collectives by kernels of MSCCL,
// "mscclKernel_Sum_float_Simple_false(ncclDevComm*)".
bool IsNcclKernel(std::string_view category, std::string_view name) {
  if (category != "kernel" && category != "Kernel") return false;
  if (name.find("mscclKernel") != std::string_view::npos) return true;
  const size_t nccl = name.find("nccl");
  return nccl != std::string_view::npos && name.find("Kernel", nccl) != std::string_view::npos;
}

class EventCollector {
 public:
  EventCollector(JsonBytes& bytes, KinetoFile& file) : bytes_(bytes), file_(file) {}

  void Key(std::string_view key) {
    if (depth_ == event_depth_) {
      field_ = EventField(key);
    } else if (in_arguments_ && depth_ == event_depth_ + 1) {
      field_ = ArgumentField(key);
    } else if (event_depth_ == 0) {
      HeaderKey(key);
    }
  }
  void Text(std::string_view text) { Value(text); }
  void Number(std::string_view text) { Value(text); }
  void Bool(bool) { Other(); }
  void Other() {
    if (depth_ <= event_depth_ + 1) field_ = Field::kNone;
  }

  void Open(bool is_object) {
    ++depth_;
    if (event_depth_ == 0) {
      // The events are the array "traceEvents" of the object, or the file is an array of them.
      if (!is_object && (depth_ == 1 || (depth_ == 2 && header_key_ == "traceEvents"))) {
        events_depth_ = depth_;
      } else if (is_object && events_depth_ != 0 && depth_ == events_depth_ + 1) {
        BeginEvent();
      }
      return;
    }
    if (is_object && depth_ == event_depth_ + 1 && field_ == Field::kArguments) {
      in_arguments_ = true;
      field_ = Field::kNone;
    } else if (!is_object && in_arguments_ && depth_ == event_depth_ + 2 &&
               field_ != Field::kNone) {
      list_field_ = field_;
      Of(field_) = "[";
    }
  }

  void Close(bool) {
    if (event_depth_ != 0) {
      if (list_field_ != Field::kNone && depth_ == event_depth_ + 2) {
        Of(list_field_) += ']';
        list_field_ = field_ = Field::kNone;
      } else if (depth_ == event_depth_ + 1) {
        in_arguments_ = false;
        field_ = Field::kNone;
      } else if (depth_ == event_depth_) {
        EndEvent();
        event_depth_ = 0;
      }
    } else if (depth_ == events_depth_) {
      events_depth_ = 0;
    } else if (header_key_ == "pg_config" && depth_ == 4) {
      EndGroup();
    }
    --depth_;
  }

 private:
  std::string& Of(Field field) { return fields_[static_cast<size_t>(field)]; }
  const std::string& Get(Field field) const { return fields_[static_cast<size_t>(field)]; }

  void Value(std::string_view text) {
    if (event_depth_ == 0) {
      HeaderValue(text);
    } else if (list_field_ != Field::kNone) {
      if (depth_ != event_depth_ + 2) return;
      std::string& list = Of(list_field_);
      if (list.size() > 1) list += ',';
      list += text;
    } else if (field_ != Field::kNone && depth_ <= event_depth_ + 1) {
      Of(field_) = text;
      field_ = Field::kNone;
    }
  }

  // {"distributedInfo": {"rank": …, "pg_config": [{"pg_name": …, "ranks": […]}]}}
  void HeaderKey(std::string_view key) {
    if (depth_ == 1) {
      header_key_ = key;
    } else if (depth_ == 2 && (header_key_ == "distributedInfo" || in_distributed_info_)) {
      in_distributed_info_ = true;
      header_key_ = key;
    } else if (depth_ == 4) {
      group_key_ = key;
    }
    if (depth_ == 1) in_distributed_info_ = false;
  }

  void HeaderValue(std::string_view text) {
    if (depth_ == 1 && header_key_ == "baseTimeNanoseconds") {
      file_.base_time_ns = NumberOf<int64_t>(text).value_or(0);
    }
    if (!in_distributed_info_) return;
    if (depth_ == 2) {
      if (header_key_ == "rank") file_.rank = NumberOf<uint32_t>(text);
      if (header_key_ == "world_size") file_.world_size = NumberOf<uint32_t>(text).value_or(0);
      if (header_key_ == "nccl_version") file_.nccl_version = text;
    } else if (header_key_ == "pg_config" && depth_ == 4) {
      if (group_key_ == "pg_name") group_name_ = text;
      // Older versions write the list as text.
      if (group_key_ == "ranks") group_ranks_ = ParseRankList(text).value_or(group_ranks_);
    } else if (header_key_ == "pg_config" && depth_ == 5 && group_key_ == "ranks") {
      if (const auto rank = NumberOf<uint32_t>(text)) group_ranks_.push_back(*rank);
    }
  }

  void EndGroup() {
    file_.group_ranks[group_name_] = std::move(group_ranks_);
    group_name_.clear();
    group_ranks_.clear();
  }

  void BeginEvent() {
    event_depth_ = depth_;
    for (std::string& field : fields_) field.clear();
    field_ = list_field_ = Field::kNone;
    in_arguments_ = false;
  }

  void EndEvent() {
    const std::string& category = Get(Field::kCategory);
    if (category == "kernel" || category == "Kernel") {
      EndKernel(category);
    } else if (Get(Field::kName) == "record_param_comms") {
      const auto id = NumberOf<uint64_t>(Get(Field::kExternalId));
      ++file_.host_calls;
      const uint32_t record = RecordNumber();
      if (id && *id != 0 && record != 0) {
        const auto [launch, is_new] = file_.launches.try_emplace(*id);
        launch->second = {record, SequenceNumber(),
                          is_new ? ParseEventTime(Get(Field::kStart)) : std::nullopt};
      }
      AddMessage(record, id.value_or(0));
    } else if (Get(Field::kName).starts_with("nccl:") && category != "gpu_user_annotation") {
      AddHostEvent({.title = Get(Field::kName)});
    } else if (Get(Field::kName).starts_with(kStepName) && category != "gpu_user_annotation") {
      AddStep();
    }
  }

  void AddStep() {
    const auto number = NumberOf<uint64_t>(Get(Field::kName).substr(kStepName.size()));
    const auto start = ParseEventTime(Get(Field::kStart));
    if (number && start) file_.steps.push_back({*number, *start});
  }

  void AddMessage(uint32_t record, uint64_t external_id) {
    if (record == 0) return;
    const auto kind = PytorchKind(file_.records[record - 1].collective);
    if (kind != CollectiveKind::kSend && kind != CollectiveKind::kRecv) return;
    AddHostEvent({.external_id = external_id,
                  .record = record,
                  .sequence = NumberOf<uint64_t>(Get(Field::kSequence))});
  }

  void AddHostEvent(KinetoHostEvent event) {
    const auto start = ParseEventTime(Get(Field::kStart));
    if (!start) return;
    event.start = *start;
    file_.host_events.push_back(std::move(event));
  }

  bool HasSizes() const {
    return !Get(Field::kCollective).empty() &&
           (!Get(Field::kIn).empty() || !Get(Field::kOut).empty()) &&
           !IsPseudoCollective(Get(Field::kCollective));
  }

  // Returns one more than the index of the event's record; 0 if it does not state all of its sizes.
  uint32_t RecordNumber() {
    if (!HasSizes()) return 0;
    const uint32_t index = RecordIndex();
    return file_.records[index].has_all_parts ? index + 1 : 0;
  }

  // Returns one more than what the event states; 0 if that is nothing, or beyond 32 bits.
  uint32_t SequenceNumber() const {
    const auto sequence = NumberOf<uint32_t>(Get(Field::kSequence));
    return sequence && *sequence < UINT32_MAX ? *sequence + 1 : 0;
  }

  void EndKernel(std::string_view category) {
    const auto start = ParseEventTime(Get(Field::kStart));
    if (start && (!file_.first_kernel || PicosecondsBetween(*file_.first_kernel, *start) < 0)) {
      file_.first_kernel = start;
    }
    if (!IsNcclKernel(category, Get(Field::kName))) return;
    KinetoKernel kernel;
    kernel.line = bytes_.Line();
    kernel.name = Get(Field::kName).substr(0, Get(Field::kName).find('('));
    kernel.start = start;
    if (const std::string& text = Get(Field::kDuration); !text.empty()) {
      const auto duration = ParseEventTime(text);
      const auto duration_ps = duration ? PicosecondsBetween({}, *duration) : std::nullopt;
      kernel.duration_is_none = !duration_ps || *duration_ps < 0;
      if (!kernel.duration_is_none) kernel.duration_ps = *duration_ps;
    }
    const std::string& device =
        Get(Field::kDevice).empty() ? Get(Field::kProcess) : Get(Field::kDevice);
    const std::string& stream =
        Get(Field::kStream).empty() ? Get(Field::kThread) : Get(Field::kStream);
    kernel.device_stream =
        NumberOf<uint64_t>(device).value_or(0) << 40 ^ NumberOf<uint64_t>(stream).value_or(0);
    kernel.correlation = NumberOf<uint64_t>(Get(Field::kCorrelation)).value_or(0);
    kernel.external_id = NumberOf<uint64_t>(Get(Field::kExternalId)).value_or(0);
    kernel.record = RecordNumber();
    kernel.sequence = SequenceNumber();
    kernel.has_shortened_parts = kernel.record == 0 && HasSizes();
    file_.kernels.push_back(std::move(kernel));
  }

  // Combines the fields of a record, and returns the index of an equal one if there is one.
  uint32_t RecordIndex() {
    std::string all;
    for (size_t i = static_cast<size_t>(Field::kCollective);
         i <= static_cast<size_t>(Field::kDestination); ++i) {
      all += fields_[i];
      all += '\n';
    }
    const auto [entry, is_new] =
        record_of_text_.try_emplace(std::move(all), static_cast<uint32_t>(file_.records.size()));
    if (is_new) file_.records.push_back(MakeRecord());
    return entry->second;
  }

  CommsRecord MakeRecord() const {
    CommsRecord record;
    record.collective = Get(Field::kCollective);
    record.dtype = Get(Field::kDtype);
    for (const auto& [field, elements] : {std::pair(Field::kIn, &record.in_elements),
                                          std::pair(Field::kOut, &record.out_elements)}) {
      *elements = NumberOf<uint64_t>(Get(field));
      if (!*elements && !Get(field).empty()) record.wrong_elements = Get(field);
    }
    record.group_name = Get(Field::kGroupName);
    record.group_size = NumberOf<uint32_t>(Get(Field::kGroupSize)).value_or(0);
    if (const auto ranks = ParseRankList(Get(Field::kGroupRanks))) record.group_ranks = *ranks;
    const auto start = NumberOf<uint32_t>(Get(Field::kRankStart));
    const auto stride = NumberOf<uint32_t>(Get(Field::kRankStride));
    if (record.group_ranks.empty() && start && stride && *stride > 0 &&
        record.group_size <= kTraceRanksMax && *stride <= kTraceRanksMax) {
      for (uint32_t i = 0; i < record.group_size; ++i) {
        const uint64_t rank = *start + uint64_t{i} * *stride;
        if (rank < kTraceRanksMax) record.group_ranks.push_back(static_cast<uint32_t>(rank));
      }
    }
    // PyTorch writes "[a, b, ..., z]" where there are more than 30 parts.
    for (const auto& [field, parts] : {std::pair(Field::kInSplit, &record.in_split),
                                       std::pair(Field::kOutSplit, &record.out_split)}) {
      if (Get(field).empty()) continue;
      auto listed = ParseNumberList(Get(field));
      if (!listed) record.has_all_parts = false;
      *parts = std::move(listed).value_or(std::vector<uint64_t>());
    }
    const auto kind = PytorchKind(record.collective);
    record.root_or_peer = NumberOf<uint32_t>(Get(Field::kRootOrRank));
    if (kind == CollectiveKind::kSend) {
      record.global_peer = NumberOf<uint32_t>(Get(Field::kDestination));
    } else if (kind == CollectiveKind::kRecv) {
      record.global_peer = NumberOf<uint32_t>(Get(Field::kSource));
    }
    return record;
  }

  JsonBytes& bytes_;
  KinetoFile& file_;
  size_t depth_ = 0;
  size_t events_depth_ = 0;  // of the array of events while in it; 0: outside
  size_t event_depth_ = 0;   // of the event's object while in one; 0: outside
  bool in_arguments_ = false;
  Field field_ = Field::kNone;       // the field of the next value
  Field list_field_ = Field::kNone;  // the field of the current list
  std::array<std::string, kFieldCount> fields_;
  std::unordered_map<std::string, uint32_t> record_of_text_;
  std::string header_key_;
  bool in_distributed_info_ = false;
  std::string group_key_;
  std::string group_name_;
  std::vector<uint32_t> group_ranks_;
};

}  // namespace

EventTime EndOf(const KinetoKernel& kernel) {
  const int64_t picoseconds = kernel.start->picoseconds + kernel.duration_ps;
  return {kernel.start->microseconds + picoseconds / kPsPerUs, picoseconds % kPsPerUs};
}

bool ReadKinetoFile(InputStream& stream, KinetoFile& file, Diagnostics& diagnostics) {
  JsonBytes bytes(stream);
  EventCollector collector(bytes, file);
  return JsonEvents(bytes, collector).Parse(stream.name(), diagnostics) &&
         EndsHere(bytes, stream.name(), diagnostics);
}

}  // namespace railyard
