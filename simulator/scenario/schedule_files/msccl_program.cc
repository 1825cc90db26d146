// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/schedule_files/msccl_program.h"

#include <algorithm>
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <limits>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/units/number.h"
#include "topologies/formats/xml_stream.h"
#include "workloads/collectives/explicit_schedule.h"

namespace railyard {
namespace {

using DocumentHandle = std::unique_ptr<xmlDoc, decltype(&xmlFreeDoc)>;

// Returns what steps of that type do.
std::optional<MscclStep> StepOfType(const std::string& name) {
  MscclStep step;
  step.sends = name == "s" || name == "rcs" || name == "rrs" || name == "rrcs";
  step.receives = name == "r" || name == "rcs" || name == "rrc" || name == "rrs" || name == "rrcs";
  step.reduces = name == "re" || name == "rrc" || name == "rrs" || name == "rrcs";
  step.keeps = name == "r" || name == "rcs" || name == "rrc" || name == "rrcs" || name == "re" ||
               name == "cpy";
  const bool is_known = step.sends || step.receives || step.keeps || name == "nop";
  return is_known ? std::optional(step) : std::nullopt;
}

class ProgramParser {
 public:
  ProgramParser(const std::string& path, Diagnostics& diagnostics)
      : path_(path), diagnostics_(diagnostics) {}

  std::optional<MscclProgram> Parse(const std::string& text) {
    xmlResetLastError();
    XmlError::TakeOthers();
    // Without XML_PARSE_NOENT entities stay as they are, XML_PARSE_NONET opens nothing.
    const DocumentHandle document(
        xmlReadMemory(
            text.data(), static_cast<int>(text.size()), path_.c_str(), nullptr,
            XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_BIG_LINES),
        xmlFreeDoc);
    if (document == nullptr) {
      const xmlError* const error = xmlGetLastError();
      Error(error == nullptr ? 1 : std::max(error->line, 1),
            "is no XML from here on (expected an algorithm of MSCCL, whole)");
      return std::nullopt;
    }
    const xmlNode* const root = xmlDocGetRootElement(document.get());
    if (root == nullptr || NameOf(root) != "algo") {
      Error(1, "is no algorithm of MSCCL (expected XML with an element algo)");
      return std::nullopt;
    }
    if (!ReadHead(root) || !ReadGpus(root)) return std::nullopt;
    Merge();
    return std::move(program_);
  }

 private:
  bool Error(int line, const std::string& what) {
    diagnostics_.Error({.file = path_, .line = line, .column = 1}, "", what);
    return false;
  }

  static std::string_view NameOf(const xmlNode* node) {
    return reinterpret_cast<const char*>(node->name);
  }
  // An element has no line of its own beyond 65,535; there, the text before it ends on its line.
  static int LineOf(const xmlNode* node) {
    const bool has_text = node->prev != nullptr && node->prev->type == XML_TEXT_NODE;
    const bool has_line = node->line < std::numeric_limits<decltype(node->line)>::max();
    return static_cast<int>(xmlGetLineNo(has_line || !has_text ? node : node->prev));
  }

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
    if (ParseNumber(text, value) && value >= min && value <= max) return true;
    return Error(LineOf(node), fmt::format("{}=\"{}\" is out of range (expected {} to {})", name,
                                           text.substr(0, 40), min, max));
  }

  bool ReadHead(const xmlNode* root) {
    static const std::map<std::string, CollectiveKind> kKinds = {
        {"allreduce", CollectiveKind::kAllReduce},
        {"allgather", CollectiveKind::kAllGather},
        {"reduce_scatter", CollectiveKind::kReduceScatter},
        {"reducescatter", CollectiveKind::kReduceScatter},
        {"alltoall", CollectiveKind::kAllToAll}};
    const std::string kind = Attribute(root, "coll");
    const auto at = kKinds.find(kind);
    if (at == kKinds.end()) {
      return Error(LineOf(root),
                   fmt::format("coll {} cannot be run as a custom algorithm (expected "
                               "allreduce, allgather, reduce_scatter or alltoall)",
                               Quote(kind)));
    }
    const std::string protocol = Attribute(root, "proto");
    const std::optional<Protocol> known = MscclProtocolNamed(protocol);
    if (!known) {
      return Error(LineOf(root), fmt::format("proto {} is not read (expected Simple, LL or LL128)",
                                             Quote(protocol)));
    }
    program_.protocol = *known;
    int64_t gpus = 0;
    if (!Number(root, "ngpus", 2, kAlgorithmRanksMax, gpus) ||
        !Number(root, "nchunksperloop", 1, kAlgorithmChunksMax, program_.chunks)) {
      return false;
    }
    program_.kind = at->second;
    // A file that states neither is taken for both, but AllToAll overwrites in place what it is to
    // send.
    const std::string in_place = Attribute(root, "inplace");
    program_.is_in_place = program_.kind == CollectiveKind::kAllToAll
                               ? in_place == "1"
                               : in_place != "0" || Attribute(root, "outofplace") == "0";
    program_.gpus.resize(static_cast<size_t>(gpus));
    if (program_.kind != CollectiveKind::kAllReduce && program_.chunks % gpus != 0) {
      return Error(LineOf(root),
                   fmt::format("{} chunks are not divided by {} GPUs", program_.chunks, gpus));
    }
    return true;
  }

  bool ReadGpus(const xmlNode* root) {
    for (const xmlNode* gpu = root->children; gpu != nullptr; gpu = gpu->next) {
      if (gpu->type != XML_ELEMENT_NODE || NameOf(gpu) != "gpu") continue;
      int64_t id = 0;
      if (!Number(gpu, "id", 0, std::ssize(program_.gpus) - 1, id)) return false;
      auto& blocks = program_.gpus[static_cast<size_t>(id)];
      for (const xmlNode* block = gpu->children; block != nullptr; block = block->next) {
        if (block->type != XML_ELEMENT_NODE || NameOf(block) != "tb") continue;
        if (!ReadBlock(block, id, blocks)) return false;
      }
      if (!CheckDependencies(blocks)) return false;
    }
    return true;
  }

  bool ReadBlock(const xmlNode* node, int64_t gpu, std::map<int64_t, MscclBlock>& blocks) {
    int64_t id = 0;
    MscclBlock block;
    const int64_t last = std::ssize(program_.gpus) - 1;
    if (!Number(node, "id", 0, 65'535, id) || !Number(node, "send", -1, last, block.send) ||
        !Number(node, "recv", -1, last, block.recv) ||
        !Number(node, "chan", 0, kAlgorithmChannelsMax - 1, block.channel)) {
      return false;
    }
    if (block.send == gpu || block.recv == gpu) {
      return Error(LineOf(node), "has its own GPU as peer (expected another one, or -1)");
    }
    for (const xmlNode* step = node->children; step != nullptr; step = step->next) {
      if (step->type != XML_ELEMENT_NODE || NameOf(step) != "step") continue;
      if (!ReadStep(step, block)) return false;
    }
    if (blocks.emplace(id, std::move(block)).second) return true;
    return Error(LineOf(node), fmt::format("thread block {} is there twice", id));
  }

  bool ReadStep(const xmlNode* node, MscclBlock& block) {
    const std::string name = Attribute(node, "type");
    const std::optional<MscclStep> of_type = StepOfType(name);
    if (!of_type) {
      return Error(LineOf(node),
                   fmt::format("type {} is not read (expected s, r, rcs, rrc, rrs, rrcs, re, cpy "
                               "or nop)",
                               Quote(name)));
    }
    MscclStep step = *of_type;
    step.line = LineOf(node);
    if ((step.receives && block.recv < 0) || (step.sends && block.send < 0)) {
      return Error(step.line, "has no peer in its thread block");
    }
    // Nothing is read or written where msccl-tools write -1.
    const int64_t source_min = step.ReadsSource() && !step.ReadsTarget() ? 0 : -1;
    const int64_t target_min = step.keeps ? 0 : -1;
    if (!ReadSlot(node, "srcbuf", step.source) || !ReadSlot(node, "dstbuf", step.target) ||
        !Number(node, "srcoff", source_min, INT32_MAX, step.source.offset) ||
        !Number(node, "dstoff", target_min, INT32_MAX, step.target.offset) ||
        !Number(node, "cnt", 0, program_.chunks, step.count) ||
        !Number(node, "depid", -1, 65'535, step.after_block) ||
        !Number(node, "deps", -1, INT32_MAX, step.after_step)) {
      return false;
    }
    if (step.ReadsTarget() && step.source.offset < 0) step.source = step.target;
    block.steps.push_back(step);
    return true;
  }

  // Makes one chunk of as many as divide all counts and offsets: they are one message.
  void Merge() {
    int64_t together = program_.ChunksOfBlock();
    ForEachRange([&](int64_t& number) { together = std::gcd(together, number); });
    if (together < 2) return;
    ForEachRange([&](int64_t& number) { number /= together; });
    program_.chunks /= together;
  }
  template <typename Visit>
  void ForEachRange(const Visit& visit) {
    for (auto& blocks : program_.gpus) {
      for (auto& [id, block] : blocks) {
        for (MscclStep& step : block.steps) {
          if (step.ReadsSource()) visit(step.source.offset);
          if (step.keeps) visit(step.target.offset);
          visit(step.count);
        }
      }
    }
  }

  bool ReadSlot(const xmlNode* step, const char* buffer, MscclSlot& slot) {
    const std::string name = Attribute(step, buffer);
    if (name != "i" && name != "o" && name != "s") {
      return Error(LineOf(step),
                   fmt::format("{}={} is no buffer (expected i, o or s)", buffer, Quote(name)));
    }
    const bool is_one_buffer =
        program_.kind == CollectiveKind::kAllToAll && program_.is_in_place && name == "o";
    slot.buffer = is_one_buffer ? 'i' : name[0];
    return true;
  }

  bool CheckDependencies(const std::map<int64_t, MscclBlock>& blocks) {
    for (const auto& [id, block] : blocks) {
      for (const MscclStep& step : block.steps) {
        if (step.after_block < 0) continue;
        const auto other = blocks.find(step.after_block);
        if (other == blocks.end()) {
          return Error(step.line,
                       fmt::format("depid {} is no thread block of the GPU", step.after_block));
        }
        if (step.after_step < std::ssize(other->second.steps)) continue;
        return Error(step.line,
                     fmt::format("deps {} is no step of thread block {}, which has {}",
                                 step.after_step, step.after_block, other->second.steps.size()));
      }
    }
    return true;
  }

  const std::string& path_;
  Diagnostics& diagnostics_;
  MscclProgram program_;
};

}  // namespace

uint32_t MscclProgram::ChunksOfBlock() const {
  const bool has_blocks = kind != CollectiveKind::kAllReduce;
  return static_cast<uint32_t>(chunks / (has_blocks ? std::ssize(gpus) : 1));
}

std::optional<Protocol> MscclProtocolNamed(std::string_view name) {
  if (name.empty() || name == "Simple") return Protocol::kSimple;
  if (name == "LL") return Protocol::kLl;
  if (name == "LL128") return Protocol::kLl128;
  return std::nullopt;
}

std::optional<MscclProgram> ParseMscclProgram(const std::string& path, const std::string& text,
                                              Diagnostics& diagnostics) {
  return ProgramParser(path, diagnostics).Parse(text);
}

}  // namespace railyard
