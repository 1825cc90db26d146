// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/diagnostics/text_proto_check.h"

#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

namespace railyard {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::OneofDescriptor;
using google::protobuf::io::Tokenizer;

// Turns the tokenizer's columns (bytes from 0, a tab going on to the next multiple of 8) into
// characters from 1, and into offsets. Questions come in the order of the text, so that one pass
// answers them all.
class ColumnMap {
 public:
  explicit ColumnMap(std::string_view text) : text_(text) {}

  FieldPlace At(int line, int column) {
    while (line_ < line) {
      const size_t end = text_.find('\n', position_);
      if (end == std::string_view::npos) break;
      position_ = end + 1;
      ++line_;
      tokenizer_column_ = 0;
      character_ = 1;
    }
    while (tokenizer_column_ < column && position_ < text_.size() && text_[position_] != '\n') {
      const char c = text_[position_++];
      tokenizer_column_ += c == '\t' ? 8 - tokenizer_column_ % 8 : 1;
      if ((static_cast<uint8_t>(c) & 0xc0) != 0x80) ++character_;
    }
    return {.line = line + 1, .column = character_};
  }
  // Of the place asked for last.
  size_t offset() const { return position_; }

 private:
  std::string_view text_;
  size_t position_ = 0;
  int line_ = 0;
  int tokenizer_column_ = 0;
  int character_ = 1;
};

// The tokenizer's own complaints (a string that does not end, an escape that does not exist), kept
// until the token they belong to has been placed.
class TokenErrors : public google::protobuf::io::ErrorCollector {
 public:
  struct Complaint {
    int line = 0;
    int column = 0;
    std::string message;
  };
  void AddError(int line, int column, const std::string& message) override {
    if (complaints_.empty()) complaints_.push_back({line, column, message});
  }
  std::vector<Complaint> Take() { return std::exchange(complaints_, {}); }

 private:
  std::vector<Complaint> complaints_;  // at most one per token
};

std::string ExpectedValue(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return "a whole number, -2147483648 to 2147483647";
    case FieldDescriptor::CPPTYPE_UINT32:
      return "a whole number, 0 to 4294967295";
    case FieldDescriptor::CPPTYPE_INT64:
      return "a whole number, -9223372036854775808 to 9223372036854775807";
    case FieldDescriptor::CPPTYPE_UINT64:
      return "a whole number, 0 to 18446744073709551615";
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return JoinAlternatives(ValueNames(*field.enum_type()));
    case FieldDescriptor::CPPTYPE_STRING:
      return "a text in quotes";
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "{ … }";
  }
  return {};
}

// A value that is not a string: its tokens stand without a space between them ("300ms" is two).
struct Word {
  FieldPlace place;
  std::string text;
  bool negative = false;
  int token_count = 0;  // without the sign
  Tokenizer::TokenType type = Tokenizer::TYPE_END;
};

bool FitsInteger(const FieldDescriptor& field, const Word& word, const std::string& digits) {
  uint64_t limit = 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      limit = uint64_t{std::numeric_limits<int32_t>::max()} + (word.negative ? 1 : 0);
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      limit = uint64_t{std::numeric_limits<int64_t>::max()} + (word.negative ? 1 : 0);
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      limit = std::numeric_limits<uint32_t>::max();
      break;
    default:
      limit = std::numeric_limits<uint64_t>::max();
  }
  const bool is_signed = field.cpp_type() == FieldDescriptor::CPPTYPE_INT32 ||
                         field.cpp_type() == FieldDescriptor::CPPTYPE_INT64;
  uint64_t value = 0;
  return (is_signed || !word.negative) && Tokenizer::ParseInteger(digits, limit, &value);
}

// A part of the text that is wrong, and what may stand there instead.
struct Cut {
  size_t begin = 0;
  size_t end = 0;
  std::string_view replacement;
};

// What an element of a repeated field may be instead of one that cannot be read.
std::string_view EmptyElement(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return "false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return field.enum_type()->value(0)->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return R"("")";
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "{}";
    default:
      return "0";
  }
}

class Checker {
 public:
  Checker(const TextProtoCheck& check, Diagnostics& diagnostics)
      : check_(check),
        diagnostics_(diagnostics),
        stream_(check.text.data(), static_cast<int>(check.text.size())),
        tokenizer_(&stream_, &token_errors_),
        columns_(check.text) {
    tokenizer_.set_comment_style(Tokenizer::SH_COMMENT_STYLE);
    tokenizer_.set_allow_f_after_float(true);
    tokenizer_.set_require_space_after_number(false);
  }

  CheckedTextProto Run() && {
    Next();
    CheckMessage(*check_.type, check_.path, /*close=*/'\0', /*open=*/{}, /*depth=*/0);
    if (!has_syntax_error_ && !Full()) checked_.readable = WithoutCuts();
    return std::move(checked_);
  }

 private:
  // What a message has been given so far.
  struct Frame {
    std::map<const FieldDescriptor*, FieldPlace> singular;
    std::map<const FieldDescriptor*, int> repeated;
    std::map<const OneofDescriptor*, const FieldDescriptor*> oneofs;
  };

  // --- Tokens ---------------------------------------------------------------------------------
  void Next() {
    token_end_column_ = tokenizer_.current().end_column;
    token_line_ = tokenizer_.current().line;
    tokenizer_.Next();
    place_ = columns_.At(tokenizer_.current().line, tokenizer_.current().column);
    offset_ = columns_.offset();
    token_is_broken_ = false;
    for (const TokenErrors::Complaint& complaint : token_errors_.Take()) {
      token_is_broken_ = true;
      ReportComplaint(complaint);
    }
  }
  void ReportComplaint(const TokenErrors::Complaint& complaint) {
    if (complaint.message.find("non ascii") != std::string::npos) {
      SyntaxError(place_, "a character that is not ASCII outside quotes");
    } else if (tokenizer_.current().type == Tokenizer::TYPE_STRING &&
               complaint.message.find("scape") == std::string::npos) {
      Unreadable(place_, "", "a text that does not end on its line (a closing quote is missing)");
    } else {
      std::string message = complaint.message;
      while (!message.empty() && message.back() == '.') message.pop_back();
      Unreadable(place_, "", message);
    }
  }
  const Tokenizer::Token& token() { return tokenizer_.current(); }
  bool AtEnd() { return token().type == Tokenizer::TYPE_END || Full(); }
  bool At(char symbol) {
    return token().type == Tokenizer::TYPE_SYMBOL && token().text[0] == symbol;
  }
  bool AtAny(std::string_view symbols) {
    return token().type == Tokenizer::TYPE_SYMBOL &&
           symbols.find(token().text[0]) != std::string_view::npos;
  }
  bool Take(char symbol) {
    if (!At(symbol)) return false;
    Next();
    return true;
  }
  std::string Found() {
    if (token().type == Tokenizer::TYPE_END) return "the end";
    if (token().type == Tokenizer::TYPE_STRING) return "a text in quotes";
    return Quote(token().text);
  }

  // --- Findings -------------------------------------------------------------------------------
  bool Full() const { return error_count_ >= kTextProtoFindingsMax; }
  void Error(const FieldPlace& place, std::string field, std::string what) {
    if (Full()) return;
    diagnostics_.Error(check_.locate(place), std::move(field), std::move(what));
    if (++error_count_ == kTextProtoFindingsMax) {
      diagnostics_.Error(check_.locate(place), "", "too many mistakes, the rest is not looked at");
    }
  }
  // After this the text cannot be read, not even in part.
  void Unreadable(const FieldPlace& place, std::string field, std::string what) {
    has_syntax_error_ = true;
    Error(place, std::move(field), std::move(what));
  }
  // What makes no sense at all: once a line, for the rest of it would only repeat that.
  void SyntaxError(const FieldPlace& place, std::string what) {
    if (place.line == syntax_error_line_) return;
    syntax_error_line_ = place.line;
    Unreadable(place, "", std::move(what));
  }

  // --- What remains when mistakes are taken out -------------------------------------------------
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
    cuts_.push_back({begin, offset_, replacement});
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

  // --- Going on after a mistake -----------------------------------------------------------------
  // From an opening bracket past its closing one.
  void SkipBrackets() {
    const FieldPlace open = place_;
    const std::string bracket = token().text;
    int depth = 0;
    do {
      if (AtEnd()) {
        Unreadable(open, "", fmt::format("{} is never closed", Quote(bracket)));
        return;
      }
      if (AtAny("{<[")) ++depth;
      if (AtAny("}>]")) --depth;
      Next();
    } while (depth > 0);
  }
  // The value of a field nobody knows.
  void SkipValue() {
    const bool colon = Take(':');
    if (AtAny("{<[")) {
      SkipBrackets();
    } else if (colon) {
      if (token().type == Tokenizer::TYPE_STRING) {
        while (token().type == Tokenizer::TYPE_STRING) Next();
      } else {
        TakeWord();
      }
    }
    TakeSeparator();
  }

  // What stands where a ":" should.
  void SkipUncoloned() {
    if (AtAny("{<[")) {
      SkipBrackets();
    } else if (token().line == token_line_ && !AtEnd() && !AtAny("}>],;")) {
      if (token().type == Tokenizer::TYPE_STRING) {
        Next();
      } else {
        TakeWord();
      }
    }
  }

  // --- Messages and fields ----------------------------------------------------------------------
  void CheckMessage(const Descriptor& type, const std::string& path, char close,
                    const FieldPlace& open, int depth) {
    Frame frame;
    while (true) {
      if (AtEnd()) {
        if (close != '\0') {
          Unreadable(open, path,
                     fmt::format("{} is never closed", close == '}' ? R"("{")" : R"("<")"));
        }
        return;
      }
      if (close != '\0' && Take(close)) return;
      if (token().type == Tokenizer::TYPE_IDENTIFIER) {
        CheckField(type, path, frame, depth);
      } else {
        SyntaxError(place_, fmt::format("expected a field's name, found {}", Found()));
        if (At('[')) {  // an extension or an Any: none of our messages has them
          SkipBrackets();
          SkipValue();
        } else if (AtAny("{<")) {
          SkipBrackets();
        } else {
          Next();
        }
      }
    }
  }

  static std::string PathIn(const std::string& parent, const std::string& name) {
    return parent.empty() ? name : parent + "." + name;
  }

  void CheckField(const Descriptor& type, const std::string& parent, Frame& frame, int depth) {
    const FieldPlace place = place_;
    const size_t begin = offset_;
    const std::string name = token().text;
    const std::string path = PathIn(parent, name);
    Next();
    const FieldDescriptor* field = type.FindFieldByName(name);
    if (field == nullptr) {
      const std::vector<std::string> names = FieldNames(type);
      Error(place, path, UnknownName("field", name, names));
      const std::string meant = ClosestName(name, names);
      RecordMistake(meant.empty() ? path : PathIn(parent, meant), FieldMistake::kDoubtful);
      SkipValue();
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
    if (Take(':') || field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) return true;
    Error(place_, path,
          fmt::format(R"(expected ":" and {}, found {})", ExpectedValue(field), Found()));
    SkipUncoloned();
    return false;
  }

  void TakeSeparator() {
    if (!Take(';')) Take(',');
  }

  void CheckSingular(const FieldDescriptor& field, const std::string& path,
                     const std::string& parent, const FieldPlace& place, size_t begin, Frame& frame,
                     int depth) {
    const bool is_repeat = !CheckGivenOnce(field, place, path, parent, frame);
    if (is_repeat) ++repeats_around_;
    RecordPlace(path, place);
    const bool is_right = CheckColon(field, path) && CheckValue(field, path, depth);
    TakeSeparator();
    if (!is_right) RecordMistake(path, FieldMistake::kUnreadable);
    if (is_repeat) --repeats_around_;
    if (!is_right || is_repeat) CutFrom(begin);
  }

  void CheckRepeated(const FieldDescriptor& field, const std::string& path, const FieldPlace& place,
                     size_t begin, Frame& frame, int depth) {
    if (!CheckColon(field, path)) {
      TakeSeparator();
      RecordMistake(path, FieldMistake::kDoubtful);
      CutFrom(begin);
      return;
    }
    if (Take('[')) {
      CheckList(field, path, frame, depth);
    } else {
      CheckElement(field, path, place, frame, depth);
    }
    TakeSeparator();
  }

  // False after a finding: what came first stands, but is doubtful.
  bool CheckGivenOnce(const FieldDescriptor& field, const FieldPlace& place,
                      const std::string& path, const std::string& parent, Frame& frame) {
    const auto [first, is_first] = frame.singular.try_emplace(&field, place);
    if (!is_first) {
      Error(place, path, fmt::format("given twice (the first is in line {})", first->second.line));
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
    Error(place, path,
          fmt::format("contradicts {} in line {} (expected only one of {})",
                      Quote(other->second->name()), frame.singular.at(other->second).line,
                      JoinAlternatives(names)));
    return false;
  }

  void CheckList(const FieldDescriptor& field, const std::string& path, Frame& frame, int depth) {
    if (Take(']')) return;
    while (true) {
      CheckElement(field, path, place_, frame, depth);
      if (Take(']')) return;
      if (!Take(',')) {
        Unreadable(place_, path, fmt::format(R"(expected "," or "]", found {})", Found()));
        while (!AtEnd() && !AtAny("]}>")) Next();
        Take(']');
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
    const size_t begin = offset_;
    if (CheckValue(field, element, depth)) return;
    RecordMistake(element, FieldMistake::kUnreadable);
    CutFrom(begin, EmptyElement(field));
  }

  // --- Values: false if there is none that can be read, after a finding -------------------------
  bool CheckValue(const FieldDescriptor& field, const std::string& path, int depth) {
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      return CheckMessageValue(field, path, depth);
    }
    if (AtAny("{<[")) {
      Error(place_, path, fmt::format("found {} (expected {})", Found(), ExpectedValue(field)));
      SkipBrackets();
      return false;
    }
    if (AtEnd() || AtAny("}>],;:")) {
      Error(place_, path, fmt::format("its value is missing (expected {})", ExpectedValue(field)));
      return false;
    }
    if (token().type == Tokenizer::TYPE_STRING) return CheckString(field, path);
    return CheckWord(field, path, TakeWord());
  }

  bool CheckMessageValue(const FieldDescriptor& field, const std::string& path, int depth) {
    if (!AtAny("{<")) {
      Error(place_, path, fmt::format("expected {{ … }}, found {}", Found()));
      if (At('[')) {
        SkipBrackets();
      } else if (token().type == Tokenizer::TYPE_STRING) {
        Next();
      } else if (!AtEnd() && !AtAny("}>],;")) {
        TakeWord();
      }
      return false;
    }
    if (depth + 1 >= kTextProtoDepthMax) {
      Unreadable(place_, "", fmt::format("nested more than {} deep", kTextProtoDepthMax));
      SkipBrackets();
      return false;
    }
    const FieldPlace open = place_;
    const char close = At('{') ? '}' : '>';
    Next();
    CheckMessage(*field.message_type(), path, close, open, depth + 1);
    return true;
  }

  bool CheckString(const FieldDescriptor& field, const std::string& path) {
    const FieldPlace place = place_;
    std::string text;
    bool is_broken = false;
    while (token().type == Tokenizer::TYPE_STRING) {
      is_broken = is_broken || token_is_broken_;
      Tokenizer::ParseStringAppend(token().text, &text);
      Next();
    }
    if (is_broken) return false;
    if (field.cpp_type() != FieldDescriptor::CPPTYPE_STRING) {
      Error(place, path,
            fmt::format("{} is a text in quotes (expected {})", Quote(text), ExpectedValue(field)));
      return false;
    }
    if (field.type() == FieldDescriptor::TYPE_STRING && !IsPrintable(text)) {
      Error(place, path, fmt::format("{} holds a character that cannot be printed", Quote(text)));
      return false;
    }
    return true;
  }

  // Precondition: not at an opening or closing bracket, a separator or the end.
  Word TakeWord() {
    Word word;
    word.place = place_;
    if (At('-')) {
      word.negative = true;
      word.text.push_back('-');
      Next();
    }
    word.type = token().type;
    while (!AtEnd() && token().type != Tokenizer::TYPE_STRING && !AtAny("{}<>[],;:")) {
      if (word.token_count > 0 &&
          (token().line != token_line_ || token().column != token_end_column_)) {
        break;
      }
      word.text += token().text;
      ++word.token_count;
      Next();
    }
    return word;
  }

  bool CheckWord(const FieldDescriptor& field, const std::string& path, const Word& word) {
    const std::string digits = word.text.substr(word.negative ? 1 : 0);
    const bool is_integer = word.token_count == 1 && word.type == Tokenizer::TYPE_INTEGER;
    bool is_right = false;
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
      case FieldDescriptor::CPPTYPE_UINT32:
      case FieldDescriptor::CPPTYPE_INT64:
      case FieldDescriptor::CPPTYPE_UINT64:
        is_right = is_integer && FitsInteger(field, word, digits);
        break;
      case FieldDescriptor::CPPTYPE_FLOAT:
      case FieldDescriptor::CPPTYPE_DOUBLE:
        is_right = word.token_count == 1 &&
                   (word.type == Tokenizer::TYPE_FLOAT ||
                    (is_integer && digits.find_first_of("xX") == std::string::npos));
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        is_right = word.text == "true" || word.text == "false";
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        if (word.token_count == 1 && word.type == Tokenizer::TYPE_IDENTIFIER && !word.negative) {
          return CheckEnumValue(*field.enum_type(), path, word);
        }
        break;
      default:
        break;
    }
    if (!is_right) {
      Error(word.place, path, fmt::format("{} is not {}", Quote(word.text), ExpectedValue(field)));
    }
    return is_right;
  }

  bool CheckEnumValue(const EnumDescriptor& type, const std::string& path, const Word& word) {
    const std::vector<std::string> names = ValueNames(type);
    for (const std::string& name : names) {
      if (name == word.text) return true;
    }
    Error(word.place, path, UnknownName("", word.text, names));
    return false;
  }

  const TextProtoCheck& check_;
  CheckedTextProto checked_;
  Diagnostics& diagnostics_;
  google::protobuf::io::ArrayInputStream stream_;
  TokenErrors token_errors_;
  Tokenizer tokenizer_;
  ColumnMap columns_;
  FieldPlace place_;   // of the current token
  size_t offset_ = 0;  // likewise
  bool token_is_broken_ = false;
  int token_line_ = -1;  // of the token before
  int token_end_column_ = -1;
  int error_count_ = 0;
  int syntax_error_line_ = 0;
  bool has_syntax_error_ = false;
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
