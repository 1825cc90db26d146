// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/text_proto/text_proto_tokens.h"

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"

namespace railyard {

TextProtoTokens::TextProtoTokens(std::string_view text, TextProtoFindings& findings)
    : findings_(findings),
      stream_(text.data(), static_cast<int>(text.size())),
      tokenizer_(&stream_, &errors_),
      columns_(text) {
  tokenizer_.set_comment_style(Tokenizer::SH_COMMENT_STYLE);
  tokenizer_.set_allow_f_after_float(true);
  tokenizer_.set_require_space_after_number(false);
  Next();
}

void TextProtoTokens::Next() {
  last_end_column_ = tokenizer_.current().end_column;
  last_line_ = tokenizer_.current().line;
  tokenizer_.Next();
  place_ = columns_.At(tokenizer_.current().line, tokenizer_.current().column);
  offset_ = columns_.offset();
  is_broken_ = false;
  for (const TokenErrors::Complaint& complaint : errors_.Take()) {
    is_broken_ = true;
    ReportComplaint(complaint);
  }
}

bool TextProtoTokens::AtEnd() { return token().type == Tokenizer::TYPE_END || findings_.Full(); }

bool TextProtoTokens::At(char symbol) {
  return token().type == Tokenizer::TYPE_SYMBOL && token().text[0] == symbol;
}

bool TextProtoTokens::AtAny(std::string_view symbols) {
  return token().type == Tokenizer::TYPE_SYMBOL &&
         symbols.find(token().text[0]) != std::string_view::npos;
}

bool TextProtoTokens::Take(char symbol) {
  if (!At(symbol)) return false;
  Next();
  return true;
}

std::string TextProtoTokens::Found() {
  if (token().type == Tokenizer::TYPE_END) return "the end";
  if (token().type == Tokenizer::TYPE_STRING) return "a text in quotes";
  return Quote(token().text);
}

TextProtoWord TextProtoTokens::TakeWord() {
  TextProtoWord word;
  word.place = place_;
  if (At('-')) {
    word.negative = true;
    word.text.push_back('-');
    Next();
  }
  word.type = token().type;
  while (!AtEnd() && token().type != Tokenizer::TYPE_STRING && !AtAny("{}<>[],;:")) {
    if (word.token_count > 0 &&
        (token().line != last_line_ || token().column != last_end_column_)) {
      break;
    }
    word.text += token().text;
    ++word.token_count;
    Next();
  }
  return word;
}

void TextProtoTokens::TakeSeparator() {
  if (!Take(';')) Take(',');
}

void TextProtoTokens::SkipBrackets() {
  const FieldPlace open = place_;
  const std::string bracket = token().text;
  int depth = 0;
  do {
    if (AtEnd()) {
      findings_.Unreadable(open, "", fmt::format("{} is never closed", Quote(bracket)));
      return;
    }
    if (AtAny("{<[")) ++depth;
    if (AtAny("}>]")) --depth;
    Next();
  } while (depth > 0);
}

void TextProtoTokens::SkipValue() {
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

void TextProtoTokens::SkipUncoloned() {
  if (AtAny("{<[")) {
    SkipBrackets();
  } else if (token().line == last_line_ && !AtEnd() && !AtAny("}>],;")) {
    if (token().type == Tokenizer::TYPE_STRING) {
      Next();
    } else {
      TakeWord();
    }
  }
}

FieldPlace TextProtoTokens::ColumnMap::At(int line, int column) {
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

void TextProtoTokens::ReportComplaint(const TokenErrors::Complaint& complaint) {
  if (complaint.message.find("non ascii") != std::string::npos) {
    findings_.SyntaxError(place_, "a character that is not ASCII outside quotes");
  } else if (tokenizer_.current().type == Tokenizer::TYPE_STRING &&
             complaint.message.find("scape") == std::string::npos) {
    findings_.Unreadable(place_, "",
                         "a text that does not end on its line (a closing quote is missing)");
  } else {
    std::string message = complaint.message;
    while (!message.empty() && message.back() == '.') message.pop_back();
    findings_.Unreadable(place_, "", message);
  }
}

}  // namespace railyard
