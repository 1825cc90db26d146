// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/text_proto/text_proto_check.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>

#include "simulator/diagnostics/names.h"
#include "simulator/text_proto/text_proto_findings.h"
#include "simulator/text_proto/text_proto_tokens.h"
#include "simulator/text_proto/text_proto_value.h"

namespace railyard {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::OneofDescriptor;
using google::protobuf::io::Tokenizer;

// A part of the text that is wrong, and what may stand there instead.
struct Cut {
  size_t begin = 0;
  size_t end = 0;
  std::string_view replacement;
};

class Checker {
 public:
  Checker(const TextProtoCheck& check, Diagnostics& diagnostics)
      : check_(check), findings_(check.locate, diagnostics), tokens_(check.text, findings_) {}

  CheckedTextProto Run() && {
    CheckMessage(*check_.type, check_.path, /*close=*/'\0', /*open=*/{}, /*depth=*/0);
    if (!findings_.has_syntax_error() && !findings_.Full()) checked_.readable = WithoutCuts();
    return std::move(checked_);
  }

 private:
  // The fields that a message has been given so far.
  struct Frame {
    std::map<const FieldDescriptor*, FieldPlace> singular;
    std::map<const FieldDescriptor*, int> repeated;
    std::map<const OneofDescriptor*, const FieldDescriptor*> oneofs;
  };

  // --- Rest of the text without the mistakes ----------------------------------------------------
  // Within a field that is given again, nothing is recorded: its paths are those of the first one.
  void RecordPlace(const std::string& path, const FieldPlace& place) {
    if (repeats_around_ == 0) checked_.places[path] = place;
  }
  void RecordMistake(const std::string& path, FieldMistake mistake) {
    if (repeats_around_ == 0) checked_.mistakes.try_emplace(path, mistake);
  }
  // Takes out the text from `begin` up to the current token, and with it the cuts inside.
  void CutFrom(size_t begin, std::string_view replacement = {}) {
    while (!cuts_.empty() && cuts_.back().begin >= begin) cuts_.pop_back();
    cuts_.push_back({begin, tokens_.offset(), replacement});
  }
  std::string WithoutCuts() const {
    std::string text;
    size_t end = 0;
    for (const Cut& cut : cuts_) {
      text += check_.text.substr(end, cut.begin - end);
      text += cut.replacement;
      text += ' ';
      end = cut.end;
    }
    text += check_.text.substr(end);
    return text;
  }

  // --- Messages and fields ----------------------------------------------------------------------
  void CheckMessage(const Descriptor& type, const std::string& path, char close,
                    const FieldPlace& open, int depth) {
    Frame frame;
    while (true) {
      if (tokens_.AtEnd()) {
        if (close != '\0') {
          findings_.Unreadable(
              open, path, fmt::format("{} is never closed", close == '}' ? R"("{")" : R"("<")"));
        }
        return;
      }
      if (close != '\0' && tokens_.Take(close)) return;
      if (tokens_.token().type == Tokenizer::TYPE_IDENTIFIER) {
        CheckField(type, path, frame, depth);
      } else {
        findings_.SyntaxError(tokens_.place(),
                              fmt::format("expected a field's name, found {}", tokens_.Found()));
        if (tokens_.At('[')) {  // an extension or an Any: none of our messages has them
          tokens_.SkipBrackets();
          tokens_.SkipValue();
        } else if (tokens_.AtAny("{<")) {
          tokens_.SkipBrackets();
        } else {
          tokens_.Next();
        }
      }
    }
  }

  static std::string PathIn(const std::string& parent, const std::string& name) {
    return parent.empty() ? name : parent + "." + name;
  }

  void CheckField(const Descriptor& type, const std::string& parent, Frame& frame, int depth) {
    const FieldPlace place = tokens_.place();
    const size_t begin = tokens_.offset();
    const std::string name = tokens_.token().text;
    const FieldDescriptor* field = type.FindFieldByName(name);
    // A finding names an unknown field, however long, in a line that people can read.
    constexpr size_t kShownBytesMax = 80;
    const bool is_long = field == nullptr && name.size() > kShownBytesMax;
    const std::string path = PathIn(parent, is_long ? name.substr(0, kShownBytesMax) + "…" : name);
    tokens_.Next();
    if (field == nullptr) {
      const std::vector<std::string> names = FieldNames(type);
      findings_.Error(place, path, UnknownName("field", name, names));
      const std::string meant = ClosestName(name, names);
      RecordMistake(meant.empty() ? path : PathIn(parent, meant), FieldMistake::kDoubtful);
      tokens_.SkipValue();
      CutFrom(begin);
    } else if (field->is_repeated()) {
      CheckRepeated(*field, path, place, begin, frame, depth);
    } else {
      CheckSingular(*field, path, parent, place, begin, frame, depth);
    }
  }

  // The colon between a field's name and its value, which messages and lists of them can do
  // without.
  bool CheckColon(const FieldDescriptor& field, const std::string& path) {
    if (tokens_.Take(':') || field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) return true;
    findings_.Error(
        tokens_.place(), path,
        fmt::format(R"(expected ":" and {}, found {})", ExpectedValue(field), tokens_.Found()));
    tokens_.SkipUncoloned();
    return false;
  }

  void CheckSingular(const FieldDescriptor& field, const std::string& path,
                     const std::string& parent, const FieldPlace& place, size_t begin, Frame& frame,
                     int depth) {
    const bool is_repeat = !CheckGivenOnce(field, place, path, parent, frame);
    if (is_repeat) ++repeats_around_;
    RecordPlace(path, place);
    const bool is_right = CheckColon(field, path) && CheckValue(field, path, depth);
    tokens_.TakeSeparator();
    if (!is_right) RecordMistake(path, FieldMistake::kUnreadable);
    if (is_repeat) --repeats_around_;
    if (!is_right || is_repeat) CutFrom(begin);
  }

  void CheckRepeated(const FieldDescriptor& field, const std::string& path, const FieldPlace& place,
                     size_t begin, Frame& frame, int depth) {
    if (!CheckColon(field, path)) {
      tokens_.TakeSeparator();
      RecordMistake(path, FieldMistake::kDoubtful);
      CutFrom(begin);
      return;
    }
    if (tokens_.Take('[')) {
      CheckList(field, path, frame, depth);
    } else {
      CheckElement(field, path, place, frame, depth);
    }
    tokens_.TakeSeparator();
  }

  // Returns false after a finding: the first value stands, but is doubtful.
  bool CheckGivenOnce(const FieldDescriptor& field, const FieldPlace& place,
                      const std::string& path, const std::string& parent, Frame& frame) {
    const auto [first, is_first] = frame.singular.try_emplace(&field, place);
    if (!is_first) {
      findings_.Error(place, path,
                      fmt::format("given twice (the first is in line {})", first->second.line));
      RecordMistake(path, FieldMistake::kDoubtful);
      return false;
    }
    const OneofDescriptor* oneof = field.real_containing_oneof();
    if (oneof == nullptr) return true;
    const auto [other, is_alone] = frame.oneofs.try_emplace(oneof, &field);
    if (is_alone) return true;
    RecordMistake(path, FieldMistake::kDoubtful);
    RecordMistake(PathIn(parent, other->second->name()), FieldMistake::kDoubtful);
    std::vector<std::string> names;
    for (int i = 0; i < oneof->field_count(); ++i) names.push_back(oneof->field(i)->name());
    findings_.Error(place, path,
                    fmt::format("contradicts {} in line {} (expected only one of {})",
                                Quote(other->second->name()), frame.singular.at(other->second).line,
                                JoinAlternatives(names)));
    return false;
  }

  void CheckList(const FieldDescriptor& field, const std::string& path, Frame& frame, int depth) {
    if (tokens_.Take(']')) return;
    while (true) {
      CheckElement(field, path, tokens_.place(), frame, depth);
      if (tokens_.Take(']')) return;
      if (!tokens_.Take(',')) {
        findings_.Unreadable(tokens_.place(), path,
                             fmt::format(R"(expected "," or "]", found {})", tokens_.Found()));
        while (!tokens_.AtEnd() && !tokens_.AtAny("]}>")) tokens_.Next();
        tokens_.Take(']');
        return;
      }
    }
  }

  void CheckElement(const FieldDescriptor& field, const std::string& path, const FieldPlace& place,
                    Frame& frame, int depth) {
    const auto [count, unused] =
        frame.repeated.try_emplace(&field, depth == 0 ? check_.first_index : 0);
    const std::string element = fmt::format("{}[{}]", path, count->second++);
    RecordPlace(element, place);
    const size_t begin = tokens_.offset();
    if (CheckValue(field, element, depth)) return;
    RecordMistake(element, FieldMistake::kUnreadable);
    CutFrom(begin, EmptyElement(field));
  }

  // --- Values: false if there is none that can be read, after a finding -------------------------
  bool CheckValue(const FieldDescriptor& field, const std::string& path, int depth) {
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      return CheckMessageValue(field, path, depth);
    }
    if (tokens_.AtAny("{<[")) {
      findings_.Error(tokens_.place(), path,
                      fmt::format("found {} (expected {})", tokens_.Found(), ExpectedValue(field)));
      tokens_.SkipBrackets();
      return false;
    }
    if (tokens_.AtEnd() || tokens_.AtAny("}>],;:")) {
      findings_.Error(tokens_.place(), path,
                      fmt::format("its value is missing (expected {})", ExpectedValue(field)));
      return false;
    }
    if (tokens_.token().type == Tokenizer::TYPE_STRING) return CheckString(field, path);
    return CheckWord(field, path);
  }

  bool CheckMessageValue(const FieldDescriptor& field, const std::string& path, int depth) {
    if (!tokens_.AtAny("{<")) {
      findings_.Error(tokens_.place(), path,
                      fmt::format("expected {{ … }}, found {}", tokens_.Found()));
      if (tokens_.At('[')) {
        tokens_.SkipBrackets();
      } else if (tokens_.token().type == Tokenizer::TYPE_STRING) {
        tokens_.Next();
      } else if (!tokens_.AtEnd() && !tokens_.AtAny("}>],;")) {
        tokens_.TakeWord();
      }
      return false;
    }
    if (depth + 1 >= kTextProtoDepthMax) {
      findings_.Unreadable(tokens_.place(), "",
                           fmt::format("nested more than {} deep", kTextProtoDepthMax));
      tokens_.SkipBrackets();
      return false;
    }
    const FieldPlace open = tokens_.place();
    const char close = tokens_.At('{') ? '}' : '>';
    tokens_.Next();
    CheckMessage(*field.message_type(), path, close, open, depth + 1);
    return true;
  }

  bool CheckString(const FieldDescriptor& field, const std::string& path) {
    const FieldPlace place = tokens_.place();
    std::string text;
    bool is_broken = false;
    while (tokens_.token().type == Tokenizer::TYPE_STRING) {
      is_broken = is_broken || tokens_.is_broken();
      Tokenizer::ParseStringAppend(tokens_.token().text, &text);
      tokens_.Next();
    }
    if (is_broken) return false;
    if (field.cpp_type() != FieldDescriptor::CPPTYPE_STRING) {
      findings_.Error(
          place, path,
          fmt::format("{} is a text in quotes (expected {})", Quote(text), ExpectedValue(field)));
      return false;
    }
    if (field.type() == FieldDescriptor::TYPE_STRING && !IsPrintable(text)) {
      findings_.Error(place, path,
                      fmt::format("{} holds a character that cannot be printed", Quote(text)));
      return false;
    }
    return true;
  }

  bool CheckWord(const FieldDescriptor& field, const std::string& path) {
    const TextProtoWord word = tokens_.TakeWord();
    std::string wrong = WhyNotAValue(word, field);
    if (wrong.empty()) return true;
    findings_.Error(word.place, path, std::move(wrong));
    return false;
  }

  const TextProtoCheck& check_;
  CheckedTextProto checked_;
  TextProtoFindings findings_;
  TextProtoTokens tokens_;
  int repeats_around_ = 0;  // fields given again that the current one is in
  std::vector<Cut> cuts_;   // in the order of the text, none within another
};

}  // namespace

std::vector<std::string> FieldNames(const Descriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  return names;
}

std::vector<std::string> ValueNames(const EnumDescriptor& type) {
  constexpr std::string_view kUnspecified = "_UNSPECIFIED";
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) {
    const std::string& name = type.value(i)->name();
    if (!std::string_view(name).ends_with(kUnspecified)) names.push_back(name);
  }
  return names;
}

CheckedTextProto CheckTextProto(const TextProtoCheck& check, Diagnostics& diagnostics) {
  return Checker(check, diagnostics).Run();
}

bool IsAtOrBelow(std::string_view field_path, std::string_view path) {
  if (!field_path.starts_with(path)) return false;
  return field_path.size() == path.size() || field_path[path.size()] == '.' ||
         field_path[path.size()] == '[';
}

}  // namespace railyard
