// SPDX-License-Identifier: GPL-2.0-only
// Reads protobuf text strictly: every unknown field, wrong type, unknown enum value and syntax
// error is a finding at its line and column, all of them at once; `--set` edits apply on top.
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

// The place where a field was written: in the file (lines and columns from 1; a column is a
// character, a tab counts as one), or in a --set.
struct FieldPlace {
  int line = 0;
  int column = 0;
  int set_index = -1;  // into TextProtoFile::sets; -1: in the file
};

// Keyed by the field's path, as in --set: "faults[0].until".
using FieldPlaces = std::map<std::string, FieldPlace, std::less<>>;

// A mistake in a field that was found, and reported, when the text was read.
enum class FieldMistake {
  kUnreadable,  // it was given, but its value cannot be had: the message is without it
  // Given twice or beside its alternative (what came first stands), or what an unknown name may
  // have meant, or something about it could not be set.
  kDoubtful,
};
using FieldMistakes = std::map<std::string, FieldMistake, std::less<>>;

// The reach of sets' paths from one file into another: `workload.plan.training.iterations` is a
// field of the file that the string field `workload.plan` names.
struct TextProtoReach {
  std::vector<std::string_view> fields;  // of that kind, by full names, e.g. "railyard.protos.X.y"
  std::string prefix;  // of all sets of this file: how it was reached, e.g. "workload.plan."
};

// A parsed file: the message, where each of its fields was written, and what in it was wrong.
struct TextProtoFile {
  std::string path;
  bool is_text = true;  // false: a program made the message; findings about it have no line
  std::unique_ptr<google::protobuf::Message> message;
  std::vector<std::string> sets;
  TextProtoReach reach{};
  // Keyed by the path of one of reach.fields: the sets that go on into the file it names, in order.
  // A later set of the field itself, or of its alternative, drops them.
  std::map<std::string, std::vector<std::string>, std::less<>> sets_of_files{};
  FieldPlaces places;
  FieldMistakes mistakes;

  SourceLocation Locate(const FieldPlace& place) const;
  // Whether the value of the field of that path cannot be had: its own or that of what it is in.
  bool IsUnreadable(std::string_view field_path) const;
  // Whether anything is wrong with the field, with what it is in or with what is in it, so that
  // conclusions from it would be guesses. "" is the whole file.
  bool IsDoubtful(std::string_view field_path) const;
};

// The location of findings about a --set: "--set FIELD=VALUE" (cut to a bearable length), no line.
SourceLocation SetLocation(const std::string& set);

// Reads `path` into a message of `prototype`'s type and applies `sets` ("FIELD=VALUE": a scalar, an
// enum name, a quoted or bare string, "[]" to clear a repeated field, "[…]" to replace it, "{…}"
// for a message, nothing at all to remove the field; a field absent so far is created, an index one
// past the end appends). After mistakes that leave the rest readable, the file without them, so
// that the rest can be checked too: see TextProtoFile::mistakes. nullptr after a syntax error, more
// than kTextProtoFindingsMax mistakes, or if there is nothing to read: files over
// kTextProtoBytesMax, nesting over kTextProtoDepthMax and bytes that are not text are errors.
// EnvironmentError only if an existing file cannot be read; a missing one is a finding.
std::unique_ptr<TextProtoFile> LoadTextProto(const std::string& path,
                                             const google::protobuf::Message& prototype,
                                             const std::vector<std::string>& sets,
                                             Diagnostics& diagnostics,
                                             const TextProtoReach& reach = {});

inline constexpr size_t kTextProtoBytesMax = size_t{64} << 20;
inline constexpr int kTextProtoDepthMax = 100;
inline constexpr int kTextProtoFindingsMax = 100;

// Why `path` cannot be an input file ("there is no such file"), empty if it can. For paths
// that stand in a file: the finding belongs to the field that names it.
std::string WhyNotAFile(const std::string& path);

// A message inside a TextProtoFile together with its place: what loaders walk, so that whatever
// they find wrong is reported where the user wrote it. Cheap to copy; the file must outlive it.
// Field names must be those of the message's type, and of the kind the method is for: anything else
// is a program error.
class ProtoCursor {
 public:
  explicit ProtoCursor(const TextProtoFile& file);

  const google::protobuf::Message& message() const { return *message_; }
  const TextProtoFile& file() const { return *file_; }
  bool Has(const char* field) const;
  int Size(const char* repeated_field) const;
  // The sub-message; precondition: Has(field), or index < Size(field).
  ProtoCursor Child(const char* field, int index = -1) const;

  // Returns the place where the field was written, or, if absent, where this message starts; the
  // --set if it came from there.
  SourceLocation Where(const char* field, int index = -1) const;
  const SourceLocation& WhereSelf() const { return where_; }
  std::string Path(const char* field, int index = -1) const;  // "faults[0].until"
  const std::string& PathSelf() const { return path_; }       // "faults[0]"

  // True if errors that follow from the field need no finding (TextProtoFile::IsDoubtful).
  bool IsDoubtful(const char* field, int index = -1) const;
  bool IsDoubtfulSelf() const { return file_->IsDoubtful(path_); }

  // Nothing is reported about a field that could not be read, for that has been.
  void Error(Diagnostics& diagnostics, const char* field, std::string what, int index = -1) const;
  void Warning(Diagnostics& diagnostics, const char* field, std::string what, int index = -1) const;
  // `missing (expected …)` at the message's own place; nothing where the field is doubtful.
  void Missing(Diagnostics& diagnostics, const char* field, std::string_view expected) const;

  // String fields with a unit. Absent: the default. Unreadable: an error, and the default.
  int64_t DurationPs(Diagnostics& diagnostics, const char* field, int64_t default_ps) const;
  uint64_t RateBps(Diagnostics& diagnostics, const char* field, uint64_t default_bps) const;
  uint64_t Bytes(Diagnostics& diagnostics, const char* field, uint64_t default_bytes) const;
  // Unsigned numbers within [min, max]; outside: an error that says the range, and the default.
  uint64_t Number(Diagnostics& diagnostics, const char* field, uint64_t default_value, uint64_t min,
                  uint64_t max) const;
  bool Flag(const char* field, bool default_value) const;
  std::string Text(const char* field, std::string default_value) const;
  // A path relative to the file it was written in; one given with --set is relative to the current
  // directory.
  std::string FilePath(const char* field, int index = -1) const;

 private:
  ProtoCursor() = default;
  const google::protobuf::FieldDescriptor* Field(const char* name) const;
  std::string String(const char* field, int index) const;

  const TextProtoFile* file_ = nullptr;
  const google::protobuf::Message* message_ = nullptr;
  std::string path_;
  SourceLocation where_;
};

}  // namespace railyard
