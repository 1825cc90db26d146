// SPDX-License-Identifier: GPL-2.0-only
#include "traces/pytorch_et/execution_node.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

// The values of "inputs" or "outputs": a list up to 1.0.1, then a member of an object.
const Value* ValuesOf(const Value& node, std::string_view side) {
  const Value* const all = node.Find(side);
  return all != nullptr && all->IsMap() ? all->Find("values") : all;
}

const Value* TypesOf(const Value& node, std::string_view side, std::string_view old_key) {
  const Value* const all = node.Find(side);
  return all != nullptr && all->IsMap() ? all->Find("types") : node.Find(old_key);
}

// A tensor is [id, storage, offset, elements, bytes of an element, device].
bool IsTensor(const Value& value) {
  return value.IsList() && value.items.size() >= 5 &&
         std::all_of(value.items.begin(), value.items.begin() + 5,
                     [](const Value& item) { return item.kind == Value::Kind::kNumber; });
}

// Elements of all tensors in the value, however they are nested.
uint64_t ElementsIn(const Value& value) {
  if (IsTensor(value)) return std::min(value.items[3].Unsigned().value_or(0), kOperationBytesMax);
  uint64_t elements = 0;
  for (const Value& item : value.items) {
    if (item.IsList()) elements = std::min(elements + ElementsIn(item), kOperationBytesMax);
  }
  return elements;
}

// "float" of "GenericList[Tensor(float)]".
std::string DtypeIn(std::string_view type) {
  const size_t tensor = type.find("Tensor(");
  if (tensor == std::string_view::npos) return {};
  const std::string_view rest = type.substr(tensor + 7);
  return std::string(rest.substr(0, rest.find(')')));
}

std::vector<uint64_t> NumbersIn(const Value& value) {
  std::vector<uint64_t> numbers;
  for (const Value& item : value.items) numbers.push_back(item.Unsigned().value_or(0));
  return numbers;
}

// The value of an attribute: {"name": …, "type": …, "value": …}.
const Value* AttributeOf(const Value& node, std::string_view name) {
  const Value* const attributes = node.Find("attrs");
  if (attributes == nullptr || !attributes->IsList()) return nullptr;
  for (const Value& attribute : attributes->items) {
    if (attribute.TextOf("name") == name) return attribute.Find("value");
  }
  return nullptr;
}

std::optional<uint32_t> Narrow(std::optional<uint64_t> number) {
  if (!number || *number > kTraceRanksMax) return std::nullopt;
  return static_cast<uint32_t>(*number);
}

// Attributes, which newer schemas have, override arguments.
void ReadAttributes(const Value& node, CommsRecord& record) {
  const auto number = [&](std::string_view name) -> std::optional<uint64_t> {
    const Value* const value = AttributeOf(node, name);
    return value == nullptr ? std::nullopt : value->Unsigned();
  };
  const auto text = [&](std::string_view name) {
    const Value* const value = AttributeOf(node, name);
    return value == nullptr ? std::string() : value->text;
  };
  if (AttributeOf(node, "collective_name") == nullptr) return;
  record.collective = text("collective_name");
  record.dtype = text("dtype");
  for (const auto& [name, elements] : {std::pair("in_msg_nelems", &record.in_elements),
                                       std::pair("out_msg_nelems", &record.out_elements)}) {
    *elements = number(name);
    if (!*elements) record.wrong_elements += text(name);
  }
  record.group_size = Narrow(number("pg_size")).value_or(record.group_size);
  if (const std::string name = text("pg_name"); !name.empty()) record.group_name = name;
  const auto start = Narrow(number("global_rank_start"));
  const auto stride = Narrow(number("global_rank_stride"));
  if (!start || !stride || *stride == 0) return;
  for (uint32_t i = 0; i < record.group_size; ++i) {
    const uint64_t rank = *start + uint64_t{i} * *stride;
    if (rank >= kTraceRanksMax) break;
    record.group_ranks.push_back(static_cast<uint32_t>(rank));
  }
}

// Returns the number in [number, is_of_messages] if it is one of messages.
std::optional<uint64_t> MessageSequence(const Value& sequence) {
  if (!sequence.IsList() || sequence.items.size() != 2) return std::nullopt;
  const Value& is_of_messages = sequence.items[1];
  const bool is_true = is_of_messages.kind == Value::Kind::kTrue || is_of_messages.text == "true";
  return is_true ? sequence.items[0].Unsigned() : std::nullopt;
}

// After the name of the collective: parts sent, parts received, then [size] or [start, stride,
// size].
void ReadWhatFollowsTheName(const std::vector<Value>& values, size_t name, CommsRecord& record) {
  if (name + 2 < values.size()) {
    record.in_split = NumbersIn(values[name + 1]);
    record.out_split = NumbersIn(values[name + 2]);
  }
  if (values.size() > name + 3) {
    // A size that no job has makes the call one of an unknown group.
    record.group_size = Narrow(values.back().Unsigned()).value_or(kTraceRanksMax + 1);
  } else {
    // 1.0.1 has no size, but where parts are listed there is one for each rank.
    record.group_size =
        static_cast<uint32_t>(std::max(record.in_split.size(), record.out_split.size()));
  }
}

}  // namespace

std::optional<CommsNode> ParseCommsNode(const Value& node) {
  const Value* const inputs = ValuesOf(node, "inputs");
  const auto id = node.UnsignedOf("id");
  if (inputs == nullptr || !inputs->IsList() || !id) return std::nullopt;
  const std::vector<Value>& values = inputs->items;
  // [tensors,] sequence, group, rank, name, …
  size_t name = 0;
  while (name < values.size() && values[name].kind != Value::Kind::kText) ++name;
  if (name >= values.size() || name < 2) return std::nullopt;
  CommsNode parsed;
  parsed.id = *id;
  CommsRecord& record = parsed.record;
  record.collective = values[name].text;
  const Value& group = values[name - 2];
  if (group.IsList()) {
    record.group_name = group.items.empty() ? std::string() : group.items.front().text;
  } else {
    record.group_name = "#" + group.text;
  }
  parsed.rank_argument = Narrow(values[name - 1].Unsigned()).value_or(0);
  if (name >= 3) parsed.message_sequence = MessageSequence(values[name - 3]);
  ReadWhatFollowsTheName(values, name, record);
  if (name >= 4) {
    record.in_elements = ElementsIn(values.front());
    const Value* const outputs = ValuesOf(node, "outputs");
    if (outputs != nullptr && outputs->IsList()) record.out_elements = ElementsIn(*outputs);
    const Value* const types = TypesOf(node, "inputs", "input_types");
    if (types != nullptr && !types->items.empty()) record.dtype = DtypeIn(types->items[0].text);
  }
  ReadAttributes(node, record);
  return parsed;
}

std::vector<ProcessGroup> ParseProcessGroups(const Value& node) {
  std::vector<ProcessGroup> groups;
  const Value* const inputs = ValuesOf(node, "inputs");
  if (inputs == nullptr || inputs->items.empty()) return groups;
  const auto list = ParseJson(inputs->items.front().text);
  if (!list || !list->IsList()) return groups;
  for (const Value& entry : list->items) {
    ProcessGroup group;
    group.name = entry.TextOf("pg_name");
    for (const std::string_view key : {"backend_id", "uid"}) {
      if (const std::string pointer = entry.TextOf(key); !pointer.empty()) {
        group.pointer = "#" + pointer;
      }
    }
    group.size = Narrow(entry.UnsignedOf("group_size")).value_or(0);
    if (const Value* const ranks = entry.Find("ranks"); ranks != nullptr && ranks->IsList()) {
      for (const Value& rank : ranks->items) {
        if (const auto number = Narrow(rank.Unsigned())) group.ranks.push_back(*number);
      }
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace railyard
