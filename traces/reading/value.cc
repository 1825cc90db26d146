// SPDX-License-Identifier: GPL-2.0-only
#include "traces/reading/value.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "simulator/units/number.h"
#include "traces/reading/json_events.h"

namespace railyard {
namespace {

// Builds values from events and hands over those at a depth.
class ValueBuilder {
 public:
  using Visit = std::function<void(std::string_view key, Value value, uint64_t line)>;

  // With a list key, members of the outermost object are handed over, of that member its items.
  ValueBuilder(JsonBytes& bytes, bool by_member, std::string_view list_key, Visit visit)
      : bytes_(bytes), by_member_(by_member), list_key_(list_key), visit_(std::move(visit)) {}

  void Key(std::string_view key) {
    if (by_member_ && depth_ == 1) {
      member_ = key;
    } else if (!is_too_large_) {
      open_.back()->keys.emplace_back(key);
      Charge(key.size());
    }
  }
  void Text(std::string_view text) { Add({.kind = Value::Kind::kText, .text = std::string(text)}); }
  void Number(std::string_view text) {
    Add({.kind = Value::Kind::kNumber, .text = std::string(text)});
  }
  void Other() { Add({}); }
  void Bool(bool value) { Add({.kind = value ? Value::Kind::kTrue : Value::Kind::kFalse}); }

  void Open(bool is_object) {
    ++depth_;
    if (by_member_ && depth_ == 1) {
      is_object_ = is_object;
      return;
    }
    if (by_member_ && depth_ == 2 && member_ == list_key_ && !is_object && is_object_) {
      in_list_ = true;
      return;
    }
    Value value{.kind = is_object ? Value::Kind::kMap : Value::Kind::kList};
    if (open_.empty()) {
      root_ = std::move(value);
      bytes_used_ = 0;
      open_.push_back(&root_);
    } else if (is_too_large_) {
      ++skipped_depth_;  // the rest of it is only counted through
    } else {
      open_.back()->items.push_back(std::move(value));
      open_.push_back(&open_.back()->items.back());
      Charge(0);
    }
  }

  void Close(bool) {
    --depth_;
    if (in_list_ && depth_ == 1) {
      in_list_ = false;
      return;
    }
    if (open_.empty()) return;
    if (skipped_depth_ > 0) {
      --skipped_depth_;
      return;
    }
    open_.pop_back();
    if (open_.empty()) HandOver(std::move(root_));
  }

  bool was_too_large() const { return was_too_large_; }
  bool is_object() const { return is_object_; }

 private:
  void Charge(size_t characters) {
    bytes_used_ += sizeof(Value) + characters;
    if (bytes_used_ > kValueBytesMax && !is_too_large_) {
      is_too_large_ = was_too_large_ = true;
      skipped_depth_ = 0;
    }
  }
  void Add(Value value) {
    if (open_.empty()) {
      HandOver(std::move(value));
    } else if (!is_too_large_) {
      Charge(value.text.size());
      open_.back()->items.push_back(std::move(value));
    }
  }
  void HandOver(Value value) {
    if (!is_too_large_) visit_(member_, std::move(value), bytes_.Line());
    is_too_large_ = false;
  }

  JsonBytes& bytes_;
  bool by_member_;
  std::string list_key_;
  Visit visit_;
  size_t depth_ = 0;
  size_t skipped_depth_ = 0;
  bool is_object_ = true;
  bool in_list_ = false;
  bool is_too_large_ = false;
  bool was_too_large_ = false;
  size_t bytes_used_ = 0;
  std::string member_;
  Value root_;
  std::vector<Value*> open_;
};

bool Build(InputStream& stream, bool by_member, std::string_view list_key,
           ValueBuilder::Visit visit, Diagnostics& diagnostics) {
  JsonBytes bytes(stream);
  ValueBuilder builder(bytes, by_member, list_key, std::move(visit));
  if (!JsonEvents(bytes, builder).Parse(stream.name(), diagnostics)) return false;
  if (by_member && !EndsHere(bytes, stream.name(), diagnostics)) return false;
  if (builder.was_too_large()) {
    diagnostics.Error({stream.name()}, "",
                      fmt::format("holds a record of more than {} bytes", kValueBytesMax));
    return false;
  }
  return true;
}

class TextBytes : public ByteSource {
 public:
  explicit TextBytes(std::string_view text) : text_(text) {}
  size_t Read(char* to, size_t bytes) override {
    const size_t count = std::min(bytes, text_.size());
    std::memcpy(to, text_.data(), count);
    text_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view text_;
};

}  // namespace

const Value* Value::Find(std::string_view key) const {
  for (size_t i = 0; i < keys.size() && i < items.size(); ++i) {
    if (keys[i] == key) return &items[i];
  }
  return nullptr;
}

std::optional<uint64_t> Value::Unsigned() const { return NumberOf<uint64_t>(text); }
std::optional<int64_t> Value::Signed() const { return NumberOf<int64_t>(text); }

std::optional<uint64_t> Value::UnsignedOf(std::string_view key) const {
  const Value* const value = Find(key);
  return value == nullptr ? std::nullopt : value->Unsigned();
}

std::string Value::TextOf(std::string_view key) const {
  const Value* const value = Find(key);
  return value == nullptr ? std::string() : value->text;
}

std::optional<Value> ReadJsonValue(InputStream& stream, Diagnostics& diagnostics) {
  std::optional<Value> read;
  const auto take = [&](std::string_view, Value value, uint64_t) { read = std::move(value); };
  if (!Build(stream, false, {}, take, diagnostics)) return std::nullopt;
  return read;
}

std::optional<Value> ParseJson(std::string_view text) {
  InputStream stream("", std::make_unique<TextBytes>(text));
  Diagnostics ignored;
  return ReadJsonValue(stream, ignored);
}

bool ForEachJsonItem(
    InputStream& stream, std::string_view list_key,
    const std::function<void(std::string_view key, Value value, uint64_t line)>& visit,
    Diagnostics& diagnostics) {
  return Build(stream, true, list_key, visit, diagnostics);
}

}  // namespace railyard
