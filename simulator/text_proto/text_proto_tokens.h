// SPDX-License-Identifier: GPL-2.0-only
// Reads the tokens of protobuf text with their places, and skips malformed text. Errors of the
// tokenizer become findings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "simulator/text_proto/text_proto.h"
#include "simulator/text_proto/text_proto_findings.h"

namespace railyard {

// Holds a value that is not a string: tokens without a space between them ("300ms" is two).
struct TextProtoWord {
  FieldPlace place;
  std::string text;
  bool negative = false;
  int token_count = 0;  // without the sign
  google::protobuf::io::Tokenizer::TokenType type = google::protobuf::io::Tokenizer::TYPE_END;
};

class TextProtoTokens {
 public:
  using Tokenizer = google::protobuf::io::Tokenizer;

  // Reads the first token. Both arguments must outlive this.
  TextProtoTokens(std::string_view text, TextProtoFindings& findings);

  void Next();
  const Tokenizer::Token& token() { return tokenizer_.current(); }
  // These are properties of the current token.
  const FieldPlace& place() const { return place_; }
  size_t offset() const { return offset_; }
  bool is_broken() const { return is_broken_; }  // the tokenizer reported an error

  // Returns true at the end, and if there are too many findings to continue.
  bool AtEnd();
  bool At(char symbol);
  bool AtAny(std::string_view symbols);
  bool Take(char symbol);
  // Returns the next word. Precondition: the current token is not a bracket, a separator or the
  // end.
  TextProtoWord TakeWord();
  void TakeSeparator();
  // Returns the current token, for findings.
  std::string Found();

  // Skips from an opening bracket past its closing one.
  void SkipBrackets();
  // Skips the value of an unknown field.
  void SkipValue();
  // Skips the text in the place of a missing ":".
  void SkipUncoloned();

 private:
  // Converts the tokenizer's columns (bytes from 0, a tab extends to the next multiple of 8) to
  // characters from 1, and to offsets. Requests must be in the order of the text, so that one pass
  // answers them all.
  class ColumnMap {
   public:
    explicit ColumnMap(std::string_view text) : text_(text) {}

    FieldPlace At(int line, int column);
    // Returns the offset of the last requested place.
    size_t offset() const { return position_; }

   private:
    std::string_view text_;
    size_t position_ = 0;
    int line_ = 0;
    int tokenizer_column_ = 0;
    int character_ = 1;
  };

  // Keeps errors of the tokenizer (an unterminated string, an unknown escape) until the place of
  // their token is known.
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

  void ReportComplaint(const TokenErrors::Complaint& complaint);

  TextProtoFindings& findings_;
  google::protobuf::io::ArrayInputStream stream_;
  TokenErrors errors_;
  Tokenizer tokenizer_;
  ColumnMap columns_;
  FieldPlace place_;
  size_t offset_ = 0;
  bool is_broken_ = false;
  int last_line_ = -1;  // of the previous token
  int last_end_column_ = -1;
};

}  // namespace railyard
