// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/text_proto/text_proto_set.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/text_format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/text_proto/text_proto_check.h"
#include "simulator/text_proto/text_proto_value.h"

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

// Erases what is known of a field and everything in it.
template <typename ByPath>
void EraseBelow(ByPath& by_path, const std::string& path) {
  for (auto it = by_path.lower_bound(path); it != by_path.end() && it->first.starts_with(path);) {
    it = IsAtOrBelow(it->first, path) ? by_path.erase(it) : std::next(it);
  }
}

class Edit {
 public:
  Edit(TextProtoFile& file, int set_index, Diagnostics& diagnostics)
      : file_(file),
        set_index_(set_index),
        where_(SetLocation(file.sets[static_cast<size_t>(set_index)])),
        diagnostics_(diagnostics) {}

  // A value that a program states.
  Edit(TextProtoFile& file, const ProtoValue& value, Diagnostics& diagnostics)
      : file_(file), value_(&value), where_{file.path}, diagnostics_(diagnostics) {}

  bool Apply() {
    const std::string_view set = file_.sets[static_cast<size_t>(set_index_)];
    const size_t equals = set.find('=');
    if (equals == std::string_view::npos) {
      return Fail("", "expected FIELD=VALUE, e.g. seed=7");
    }
    std::string_view path = Trim(set.substr(0, equals));
    if (path.starts_with(file_.reach.prefix)) path.remove_prefix(file_.reach.prefix.size());
    const auto steps = ParsePath(path);
    if (!steps) {
      return Fail("", fmt::format("{} is not the path of a field (expected e.g. faults[0].until)",
                                  Quote(path)));
    }
    if (!IsPrintable(set)) {
      return Fail(std::string(path), "the value holds a character that cannot be printed");
    }
    return ApplyTo(*steps, Trim(set.substr(equals + 1)));
  }

  bool ApplyValue(const std::string& path) {
    const auto steps = ParsePath(path);
    if (!steps) {
      return Fail("", fmt::format("{} is not the path of a field (expected e.g. faults[0].until)",
                                  Quote(path)));
    }
    return ApplyTo(*steps, "");
  }

 private:
  struct Paths {
    std::string parent;
    std::string field;
  };

  // The edit is made on a copy, so that a mistake further down the path leaves nothing behind.
  bool ApplyTo(const std::vector<PathStep>& steps, std::string_view value) {
    std::unique_ptr<Message> edited(file_.message->New());
    edited->CopyFrom(*file_.message);
    if (!Descend(*edited, steps, value)) return false;
    file_.message = std::move(edited);
    for (const std::string& replaced : replaced_) {
      EraseBelow(file_.places, replaced);
      EraseBelow(file_.mistakes, replaced);
      EraseBelow(file_.sets_of_files, replaced);
    }
    for (const std::string& given : given_) file_.places.try_emplace(given, Place());
    return true;
  }

  // The value that the field was to have is not known, so its value in the file deserves no
  // finding.
  bool Fail(std::string field, std::string what, FieldMistake mistake = FieldMistake::kUnreadable) {
    if (!field.empty()) file_.mistakes.try_emplace(field, mistake);
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
        return FailUnknown(parent, path, step.name, FieldNames(*message->GetDescriptor()));
      }
      if (!CheckIndex(*message, *field, step, path)) return false;
      if (step.index != kNoIndex) path += fmt::format("[{}]", step.index);
      if (i + 1 == steps.size()) {
        if (value_ != nullptr) return SetTyped(*message, *field, step, path);
        return value.empty() ? RemoveField(*message, *field, step, path)
                             : SetField(*message, *field, step, parent, path, value);
      }
      if (value_ == nullptr &&
          std::ranges::count(file_.reach.fields, std::string_view(field->full_name())) > 0) {
        file_.sets_of_files[path].push_back(file_.sets[static_cast<size_t>(set_index_)]);
        return true;
      }
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
        return Fail(path,
                    fmt::format("has no field {}, it is not a message", Quote(steps[i + 1].name)));
      }
      if (field->is_repeated() && step.index == kNoIndex) {
        return Fail(path,
                    fmt::format("which one? (expected e.g. {}[0].{})", path, steps[i + 1].name),
                    FieldMistake::kDoubtful);
      }
      if (value_ == nullptr && value.empty() && IsAbsent(*message, *field, step)) return true;
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

  bool FailUnknown(const std::string& parent, const std::string& path, const std::string& name,
                   const std::vector<std::string>& names) {
    if (const std::string meant = ClosestName(name, names); !meant.empty()) {
      file_.mistakes.try_emplace(parent.empty() ? meant : parent + "." + meant,
                                 FieldMistake::kDoubtful);
    }
    return Fail(path, UnknownName("field", name, names), FieldMistake::kDoubtful);
  }

  static bool IsAbsent(const Message& message, const FieldDescriptor& field, const PathStep& step) {
    const Reflection& reflection = *message.GetReflection();
    return field.is_repeated() ? step.index == reflection.FieldSize(message, &field)
                               : !reflection.HasField(message, &field);
  }

  Message& Enter(Message& message, const FieldDescriptor& field, const PathStep& step,
                 const std::string& path) {
    const Reflection& reflection = *message.GetReflection();
    const bool is_absent = IsAbsent(message, field, step);
    if (is_absent) {
      ReplaceSiblings(field, path);
      given_.push_back(path);
    }
    if (!field.is_repeated()) return *reflection.MutableMessage(&message, &field);
    return is_absent ? *reflection.AddMessage(&message, &field)
                     : *reflection.MutableRepeatedMessage(&message, &field, step.index);
  }

  bool RemoveField(Message& message, const FieldDescriptor& field, const PathStep& step,
                   const std::string& path) {
    if (step.index != kNoIndex) {
      const std::string_view all = std::string_view(path).substr(0, path.rfind('['));
      return Fail(path, fmt::format("one of several cannot be removed (expected {}=[…] with those "
                                    "that stay)",
                                    all));
    }
    message.GetReflection()->ClearField(&message, &field);
    replaced_.push_back(path);
    return true;
  }

  bool SetField(Message& message, const FieldDescriptor& field, const PathStep& step,
                const std::string& parent, const std::string& path, std::string_view value) {
    const bool is_list = field.is_repeated() && step.index == kNoIndex;
    if (is_list && !value.starts_with('[')) {
      return Fail(
          path,
          fmt::format("is repeated (expected {}[0]=… for one of them, or {}=[…])", path, path),
          FieldMistake::kDoubtful);
    }
    if (field.is_repeated() && !is_list && value.starts_with('[')) {
      return Fail(path, "is one of several, not a list");
    }
    const std::unique_ptr<Message> scratch(message.New());
    const bool is_bare = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING && !is_list &&
                         !value.starts_with('"') && !value.starts_with('\'');
    if (is_bare) {
      const Reflection& reflection = *scratch->GetReflection();
      if (field.is_repeated()) {
        reflection.AddString(scratch.get(), &field, std::string(value));
      } else {
        reflection.SetString(scratch.get(), &field, std::string(value));
      }
    } else if (!ParseValue(*scratch, field, step, {parent, path}, value)) {
      return false;
    }
    ReplaceSiblings(field, path);
    replaced_.push_back(path);
    given_.push_back(path);
    Transfer(*scratch, message, field, step.index);
    return true;
  }

  bool SetTyped(Message& message, const FieldDescriptor& field, const PathStep& step,
                const std::string& path) {
    const std::unique_ptr<Message> scratch(message.New());
    if (!Put(*scratch, field)) {
      return Fail(path, fmt::format("{} is no value of it (expected {})", Shown(*value_),
                                    ExpectedValue(field)));
    }
    if (field.is_repeated() && step.index == kNoIndex) {
      return Fail(path, fmt::format("is repeated (expected {}[0] for one of them)", path),
                  FieldMistake::kDoubtful);
    }
    ReplaceSiblings(field, path);
    replaced_.push_back(path);
    given_.push_back(path);
    Transfer(*scratch, message, field, step.index);
    return true;
  }

  // Puts the stated value into the field, if that may hold it.
  bool Put(Message& scratch, const FieldDescriptor& field) const {
    const Reflection& reflection = *scratch.GetReflection();
    const auto put = [&](auto set, auto add, const auto& value) {
      const auto method = field.is_repeated() ? add : set;
      (reflection.*method)(&scratch, &field, value);
      return true;
    };
    const std::string* const text = std::get_if<std::string>(value_);
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (!std::holds_alternative<std::monostate>(*value_)) return false;
        field.is_repeated() ? reflection.AddMessage(&scratch, &field)
                            : reflection.MutableMessage(&scratch, &field);
        return true;
      case FieldDescriptor::CPPTYPE_BOOL:
        return std::holds_alternative<bool>(*value_) &&
               put(&Reflection::SetBool, &Reflection::AddBool, std::get<bool>(*value_));
      case FieldDescriptor::CPPTYPE_UINT32: {
        const auto number = WholeNumber();
        return number && *number <= UINT32_MAX &&
               put(&Reflection::SetUInt32, &Reflection::AddUInt32, static_cast<uint32_t>(*number));
      }
      case FieldDescriptor::CPPTYPE_UINT64: {
        const auto number = WholeNumber();
        return number && put(&Reflection::SetUInt64, &Reflection::AddUInt64, *number);
      }
      case FieldDescriptor::CPPTYPE_DOUBLE: {
        const auto number = WholeNumber();
        const double* const real = std::get_if<double>(value_);
        if (!number && real == nullptr) return false;
        return put(&Reflection::SetDouble, &Reflection::AddDouble,
                   real != nullptr ? *real : static_cast<double>(*number));
      }
      case FieldDescriptor::CPPTYPE_STRING: {
        if (text == nullptr || !IsPrintable(*text)) return false;
        if (field.is_repeated()) {
          reflection.AddString(&scratch, &field, *text);
        } else {
          reflection.SetString(&scratch, &field, *text);
        }
        return true;
      }
      case FieldDescriptor::CPPTYPE_ENUM: {
        if (text == nullptr) return false;
        const auto* const known = field.enum_type()->FindValueByName(*text);
        return known != nullptr && known->number() != 0 &&
               put(&Reflection::SetEnum, &Reflection::AddEnum, known);
      }
      default:
        return false;
    }
  }

  std::optional<uint64_t> WholeNumber() const {
    if (const auto* const number = std::get_if<uint64_t>(value_)) return *number;
    const auto* const number = std::get_if<int64_t>(value_);
    if (number == nullptr || *number < 0) return std::nullopt;
    return static_cast<uint64_t>(*number);
  }

  static std::string Shown(const ProtoValue& value) {
    return std::visit(
        [](const auto& held) -> std::string {
          using Held = std::decay_t<decltype(held)>;
          if constexpr (std::is_same_v<Held, std::monostate>) {
            return "{}";
          } else if constexpr (std::is_same_v<Held, std::string>) {
            return Quote(held);
          } else {
            return fmt::format("{}", held);
          }
        },
        value);
  }

  // Reads "name: VALUE" into `scratch`, with the same care as a file.
  bool ParseValue(Message& scratch, const FieldDescriptor& field, const PathStep& step,
                  const Paths& paths, std::string_view value) {
    const std::string text = fmt::format("{}: {}", field.name(), value);
    const TextProtoCheck check{.text = text,
                               .type = scratch.GetDescriptor(),
                               .path = paths.parent,
                               .first_index = step.index == kNoIndex ? 0 : step.index,
                               .locate = [this](const FieldPlace&) { return where_; }};
    const CheckedTextProto checked = CheckTextProto(check, diagnostics_);
    if (!checked.readable || !checked.mistakes.empty()) {
      file_.mistakes.try_emplace(paths.field, step.index == kNoIndex && field.is_repeated()
                                                  ? FieldMistake::kDoubtful
                                                  : FieldMistake::kUnreadable);
      return false;
    }
    for (const auto& [given, place] : checked.places) given_.push_back(given);
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
    return is_one || Fail(paths.field, fmt::format("{} is more than one value", Quote(value)));
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
  void ReplaceSiblings(const FieldDescriptor& field, const std::string& path) {
    const auto* oneof = field.real_containing_oneof();
    if (oneof == nullptr) return;
    const size_t dot = path.rfind('.');
    const std::string prefix = dot == std::string::npos ? "" : path.substr(0, dot + 1);
    for (int i = 0; i < oneof->field_count(); ++i) {
      if (oneof->field(i) != &field) replaced_.push_back(prefix + oneof->field(i)->name());
    }
  }

  TextProtoFile& file_;
  int set_index_ = -1;                 // into the file's sets
  const ProtoValue* value_ = nullptr;  // null: the edit is one of the file's sets
  SourceLocation where_;
  Diagnostics& diagnostics_;
  // By path, for when the edit has succeeded: fields whose places are of no more use, and fields
  // that came from here.
  std::vector<std::string> replaced_;
  std::vector<std::string> given_;
};

}  // namespace

bool ApplySet(TextProtoFile& file, int set_index, Diagnostics& diagnostics) {
  return Edit(file, set_index, diagnostics).Apply();
}

bool SetValue(TextProtoFile& file, const std::string& path, const ProtoValue& value,
              Diagnostics& diagnostics) {
  return Edit(file, value, diagnostics).ApplyValue(path);
}

}  // namespace railyard
