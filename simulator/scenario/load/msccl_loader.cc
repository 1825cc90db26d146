// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/load/msccl_loader.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"

namespace railyard {
namespace {

constexpr uint64_t kChunkStepsMax = 10'000'000;

// The content of a buffer's slot: a part of a chunk, and whether it is the rank's own.
struct Value {
  uint32_t chunk = 0;
  bool is_own = false;
};
struct Slot {
  char buffer = 'i';  // i, o or s
  int64_t offset = 0;
  bool operator<(const Slot& other) const {
    return std::tie(buffer, offset) < std::tie(other.buffer, other.offset);
  }
};

struct MscclStep {
  std::string type;
  Slot source;
  Slot target;
  int64_t count = 1;
  int64_t after_block = -1;
  int64_t after_step = -1;
  int line = 0;
};

struct MscclBlock {
  int64_t send = -1;
  int64_t recv = -1;
  int64_t channel = 0;
  std::vector<MscclStep> steps;
  size_t done = 0;
};

using DocumentHandle = std::unique_ptr<xmlDoc, decltype(&xmlFreeDoc)>;

class MscclReader {
 public:
  MscclReader(const std::string& path, Diagnostics& diagnostics)
      : path_(path), diagnostics_(diagnostics) {}

  std::shared_ptr<ExplicitAlgorithm> Read(const std::string& text) {
    // Without XML_PARSE_NOENT entities stay as they are, XML_PARSE_NONET opens nothing.
    const DocumentHandle document(
        xmlReadMemory(text.data(), static_cast<int>(text.size()), path_.c_str(), nullptr,
                      XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING),
        xmlFreeDoc);
    const xmlNode* const root = document ? xmlDocGetRootElement(document.get()) : nullptr;
    if (root == nullptr || NameOf(root) != "algo") {
      Error(1, "is no algorithm of MSCCL (expected XML with an element algo)");
      return nullptr;
    }
    if (!ReadHead(root) || !ReadGpus(root) || !Run()) return nullptr;
    return algorithm_;
  }

 private:
  bool Error(int line, const std::string& what) {
    diagnostics_.Error({.file = path_, .line = line, .column = 1}, "", what);
    return false;
  }

  static std::string_view NameOf(const xmlNode* node) {
    return reinterpret_cast<const char*>(node->name);
  }
  static int LineOf(const xmlNode* node) { return static_cast<int>(xmlGetLineNo(node)); }

  static std::string Attribute(const xmlNode* node, const char* name) {
    xmlChar* const raw =
        xmlGetProp(const_cast<xmlNode*>(node), reinterpret_cast<const xmlChar*>(name));
    if (raw == nullptr) return {};
    std::string value(reinterpret_cast<const char*>(raw));
    xmlFree(raw);
    return value;
  }

  bool Number(const xmlNode* node, const char* name, int64_t min, int64_t max, int64_t& value) {
    const std::string text = Attribute(node, name);
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && stop == text.data() + text.size() && value >= min && value <= max) {
      return true;
    }
    return Error(LineOf(node), fmt::format("{}=\"{}\" is out of range (expected {} to {})", name,
                                           text.substr(0, 40), min, max));
  }

  bool ReadHead(const xmlNode* root) {
    static const std::map<std::string, CollectiveKind> kKinds = {
        {"allreduce", CollectiveKind::kAllReduce},
        {"allgather", CollectiveKind::kAllGather},
        {"reduce_scatter", CollectiveKind::kReduceScatter},
        {"reducescatter", CollectiveKind::kReduceScatter}};
    const std::string kind = Attribute(root, "coll");
    const auto at = kKinds.find(kind);
    if (at == kKinds.end()) {
      return Error(LineOf(root),
                   fmt::format("coll {} cannot be run as an algorithm of one's own (expected "
                               "allreduce, allgather or reduce_scatter)",
                               Quote(kind)));
    }
    int64_t gpus = 0;
    int64_t chunks = 0;
    if (!Number(root, "ngpus", 2, kAlgorithmRanksMax, gpus) ||
        !Number(root, "nchunksperloop", 1, kAlgorithmChunksMax, chunks)) {
      return false;
    }
    // A file that states neither is taken for both.
    runs_in_place_ = Attribute(root, "inplace") != "0" || Attribute(root, "outofplace") == "0";
    algorithm_->kind = at->second;
    algorithm_->rank_count = static_cast<uint32_t>(gpus);
    if (algorithm_->HasBlocks() && chunks % gpus != 0) {
      return Error(LineOf(root), fmt::format("{} chunks are not divided by {} GPUs", chunks, gpus));
    }
    algorithm_->chunk_count =
        static_cast<uint32_t>(algorithm_->HasBlocks() ? chunks / gpus : chunks);
    chunks_ = chunks;
    return true;
  }

  bool ReadGpus(const xmlNode* root) {
    gpus_.resize(algorithm_->rank_count);
    for (const xmlNode* gpu = root->children; gpu != nullptr; gpu = gpu->next) {
      if (gpu->type != XML_ELEMENT_NODE || NameOf(gpu) != "gpu") continue;
      int64_t id = 0;
      if (!Number(gpu, "id", 0, algorithm_->rank_count - 1, id)) return false;
      for (const xmlNode* block = gpu->children; block != nullptr; block = block->next) {
        if (block->type != XML_ELEMENT_NODE || NameOf(block) != "tb") continue;
        if (!ReadBlock(block, gpus_[static_cast<size_t>(id)])) return false;
      }
    }
    return true;
  }

  bool ReadBlock(const xmlNode* node, std::map<int64_t, MscclBlock>& blocks) {
    int64_t id = 0;
    MscclBlock block;
    const int64_t last = algorithm_->rank_count - 1;
    if (!Number(node, "id", 0, 65'535, id) || !Number(node, "send", -1, last, block.send) ||
        !Number(node, "recv", -1, last, block.recv) ||
        !Number(node, "chan", 0, kAlgorithmChannelsMax - 1, block.channel)) {
      return false;
    }
    for (const xmlNode* step = node->children; step != nullptr; step = step->next) {
      if (step->type != XML_ELEMENT_NODE || NameOf(step) != "step") continue;
      MscclStep read;
      read.line = LineOf(step);
      read.type = Attribute(step, "type");
      if (!ReadSlot(step, "srcbuf", "srcoff", read.source) ||
          !ReadSlot(step, "dstbuf", "dstoff", read.target) ||
          !Number(step, "cnt", 0, chunks_, read.count) ||
          !Number(step, "depid", -1, 65'535, read.after_block) ||
          !Number(step, "deps", -1, INT32_MAX, read.after_step)) {
        return false;
      }
      block.steps.push_back(std::move(read));
    }
    if (blocks.emplace(id, std::move(block)).second) return true;
    return Error(LineOf(node), fmt::format("thread block {} is there twice", id));
  }

  bool ReadSlot(const xmlNode* step, const char* buffer, const char* offset, Slot& slot) {
    const std::string name = Attribute(step, buffer);
    if (name != "i" && name != "o" && name != "s") {
      return Error(LineOf(step),
                   fmt::format("{}={} is no buffer (expected i, o or s)", buffer, Quote(name)));
    }
    slot.buffer = name[0];
    // Nothing is read there: msccl-tools write -1.
    return Number(step, offset, -1, chunks_ * 2, slot.offset);
  }

  // Runs the steps of all GPUs, messages without bound, until all are done.
  bool Run() {
    slots_.resize(algorithm_->rank_count);
    last_write_.resize(algorithm_->rank_count);
    first_read_.resize(algorithm_->rank_count);
    bool is_done = false;
    for (bool moved = true; moved;) {
      moved = false;
      is_done = true;
      for (uint32_t gpu = 0; gpu < gpus_.size(); ++gpu) {
        for (auto& [id, block] : gpus_[gpu]) {
          while (block.done < block.steps.size()) {
            const auto ran = RunStep(gpu, block, block.steps[block.done]);
            if (!ran) return false;
            if (!*ran) break;
            ++block.done;
            moved = true;
          }
          is_done = is_done && block.done == block.steps.size();
        }
      }
    }
    if (!is_done) return Error(StuckLine(), "waits for ever (expected a step that sends to it)");
    return StoreResults();
  }

  int StuckLine() const {
    for (const auto& blocks : gpus_) {
      for (const auto& [id, block] : blocks) {
        if (block.done < block.steps.size()) return block.steps[block.done].line;
      }
    }
    return 1;
  }

  // nullopt after an error; false where it has to wait.
  std::optional<bool> RunStep(uint32_t gpu, const MscclBlock& block, const MscclStep& step) {
    if (step.after_block >= 0) {
      const auto other = gpus_[gpu].find(step.after_block);
      if (other == gpus_[gpu].end()) {
        Error(step.line, fmt::format("depid {} is no thread block of the GPU", step.after_block));
        return std::nullopt;
      }
      if (other->second.channel != block.channel) {
        Error(step.line,
              "depends on a thread block of another channel, whose values a lane does "
              "not have (expected dependencies within a channel)");
        return std::nullopt;
      }
      if (static_cast<int64_t>(other->second.done) <= step.after_step) return false;
    }
    const std::string_view type = step.type;
    const bool receives = type.starts_with('r') && type != "re";
    const bool sends = type == "s" || type == "rcs" || type == "rrs" || type == "rrcs";
    const bool reduces = type.starts_with("rr");
    const bool keeps = type == "r" || type == "rcs" || type == "rrc" || type == "rrcs";
    if (type == "nop") return true;
    if (!receives && !sends && type != "cpy") {
      Error(step.line,
            fmt::format("type {} is not read (expected s, r, rcs, rrc, rrs, rrcs, cpy or "
                        "nop)",
                        Quote(type)));
      return std::nullopt;
    }
    if ((receives && block.recv < 0) || (sends && block.send < 0)) {
      Error(step.line, "has no peer in its thread block");
      return std::nullopt;
    }
    auto& arrived = messages_[{block.recv, gpu, block.channel}];
    if (receives && static_cast<int64_t>(arrived.size()) < step.count) return false;
    for (int64_t i = 0; i < step.count; ++i) {
      if (!RunChunk(gpu, block, step, i, {receives, sends, reduces, keeps})) return std::nullopt;
    }
    return true;
  }

  struct Actions {
    bool receives = false;
    bool sends = false;
    bool reduces = false;
    bool keeps = false;
  };

  bool RunChunk(uint32_t gpu, const MscclBlock& block, const MscclStep& step, int64_t i,
                const Actions& does) {
    if (++chunk_steps_ > kChunkStepsMax) {
      return Error(step.line, fmt::format("more than {} steps of one chunk each", kChunkStepsMax));
    }
    ExplicitStep made;
    // Reductions read the source (MSCCL's recvReduceCopy); msccl-tools' files have the sender's
    // slot there, which counts only where nothing is at the target.
    const bool reads_target =
        does.reduces && does.keeps &&
        ValueAt(gpu, {step.target.buffer, step.target.offset + i}).has_value();
    const Slot from{reads_target ? step.target.buffer : step.source.buffer,
                    (reads_target ? step.target.offset : step.source.offset) + i};
    const Slot to{step.target.buffer, step.target.offset + i};
    std::optional<Value> value;
    if (does.reduces || !does.receives) {
      value = ValueAt(gpu, from);
      if (!value) return Error(step.line, "reads a slot in which nothing is");
      made.step.load_local = value->is_own;
      made.step.load_kept = !value->is_own;
    }
    if (does.receives) {
      auto& arrived = messages_[{block.recv, gpu, block.channel}];
      const uint32_t chunk = arrived.front();
      arrived.pop_front();
      if (value && value->chunk != chunk) {
        return Error(step.line, fmt::format("reduces chunk {} with chunk {}", chunk, value->chunk));
      }
      value = Value{.chunk = chunk};
      made.step.recv_from = static_cast<int32_t>(block.recv);
      made.step.reduce = does.reduces;
    }
    made.chunk = value->chunk;
    if (!does.receives && !does.sends) {  // a copy: the value is there as well
      slots_[gpu][to] = *value;
      if (to.buffer != 's') RememberCopy(gpu, block, to, *value, step.line);
      return true;
    }
    if (does.sends) {
      made.step.send_to = static_cast<int32_t>(block.send);
      messages_[{gpu, static_cast<uint32_t>(block.send), block.channel}].push_back(value->chunk);
    }
    if (does.keeps) {
      made.step.keep = true;
      slots_[gpu][to] = {.chunk = value->chunk, .is_own = false};
    }
    auto& lane = LaneOf(gpu, block.channel);
    if (made.step.load_local && from.buffer == 'o') {
      first_read_[gpu].try_emplace(from, Place{block.channel, lane.size(), step.line});
    }
    if (does.keeps) last_write_[gpu][to] = {block.channel, lane.size(), step.line};
    lane.push_back(made);
    return true;
  }

  void RememberCopy(uint32_t gpu, const MscclBlock& block, const Slot& to, const Value& value,
                    int line) {
    auto& lane = LaneOf(gpu, block.channel);
    ExplicitStep made;
    made.chunk = value.chunk;
    made.step.load_local = value.is_own;
    made.step.load_kept = !value.is_own;
    last_write_[gpu][to] = {block.channel, lane.size(), line};
    lane.push_back(made);
  }

  std::vector<ExplicitStep>& LaneOf(uint32_t gpu, int64_t channel) {
    algorithm_->channel_count =
        std::max(algorithm_->channel_count, static_cast<uint32_t>(channel) + 1);
    auto& lanes = algorithm_->lanes[{gpu, static_cast<uint32_t>(channel)}];
    if (lanes.empty()) lanes.emplace_back();
    return lanes.front();
  }

  // Returns the value that was written there, or the rank's own contribution.
  std::optional<Value> ValueAt(uint32_t gpu, const Slot& slot) const {
    const auto at = slots_[gpu].find(slot);
    if (at != slots_[gpu].end()) return at->second;
    const bool gathers = algorithm_->kind == CollectiveKind::kAllGather;
    const int64_t own = gathers ? algorithm_->chunk_count : chunks_;
    if (slot.offset < 0) return std::nullopt;
    if (slot.buffer == 'i' && slot.offset < own) {
      const int64_t first = gathers ? int64_t{gpu} * algorithm_->chunk_count : 0;
      return Value{.chunk = static_cast<uint32_t>(first + slot.offset), .is_own = true};
    }
    // An AllGather in place has its contribution where the result is to have it, and no buffer i.
    if (slot.buffer == 'o' && gathers && runs_in_place_ && slot.offset / own == gpu) {
      return Value{.chunk = static_cast<uint32_t>(slot.offset), .is_own = true};
    }
    return std::nullopt;
  }

  // The last write to a slot of the result is what the rank ends with. Out of place, the result is
  // in o alone; in place, AllReduce and ReduceScatter have it in i.
  bool StoreResults() {
    const bool scatters = algorithm_->kind == CollectiveKind::kReduceScatter;
    for (uint32_t gpu = 0; gpu < last_write_.size(); ++gpu) {
      for (const auto& [slot, place] : last_write_[gpu]) {
        if (slot.buffer == 's' || (slot.buffer == 'i' && !runs_in_place_)) continue;
        ExplicitStep& last = LaneOf(gpu, place.channel)[place.step];
        const bool is_of_rank = !scatters || last.chunk / algorithm_->chunk_count == gpu;
        last.step.store = is_of_rank;
        const int64_t first =
            scatters && slot.buffer == 'o' ? int64_t{gpu} * algorithm_->chunk_count : 0;
        if (!is_of_rank || slot.offset + first == last.chunk) continue;
        return Error(place.line, fmt::format("leaves chunk {} in slot {} of the result of GPU {}",
                                             last.chunk, slot.offset, gpu));
      }
      // An AllGather in place has its contribution there: it counts as stored when it is first
      // sent.
      for (const auto& [slot, place] : first_read_[gpu]) {
        if (last_write_[gpu].contains(slot)) continue;
        LaneOf(gpu, place.channel)[place.step].step.store = true;
      }
    }
    return true;
  }

  const std::string& path_;
  Diagnostics& diagnostics_;
  std::shared_ptr<ExplicitAlgorithm> algorithm_ = std::make_shared<ExplicitAlgorithm>();
  int64_t chunks_ = 1;
  bool runs_in_place_ = true;
  std::vector<std::map<int64_t, MscclBlock>> gpus_;  // thread blocks by id
  std::vector<std::map<Slot, Value>> slots_;         // by GPU
  std::map<std::tuple<int64_t, uint32_t, int64_t>, std::deque<uint32_t>> messages_;
  // Names a step of a GPU's lane, and the line of the file that made it.
  struct Place {
    int64_t channel = 0;
    size_t step = 0;
    int line = 0;
  };
  std::vector<std::map<Slot, Place>> last_write_;  // by GPU
  // By GPU: where it first reads its contribution of a slot of the result.
  std::vector<std::map<Slot, Place>> first_read_;
  uint64_t chunk_steps_ = 0;
};

}  // namespace

std::shared_ptr<ExplicitAlgorithm> LoadMsccl(const std::string& path, const std::string& text,
                                             Diagnostics& diagnostics) {
  return MscclReader(path, diagnostics).Read(text);
}

}  // namespace railyard
