// SPDX-License-Identifier: GPL-2.0-only
// Reads protobuf text strictly: every unknown field, wrong type, unknown enum value and syntax
// error is a finding at its line and column, and all are reported at once; `--set` edits are
// applied to the result.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/message.h>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

// Names the place where a field was written: in the file (lines and columns from 1; a column is a
// character, a tab counts as one), or in a --set.
struct FieldPlace {
  int line = 0;
  int column = 0;
  int set_index = -1;  // into TextProtoFile::sets; -1 for the file itself
};

// Maps a field's path, as in --set, to its place: "faults[0].until".
using FieldPlaces = std::map<std::string, FieldPlace, std::less<>>;

// Classifies a mistake in a field that was found, and reported, when the text was read.
enum class FieldMistake {
  kUnreadable,  // it was given, but its value is invalid; the message lacks it
  // It was given twice or together with its alternative (the first counts), it may be meant by an
  // unknown name, or it is only partly set.
  kDoubtful,
};
using FieldMistakes = std::map<std::string, FieldMistake, std::less<>>;

// Describes how paths in sets reach from one file into another: `workload.plan.training.iterations`
// is a field of the file that the string field `workload.plan` names.
struct TextProtoReach {
  std::vector<std::string_view> fields;  // full names of such fields, e.g. "railyard.protos.X.y"
  std::string prefix;  // of all sets of this file: the path to it, e.g. "workload.plan."
};

// Holds a parsed file: the message, the place of each of its fields, and the mistakes in it.
struct TextProtoFile {
  std::string path;
  bool is_text = true;  // false if a program made the message; findings then have no line
  std::unique_ptr<google::protobuf::Message> message;
  std::vector<std::string> sets;
  TextProtoReach reach{};
  // By the path of one of reach.fields: the sets that apply to the file that it names, in order. A
  // later set of the field itself, or of its alternative, removes them.
  std::map<std::string, std::vector<std::string>, std::less<>> sets_of_files{};
  FieldPlaces places;
  FieldMistakes mistakes;

  SourceLocation Locate(const FieldPlace& place) const;
  // Returns true if the field of that path, or a message around it, cannot be read.
  bool IsUnreadable(std::string_view field_path) const;
  // Returns true if there is a mistake in the field, in a message around it or in a field in it, so
  // that conclusions from it would be guesses. "" is the whole file.
  bool IsDoubtful(std::string_view field_path) const;
};

// Returns the location of findings about a --set: "--set FIELD=VALUE" (truncated), without a line.
SourceLocation SetLocation(const std::string& set);

// Reads `path` into a message of `prototype`'s type and applies `sets` ("FIELD=VALUE": a scalar, an
// enum name, a quoted or bare string, "[]" to clear a repeated field, "[…]" to replace it, "{…}"
// for a message, nothing at all to remove the field; an absent field is created, an index one past
// the end appends). After mistakes that leave the rest readable, the result is the file without
// them, so that the rest can be checked too: see TextProtoFile::mistakes. Returns nullptr after a
// syntax error, more than kTextProtoFindingsMax mistakes, or if there is nothing to read: files
// over kTextProtoBytesMax, nesting over kTextProtoDepthMax and bytes that are not text are errors.
// Throws EnvironmentError only if an existing file cannot be read; a missing one is a finding.
std::unique_ptr<TextProtoFile> LoadTextProto(const std::string& path,
                                             const google::protobuf::Message& prototype,
                                             const std::vector<std::string>& sets,
                                             Diagnostics& diagnostics,
                                             const TextProtoReach& reach = {});

inline constexpr size_t kTextProtoBytesMax = size_t{64} << 20;
inline constexpr int kTextProtoDepthMax = 100;
inline constexpr int kTextProtoFindingsMax = 100;

// Returns why `path` cannot be an input file ("there is no such file"); empty if it can. It is for
// paths in a file, where the finding belongs to the field that names them.
std::string WhyNotAFile(const std::string& path);

// Represents a message inside a TextProtoFile together with its place. Loaders use it so that their
// findings are reported where the user wrote the text. It is cheap to copy; the file must outlive
// it. Field names must be those of the message's type, and the fields must be of the kind that the
// method reads; anything else is a program error.
class ProtoCursor {
 public:
  explicit ProtoCursor(const TextProtoFile& file);

  const google::protobuf::Message& message() const { return *message_; }
  // Returns the message as one of its type. Another type is a program error.
  template <typename M>
  const M& As() const {
    CheckType(*M::descriptor());
    return static_cast<const M&>(*message_);
  }
  const TextProtoFile& file() const { return *file_; }
  bool Has(const char* field) const;
  int Size(const char* repeated_field) const;
  // Returns the sub-message. Precondition: Has(field), or index < Size(field).
  ProtoCursor Child(const char* field, int index = -1) const;

  // Returns the place where the field was written, or, if it is absent, where this message starts;
  // if a --set wrote it, that --set.
  SourceLocation Where(const char* field, int index = -1) const;
  const SourceLocation& WhereSelf() const { return where_; }
  std::string Path(const char* field, int index = -1) const;  // "faults[0].until"
  const std::string& PathSelf() const { return path_; }       // "faults[0]"

  // Returns true if errors that follow from the field need no finding (TextProtoFile::IsDoubtful).
  bool IsDoubtful(const char* field, int index = -1) const;
  bool IsDoubtfulSelf() const { return file_->IsDoubtful(path_); }

  // Reports an error at a field, unless the field could not be read, because that has been
  // reported.
  void Error(Diagnostics& diagnostics, const char* field, std::string what, int index = -1) const;
  void Warning(Diagnostics& diagnostics, const char* field, std::string what, int index = -1) const;
  // Reports `missing (expected …)` at the message's own place, or nothing if the field is doubtful.
  void Missing(Diagnostics& diagnostics, const char* field, std::string_view expected) const;

  // These read string fields with a unit. An absent field has the default; an unreadable one is an
  // error and has the default.
  int64_t DurationPs(Diagnostics& diagnostics, const char* field, int64_t default_ps) const;
  uint64_t RateBps(Diagnostics& diagnostics, const char* field, uint64_t default_bps) const;
  uint64_t Bytes(Diagnostics& diagnostics, const char* field, uint64_t default_bytes) const;
  // Reads an unsigned number within [min, max]; outside, reports an error with the range and
  // returns the default.
  uint64_t Number(Diagnostics& diagnostics, const char* field, uint64_t default_value, uint64_t min,
                  uint64_t max) const;
  bool Flag(const char* field, bool default_value) const;
  std::string Text(const char* field, const std::string& default_value) const;
  // Returns a value of a repeated field.
  std::string TextAt(const char* field, int index) const;
  // Returns the path in a field. It is relative to the file in which it was written or, if a --set
  // gave it, to the current directory.
  std::string FilePath(const char* field, int index = -1) const;

 private:
  // Checks that the message is of this type.
  void CheckType(const google::protobuf::Descriptor& type) const;
  ProtoCursor() = default;
  const google::protobuf::FieldDescriptor* Field(const char* name) const;
  std::string String(const char* field, int index) const;

  const TextProtoFile* file_ = nullptr;
  const google::protobuf::Message* message_ = nullptr;
  std::string path_;
  SourceLocation where_;
};

}  // namespace railyard
