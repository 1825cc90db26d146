// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/diagnostics/text_proto_set.h"

#include <charconv>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/text_format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/diagnostics/text_proto_check.h"

namespace railyard {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kNoIndex = -1;

// One part of a path: "faults[0]".
struct PathStep {
  std::string name;
  int index = kNoIndex;
};

std::optional<PathStep> ParseStep(std::string_view text) {
  const size_t bracket = text.find('[');
  PathStep step{.name = std::string(text.substr(0, bracket))};
  if (step.name.empty()) return std::nullopt;
  if (bracket == std::string_view::npos) return step;
  const std::string_view digits = text.substr(bracket + 1);
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, step.index);
  if (error != std::errc() || step.index < 0 || std::string_view(stop, end) != "]") {
    return std::nullopt;
  }
  return step;
}

std::optional<std::vector<PathStep>> ParsePath(std::string_view text) {
  std::vector<PathStep> steps;
  while (true) {
    const size_t dot = text.find('.');
    const std::optional<PathStep> step = ParseStep(text.substr(0, dot));
    if (!step) return std::nullopt;
    steps.push_back(*step);
    if (dot == std::string_view::npos) return steps;
    text.remove_prefix(dot + 1);
  }
}

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Forgets where a field and everything in it was written.
void ErasePlaces(FieldPlaces& places, const std::string& path) {
  for (auto it = places.lower_bound(path); it != places.end() && it->first.starts_with(path);) {
    const char next = it->first.size() > path.size() ? it->first[path.size()] : '.';
    it = next == '.' || next == '[' ? places.erase(it) : std::next(it);
  }
}

class Edit {
 public:
  Edit(TextProtoFile& file, int set_index, Diagnostics& diagnostics)
      : file_(file),
        set_index_(set_index),
        where_(SetLocation(file.sets[static_cast<size_t>(set_index)])),
        diagnostics_(diagnostics) {}

  bool Apply() {
    const std::string_view set = file_.sets[static_cast<size_t>(set_index_)];
    const size_t equals = set.find('=');
    if (equals == std::string_view::npos) {
      return Fail("", "expected FIELD=VALUE, e.g. seed=7");
    }
    const std::string_view path = Trim(set.substr(0, equals));
    const auto steps = ParsePath(path);
    if (!steps) {
      return Fail("", fmt::format("{} is not the path of a field (expected e.g. faults[0].until)",
                                  Quote(path)));
    }
    if (!IsPrintable(set)) {
      return Fail(std::string(path), "the value holds a character that cannot be printed");
    }
    // The edit is made on a copy, so that a mistake further down the path leaves nothing behind.
    std::unique_ptr<Message> edited(file_.message->New());
    edited->CopyFrom(*file_.message);
    if (!Descend(*edited, *steps, Trim(set.substr(equals + 1)))) return false;
    file_.message = std::move(edited);
    for (const auto& [created, place] : created_places_) {
      file_.places.try_emplace(created, place);
    }
    return true;
  }

 private:
  struct Paths {
    std::string parent;
    std::string field;
  };

  bool Fail(std::string field, std::string what) {
    diagnostics_.Error(where_, std::move(field), std::move(what));
    return false;
  }
  FieldPlace Place() const { return {.set_index = set_index_}; }

  // Walks to the message that holds the last step's field, creating what is absent, and sets it.
  bool Descend(Message& root, const std::vector<PathStep>& steps, std::string_view value) {
    Message* message = &root;
    std::string path;
    for (size_t i = 0; i < steps.size(); ++i) {
      const PathStep& step = steps[i];
      const std::string parent = path;
      if (!path.empty()) path += '.';
      path += step.name;
      const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(step.name);
      if (field == nullptr) {
        return Fail(path, UnknownName("field", step.name, FieldNames(*message->GetDescriptor())));
      }
      if (!CheckIndex(*message, *field, step, path)) return false;
      if (step.index != kNoIndex) path += fmt::format("[{}]", step.index);
      if (i + 1 == steps.size()) return SetField(*message, *field, step, parent, path, value);
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
        return Fail(path,
                    fmt::format("has no field {}, it is not a message", Quote(steps[i + 1].name)));
      }
      if (field->is_repeated() && step.index == kNoIndex) {
        return Fail(path,
                    fmt::format("which one? (expected e.g. {}[0].{})", path, steps[i + 1].name));
      }
      message = &Enter(*message, *field, step, path);
    }
    return false;
  }

  bool CheckIndex(const Message& message, const FieldDescriptor& field, const PathStep& step,
                  const std::string& path) {
    if (step.index == kNoIndex) return true;
    if (!field.is_repeated()) {
      return Fail(path, fmt::format("is not repeated, [{}] means nothing", step.index));
    }
    const int size = message.GetReflection()->FieldSize(message, &field);
    if (step.index <= size) return true;
    return Fail(fmt::format("{}[{}]", path, step.index),
                fmt::format("there {} only {} ({}[{}] would append one)", size == 1 ? "is" : "are",
                            size, path, size));
  }

  Message& Enter(Message& message, const FieldDescriptor& field, const PathStep& step,
                 const std::string& path) {
    const Reflection& reflection = *message.GetReflection();
    const bool is_absent = field.is_repeated() ? step.index == reflection.FieldSize(message, &field)
                                               : !reflection.HasField(message, &field);
    if (is_absent) {
      ForgetSiblings(field, path);
      created_places_.emplace(path, Place());
    }
    if (!field.is_repeated()) return *reflection.MutableMessage(&message, &field);
    return is_absent ? *reflection.AddMessage(&message, &field)
                     : *reflection.MutableRepeatedMessage(&message, &field, step.index);
  }

  bool SetField(Message& message, const FieldDescriptor& field, const PathStep& step,
                const std::string& parent, const std::string& path, std::string_view value) {
    const bool is_list = field.is_repeated() && step.index == kNoIndex;
    if (is_list && !value.starts_with('[')) {
      return Fail(path, fmt::format("is repeated (expected {}[0]=… for one of them, or {}=[…])",
                                    path, path));
    }
    if (field.is_repeated() && !is_list && value.starts_with('[')) {
      return Fail(path, "is one of several, not a list");
    }
    const std::unique_ptr<Message> scratch(message.New());
    FieldPlaces places;
    const bool is_bare = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING && !is_list &&
                         !value.starts_with('"') && !value.starts_with('\'');
    if (is_bare) {
      const Reflection& reflection = *scratch->GetReflection();
      if (field.is_repeated()) {
        reflection.AddString(scratch.get(), &field, std::string(value));
      } else {
        reflection.SetString(scratch.get(), &field, std::string(value));
      }
    } else if (!ParseValue(*scratch, field, step, {parent, path}, value, places)) {
      return false;
    }
    places[path] = Place();
    ForgetSiblings(field, path);
    ErasePlaces(file_.places, path);
    for (const auto& [given, place] : places) file_.places[given] = Place();
    Transfer(*scratch, message, field, step.index);
    return true;
  }

  // Reads "name: VALUE" into `scratch`, with the same care as a file.
  bool ParseValue(Message& scratch, const FieldDescriptor& field, const PathStep& step,
                  const Paths& paths, std::string_view value, FieldPlaces& places) {
    const std::string text = fmt::format("{}: {}", field.name(), value);
    const TextProtoCheck check{.text = text,
                               .type = scratch.GetDescriptor(),
                               .path = paths.parent,
                               .first_index = step.index == kNoIndex ? 0 : step.index,
                               .locate = [this](const FieldPlace&) { return where_; }};
    if (!CheckTextProto(check, places, diagnostics_)) return false;
    google::protobuf::TextFormat::Parser parser;
    parser.SetRecursionLimit(kTextProtoDepthMax);
    if (!parser.ParseFromString(text, &scratch)) {
      return Fail(paths.field, fmt::format("{} cannot be read", Quote(value)));
    }
    // `seed=1 name: "x"` would set a second field: a value is one value.
    std::vector<const FieldDescriptor*> given;
    scratch.GetReflection()->ListFields(scratch, &given);
    const bool is_one =
        given.size() <= 1 && (!field.is_repeated() || step.index == kNoIndex ||
                              scratch.GetReflection()->FieldSize(scratch, &field) == 1);
    return is_one ||
           Fail(std::string(field.name()), fmt::format("{} is more than one value", Quote(value)));
  }

  // Moves the one field of `scratch` into `message`.
  static void Transfer(const Message& scratch, Message& message, const FieldDescriptor& field,
                       int index) {
    const Reflection& reflection = *message.GetReflection();
    if (index == kNoIndex) reflection.ClearField(&message, &field);
    message.MergeFrom(scratch);
    if (index == kNoIndex) return;
    const int last = reflection.FieldSize(message, &field) - 1;
    SIM_CHECK(index <= last, "an element was not appended");
    if (index < last) {
      reflection.SwapElements(&message, &field, index, last);
      reflection.RemoveLast(&message, &field);
    }
  }

  // A oneof's other members go when one is set.
  void ForgetSiblings(const FieldDescriptor& field, const std::string& path) {
    const auto* oneof = field.real_containing_oneof();
    if (oneof == nullptr) return;
    const size_t dot = path.rfind('.');
    const std::string prefix = dot == std::string::npos ? "" : path.substr(0, dot + 1);
    for (int i = 0; i < oneof->field_count(); ++i) {
      if (oneof->field(i) != &field) ErasePlaces(file_.places, prefix + oneof->field(i)->name());
    }
  }

  TextProtoFile& file_;
  int set_index_;
  SourceLocation where_;
  Diagnostics& diagnostics_;
  FieldPlaces created_places_;
};

}  // namespace

bool ApplySet(TextProtoFile& file, int set_index, Diagnostics& diagnostics) {
  return Edit(file, set_index, diagnostics).Apply();
}

}  // namespace railyard
