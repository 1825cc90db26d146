// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/schedule_files/mscclpp_plan.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>

#include "simulator/diagnostics/names.h"
#include "simulator/scenario/schedule_files/json_lines.h"
#include "simulator/scenario/schedule_files/msccl_program.h"
#include "workloads/collectives/explicit_schedule.h"

namespace railyard {
namespace {

using Json = rapidjson::Value;

struct NamedOperation {
  std::string_view name;
  MscclppKind kind = MscclppKind::kNothing;
  bool waits_for_data = false;
  bool signals = false;
};
constexpr NamedOperation kOperations[] = {{"nop"},
                                          {"flush"},
                                          {"put", MscclppKind::kMove},
                                          {"pws", MscclppKind::kMove, false, true},
                                          {"pwsf", MscclppKind::kMove, false, true},
                                          {"get", MscclppKind::kMove},
                                          {"copy", MscclppKind::kMove},
                                          {"ppkt", MscclppKind::kMove},
                                          {"cpkt", MscclppKind::kMove},
                                          {"rppkt", MscclppKind::kMove, true},
                                          {"upkt", MscclppKind::kMove, true},
                                          {"re", MscclppKind::kReduce},
                                          {"res", MscclppKind::kReduce},
                                          {"rre", MscclppKind::kReduce},
                                          {"rres", MscclppKind::kReduce},
                                          {"repkt", MscclppKind::kReduce, true},
                                          {"respkt", MscclppKind::kReduce, true},
                                          {"recpkt", MscclppKind::kReduce, true},
                                          {"recspkt", MscclppKind::kReduce, true},
                                          {"signal", MscclppKind::kSignal},
                                          {"rlxsignal", MscclppKind::kSignal},
                                          {"wait", MscclppKind::kWait},
                                          {"rlxwait", MscclppKind::kWait},
                                          {"barrier", MscclppKind::kBarrier},
                                          {"sem_acquire", MscclppKind::kAcquire},
                                          {"sem_release", MscclppKind::kRelease}};

constexpr uint32_t kBlocksMax = 65'536;
constexpr int kPipelineDepthMax = 8;
constexpr int64_t kSemaphoreMax = 1'000'000;

class PlanParser {
 public:
  PlanParser(const std::string& path, const std::string& text, Diagnostics& diagnostics)
      : path_(path), diagnostics_(diagnostics), lines_(text) {}

  std::optional<MscclppPlan> Parse(const std::string& text) {
    rapidjson::Document document;
    document.Parse<rapidjson::kParseIterativeFlag>(text.data(), text.size());
    if (document.HasParseError()) {
      const auto lines = std::count(
          text.begin(), text.begin() + static_cast<ptrdiff_t>(document.GetErrorOffset()), '\n');
      diagnostics_.Error(
          {.file = path_, .line = static_cast<int>(lines + 1), .column = 1}, "",
          fmt::format("is no JSON: {}", rapidjson::GetParseError_En(document.GetParseError())));
      return std::nullopt;
    }
    if (!document.IsObject() || !ReadHead(document) || !ReadGpus(document["gpus"])) {
      if (!diagnostics_.HasErrors()) Error("", "is no object (expected a plan of MSCCL++)");
      return std::nullopt;
    }
    return std::move(plan_);
  }

 private:
  // Lists what a thread block's operations refer to, by type of channel (0: memory, 1: port).
  struct Block {
    std::vector<uint32_t> channels[2];  // into Gpu::channels
    std::vector<uint32_t> buffers[2];   // into Gpu::buffers
  };
  struct Gpu {
    RankIndex id{0};
    std::vector<MscclppChannel> channels[2] = {};
    std::vector<MscclppChunks> buffers = {};  // of other GPUs
  };

  bool Error(const std::string& place, const std::string& what) {
    diagnostics_.Error({.file = path_, .line = lines_.LineOf(place), .column = 1}, place, what);
    return false;
  }

  // --- Values ------------------------------------------------------------------------------------
  bool Number(const Json& object, const char* key, const std::string& place, int64_t min,
              int64_t max, int64_t& value) {
    const auto member = object.FindMember(key);
    if (member == object.MemberEnd() || !member->value.IsInt64() ||
        member->value.GetInt64() < min || member->value.GetInt64() > max) {
      return Error(place,
                   fmt::format("{} is missing or out of range (expected {} to {})", key, min, max));
    }
    value = member->value.GetInt64();
    return true;
  }
  bool Index(const Json& object, const char* key, const std::string& place, size_t end,
             uint32_t& value) {
    int64_t number = 0;
    if (!Number(object, key, place, 0, static_cast<int64_t>(end) - 1, number)) return false;
    value = static_cast<uint32_t>(number);
    return true;
  }
  // Returns the list; an empty one where there is none.
  static const Json& List(const Json& object, const char* key) {
    static const Json kNone(rapidjson::kArrayType);
    const auto member = object.FindMember(key);
    return member != object.MemberEnd() && member->value.IsArray() ? member->value : kNone;
  }
  static std::string_view Text(const Json& object, const char* key) {
    const auto member = object.FindMember(key);
    if (member == object.MemberEnd() || !member->value.IsString()) return {};
    return {member->value.GetString(), member->value.GetStringLength()};
  }
  bool IsListOfObjects(const Json& list, const std::string& place) {
    if (std::all_of(list.Begin(), list.End(), [](const Json& item) { return item.IsObject(); })) {
      return true;
    }
    return Error(place, "is no list of objects");
  }

  bool Type(std::string_view text, const std::string& place, size_t& type) {
    if (text != "memory" && text != "port") {
      return Error(
          place, fmt::format("channel type {} is not read (expected memory or port)", Quote(text)));
    }
    type = text == "port" ? 1 : 0;
    return true;
  }
  bool Buffer(std::string_view text, const std::string& place, MscclppBuffer& buffer) {
    if (text != "i" && text != "o" && text != "s") {
      return Error(place, fmt::format("{} is no buffer (expected i, o or s)", Quote(text)));
    }
    buffer = text == "i"   ? MscclppBuffer::kInput
             : text == "o" ? MscclppBuffer::kOutput
                           : MscclppBuffer::kScratch;
    return true;
  }

  // --- The plan --------------------------------------------------------------------------------
  bool ReadHead(const Json& root) {
    static const std::map<std::string_view, CollectiveKind> kKinds = {
        {"allreduce", CollectiveKind::kAllReduce},
        {"allgather", CollectiveKind::kAllGather},
        {"reducescatter", CollectiveKind::kReduceScatter},
        {"alltoall", CollectiveKind::kAllToAll}};
    const auto kind = kKinds.find(Text(root, "collective"));
    if (kind == kKinds.end()) {
      return Error("collective",
                   fmt::format("{} cannot be run as a custom algorithm (expected allreduce, "
                               "allgather, reducescatter or alltoall)",
                               Quote(Text(root, "collective"))));
    }
    plan_.kind = kind->second;
    const std::optional<Protocol> protocol = MscclProtocolNamed(Text(root, "protocol"));
    if (!protocol || (root.HasMember("protocol") && !root["protocol"].IsString())) {
      return Error("protocol", fmt::format("{} is not read (expected Simple or LL)",
                                           Quote(Text(root, "protocol"))));
    }
    plan_.protocol = *protocol;
    const auto in_place = root.FindMember("inplace");
    plan_.is_in_place =
        in_place != root.MemberEnd() && in_place->value.IsBool() && in_place->value.GetBool();
    const auto gpus = root.FindMember("gpus");
    if (gpus == root.MemberEnd() || !gpus->value.IsArray() || gpus->value.Size() < 2 ||
        gpus->value.Size() > kAlgorithmRanksMax) {
      return Error("gpus", fmt::format("is no list of 2 to {} GPUs", kAlgorithmRanksMax));
    }
    return IsListOfObjects(gpus->value, "gpus");
  }

  bool ReadGpus(const Json& gpus) {
    gpu_count_ = gpus.Size();
    // A GPU may write into the scratch of one that comes later. Its check finds values that are no
    // numbers.
    for (const Json& gpu : gpus.GetArray()) {
      const auto scratch = gpu.FindMember("scratch_chunks");
      const bool is_stated = scratch != gpu.MemberEnd() && scratch->value.IsInt();
      scratch_chunks_.push_back(is_stated ? std::max(0, scratch->value.GetInt()) : 0);
    }
    for (RankIndex id{0}; id < gpu_count_; ++id) {
      if (!ReadGpu(gpus[id], id, fmt::format("gpus[{}]", id))) return false;
    }
    return true;
  }

  bool ReadGpu(const Json& json, RankIndex id, const std::string& place) {
    Gpu gpu{.id = id};
    int64_t stated_id = 0;
    int64_t inputs = 0;
    int64_t outputs = 0;
    if (!json.HasMember("input_chunks")) {
      return Error(place,
                   "has no input_chunks: the plan is of an older version of MSCCL++ "
                   "(expected one that its language of version 0.8 wrote)");
    }
    if (!Number(json, "id", place, id, id, stated_id) ||
        !Number(json, "input_chunks", place, 1, kAlgorithmChunksMax, inputs) ||
        !Number(json, "output_chunks", place, 1, kAlgorithmChunksMax, outputs) ||
        !Number(json, "scratch_chunks", place, 0, INT32_MAX, scratch_chunks_[id])) {
      return false;
    }
    const bool exchanges = plan_.kind == CollectiveKind::kAllToAll;
    const bool gathers = exchanges || plan_.kind == CollectiveKind::kAllGather;
    const bool scatters = exchanges || plan_.kind == CollectiveKind::kReduceScatter;
    const int64_t gathered = gathers ? gpu_count_ : 1;
    const int64_t scattered = scatters ? gpu_count_ : 1;
    if (inputs * gathered != outputs * scattered || inputs % scattered != 0) {
      return Error(place, fmt::format("{} input chunks do not become {} output chunks on {} GPUs",
                                      inputs, outputs, gpu_count_));
    }
    const auto chunks = static_cast<uint32_t>(inputs / scattered);
    if (id > 0 && chunks != plan_.chunk_count) {
      return Error(place, fmt::format("has {} chunks, gpus[0] {}", chunks, plan_.chunk_count));
    }
    plan_.chunk_count = chunks;
    sizes_[0] = inputs;
    sizes_[1] = outputs;
    if (!ReadChannels(json, gpu, place) || !ReadBuffers(json, gpu, place) ||
        !ReadSemaphores(json, place)) {
      return false;
    }
    const Json& blocks = List(json, "threadblocks");
    if (blocks.Size() > kBlocksMax || !IsListOfObjects(blocks, place + ".threadblocks")) {
      return Error(place, fmt::format("more than {} thread blocks", kBlocksMax));
    }
    plan_.gpus.emplace_back();
    groups_.clear();
    for (uint32_t i = 0; i < blocks.Size(); ++i) {
      if (!ReadBlock(blocks[i], gpu, fmt::format("{}.threadblocks[{}]", place, i))) return false;
    }
    return CheckGroups();
  }

  // Notes the part of a thread block in an operation of a group, which all of its blocks do on the
  // same chunks.
  void NoteGroup(const MscclppOperation& operation, std::string_view name, size_t number,
                 size_t size) {
    std::string key = fmt::format("{} of {}", name, size);
    for (const auto* const chunks : {&operation.sources, &operation.targets}) {
      for (const MscclppChunks& chunk : *chunks) {
        key += fmt::format(" {}:{}:{}+{}", chunk.gpu, static_cast<int>(chunk.buffer), chunk.index,
                           chunk.size);
      }
      key += '/';
    }
    Group& group = groups_[key];
    group.place = operation.place.name;
    group.times_of_block.resize(size);
    ++group.times_of_block[number];
  }

  bool CheckGroups() {
    for (const auto& [key, group] : groups_) {
      const std::vector<uint32_t>& times = group.times_of_block;
      const auto other =
          std::ranges::find_if(times, [&](uint32_t count) { return count != times.front(); });
      if (other == times.end()) continue;
      return Error(group.place,
                   fmt::format("thread block {} of its group does so {} times, the first "
                               "one {} (expected that each moves its part)",
                               other - times.begin(), *other, times.front()));
    }
    return true;
  }

  // Channels of a type are numbered over all entries.
  bool ReadChannels(const Json& json, Gpu& gpu, const std::string& place) {
    const Json& channels = List(json, "channels");
    if (!IsListOfObjects(channels, place + ".channels")) return false;
    std::map<std::pair<size_t, RankIndex>, uint32_t> count;  // by type and peer
    for (const Json& entry : channels.GetArray()) {
      size_t type = 0;
      if (!Type(Text(entry, "channel_type"), place + ".channels", type)) return false;
      for (const Json& peer : List(entry, "connected_to").GetArray()) {
        if (!peer.IsUint() || peer.GetUint() >= gpu_count_ || peer.GetUint() == gpu.id) {
          return Error(place + ".channels", "connected_to has a number that is no other GPU");
        }
        const RankIndex to{peer.GetUint()};
        gpu.channels[type].push_back(
            {.peer = to, .is_port = type == 1, .number = count[{type, to}]++});
      }
    }
    return true;
  }

  bool ReadBuffers(const Json& json, Gpu& gpu, const std::string& place) {
    const Json& buffers = List(json, "remote_buffers");
    const std::string at = place + ".remote_buffers";
    if (!IsListOfObjects(buffers, at)) return false;
    for (const Json& entry : buffers.GetArray()) {
      MscclppChunks chunks;
      uint32_t rank = 0;
      if (!Index(entry, "rank", at, gpu_count_, rank) ||
          !Buffer(Text(entry, "type"), at, chunks.buffer)) {
        return false;
      }
      chunks.gpu = RankIndex{rank};
      gpu.buffers.push_back(chunks);
    }
    return true;
  }

  bool ReadSemaphores(const Json& json, const std::string& place) {
    std::vector<int64_t>& values = plan_.semaphores.emplace_back();
    const Json& semaphores = List(json, "semaphores");
    if (!IsListOfObjects(semaphores, place + ".semaphores")) return false;
    for (const Json& semaphore : semaphores.GetArray()) {
      if (!Number(semaphore, "init_value", place + ".semaphores", 0, kSemaphoreMax,
                  values.emplace_back())) {
        return false;
      }
    }
    return true;
  }

  bool ReadBlock(const Json& json, const Gpu& gpu, const std::string& place) {
    Block block;
    if (!ReadReferences(json, "channels", "channel_type", "channel_ids", place, block.channels,
                        {gpu.channels[0].size(), gpu.channels[1].size()}) ||
        !ReadReferences(json, "remote_buffer_refs", "access_channel_type", "remote_buffer_ids",
                        place, block.buffers, {gpu.buffers.size(), gpu.buffers.size()})) {
      return false;
    }
    plan_.gpus.back().emplace_back();
    return ReadOperations(List(json, "ops"), gpu, block, place + ".ops", 0);
  }

  bool ReadReferences(const Json& json, const char* list, const char* type_key, const char* ids,
                      const std::string& place, std::vector<uint32_t> (&references)[2],
                      const std::pair<size_t, size_t>& ends) {
    const std::string at = fmt::format("{}.{}", place, list);
    if (!IsListOfObjects(List(json, list), at)) return false;
    for (const Json& entry : List(json, list).GetArray()) {
      size_t type = 0;
      if (!Type(Text(entry, type_key), at, type)) return false;
      for (const Json& id : List(entry, ids).GetArray()) {
        if (!id.IsUint() || id.GetUint() >= (type == 0 ? ends.first : ends.second)) {
          return Error(at, fmt::format("{} has a number that the GPU does not have", ids));
        }
        references[type].push_back(id.GetUint());
      }
    }
    return true;
  }

  bool ReadOperations(const Json& operations, const Gpu& gpu, const Block& block,
                      const std::string& place, int depth) {
    if (depth > kPipelineDepthMax) {
      return Error(place,
                   fmt::format("pipelines lie more than {} deep in each other", kPipelineDepthMax));
    }
    if (!IsListOfObjects(operations, place)) return false;
    for (uint32_t i = 0; i < operations.Size(); ++i) {
      const std::string at = fmt::format("{}[{}]", place, i);
      const bool is_pipeline = Text(operations[i], "name") == "pipeline";
      const bool is_read = is_pipeline ? ReadOperations(List(operations[i], "ops"), gpu, block,
                                                        at + ".ops", depth + 1)
                                       : ReadOperation(operations[i], gpu, block, at);
      if (!is_read) return false;
    }
    return true;
  }

  bool ReadOperation(const Json& json, const Gpu& gpu, const Block& block,
                     const std::string& place) {
    const std::string_view name = Text(json, "name");
    const auto known =
        std::find_if(std::begin(kOperations), std::end(kOperations),
                     [&](const NamedOperation& operation) { return operation.name == name; });
    if (known == std::end(kOperations)) {
      return Error(place, fmt::format("{} is not read (expected an operation without switches)",
                                      Quote(name)));
    }
    MscclppOperation operation{.kind = known->kind,
                               .waits_for_data = known->waits_for_data,
                               .signals = known->signals,
                               .place = {.line = lines_.LineOf(place), .name = place}};
    size_t type = 0;
    const std::string_view channel_type = Text(json, "channel_type");
    if (!channel_type.empty() && channel_type != "none" && !Type(channel_type, place, type)) {
      return false;
    }
    for (const Json& id : List(json, "channel_ids").GetArray()) {
      if (!id.IsUint() || id.GetUint() >= block.channels[type].size()) {
        return Error(place, "channel_ids has a number that the thread block does not have");
      }
      operation.channels.push_back(gpu.channels[type][block.channels[type][id.GetUint()]]);
    }
    if (!ReadChunks(List(json, "src_buff"), gpu, block.buffers[type], place + ".src_buff",
                    operation.sources) ||
        !ReadChunks(List(json, "dst_buff"), gpu, block.buffers[type], place + ".dst_buff",
                    operation.targets) ||
        !ReadNumbers(json, operation) || !CheckChunks(operation)) {
      return false;
    }
    // Thread blocks of a group share the chunks: the first one stands for all.
    const auto group = json.FindMember("tbg_info");
    if (group != json.MemberEnd() && group->value.IsObject()) {
      int64_t number = 0;
      int64_t size = 1;
      if (!Number(group->value, "tb_id", place + ".tbg_info", 0, kBlocksMax, number) ||
          !Number(group->value, "tbg_size", place + ".tbg_info", 1, kBlocksMax, size)) {
        return false;
      }
      if (number >= size) {
        return Error(place + ".tbg_info",
                     fmt::format("tb_id {} is none of {} thread blocks", number, size));
      }
      NoteGroup(operation, name, static_cast<size_t>(number), static_cast<size_t>(size));
      if (number > 0) operation = {.place = {.line = lines_.LineOf(place), .name = place}};
    }
    plan_.gpus.back().back().push_back(std::move(operation));
    return true;
  }

  bool ReadChunks(const Json& list, const Gpu& gpu, const std::vector<uint32_t>& buffers,
                  const std::string& place, std::vector<MscclppChunks>& chunks) {
    if (!IsListOfObjects(list, place)) return false;
    for (const Json& entry : list.GetArray()) {
      MscclppChunks read{.gpu = gpu.id};
      if (entry.HasMember("buffer_id")) {
        uint32_t id = 0;
        if (!Index(entry, "buffer_id", place, buffers.size(), id)) return false;
        read = gpu.buffers[buffers[id]];
      } else if (!Buffer(Text(entry, "type"), place, read.buffer)) {
        return false;
      }
      // Other GPUs have inputs and outputs of the same sizes; scratch is each GPU's own.
      const auto end = static_cast<size_t>(read.buffer == MscclppBuffer::kScratch
                                               ? scratch_chunks_[read.gpu]
                                               : sizes_[static_cast<size_t>(read.buffer)]);
      if (!Index(entry, "index", place, end, read.index) ||
          !Index(entry, "size", place, end - read.index + 1, read.size)) {
        return false;
      }
      chunks.push_back(read);
    }
    return true;
  }

  bool ReadNumbers(const Json& json, MscclppOperation& operation) {
    if (operation.kind == MscclppKind::kBarrier) {
      return Index(json, "barrier_id", operation.place.name, kBlocksMax,
                   operation.numbers.emplace_back()) &&
             Index(json, "num_threadblocks", operation.place.name, kBlocksMax,
                   operation.block_count);
    }
    for (const Json& id : List(json, "semaphore_ids").GetArray()) {
      if (!id.IsUint() || id.GetUint() >= plan_.semaphores.back().size()) {
        return Error(operation.place.name, "semaphore_ids has a number that the GPU does not have");
      }
      operation.numbers.push_back(id.GetUint());
    }
    return true;
  }

  bool CheckChunks(const MscclppOperation& operation) {
    if (operation.kind != MscclppKind::kMove && operation.kind != MscclppKind::kReduce) return true;
    const size_t sources = operation.sources.size();
    const size_t targets = operation.targets.size();
    const bool is_paired =
        operation.kind == MscclppKind::kReduce ? sources > 0 : sources == 1 || sources == targets;
    if (!is_paired || targets == 0) {
      return Error(operation.place.name,
                   fmt::format("{} sources have {} targets", sources, targets));
    }
    for (const auto* const side : {&operation.sources, &operation.targets}) {
      for (const MscclppChunks& chunks : *side) {
        if (chunks.size == operation.sources.front().size) continue;
        return Error(operation.place.name, "sources and targets differ in size");
      }
    }
    return true;
  }

  const std::string& path_;
  Diagnostics& diagnostics_;
  const JsonLines lines_;
  MscclppPlan plan_;
  uint32_t gpu_count_ = 0;
  std::vector<int64_t> scratch_chunks_;  // by GPU
  int64_t sizes_[2] = {};                // chunks of the current GPU's input and output
  // Operations of groups of the current GPU's thread blocks, by kind and chunks.
  struct Group {
    std::string place;                     // of the first
    std::vector<uint32_t> times_of_block;  // by tb_id
  };
  std::map<std::string, Group> groups_;
};

}  // namespace

std::optional<MscclppPlan> ParseMscclppPlan(const std::string& path, const std::string& text,
                                            Diagnostics& diagnostics) {
  return PlanParser(path, text, diagnostics).Parse(text);
}

}  // namespace railyard
