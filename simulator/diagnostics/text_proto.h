// SPDX-License-Identifier: GPL-2.0-only
// Reads protobuf text strictly: every unknown field, wrong type, unknown enum value and syntax
// error is a finding at its line and column, all of them at once; `--set` edits apply on top.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

// A parsed file: the message, and where each of its fields was written.
struct TextProtoFile {
  std::string path;
  std::unique_ptr<google::protobuf::Message> message;
  google::protobuf::TextFormat::ParseInfoTree places;
  // Field paths set on the command line ("faults[0].until") → the text of that --set.
  std::map<std::string, std::string> overrides;
};

// Reads `path` into a message of `prototype`'s type and applies `sets` ("FIELD=VALUE": a scalar, an
// enum name, a quoted or bare string, "[]" to clear a repeated field, "{…}" for a message; a field
// absent so far is created, an index one past the end appends). nullptr after any error. Files over
// 64 MiB, nesting over 100 and bytes that are not text are errors. EnvironmentError only if an
// existing file cannot be read; a missing one is a finding.
std::unique_ptr<TextProtoFile> LoadTextProto(const std::string& path,
                                             const google::protobuf::Message& prototype,
                                             const std::vector<std::string>& sets,
                                             Diagnostics& diagnostics);

// A message inside a TextProtoFile together with its place: what loaders walk. Cheap to copy; the
// file must outlive it.
class ProtoCursor {
 public:
  explicit ProtoCursor(const TextProtoFile& file);

  const google::protobuf::Message& message() const { return *message_; }
  const TextProtoFile& file() const { return *file_; }
  bool Has(const char* field) const;
  int Size(const char* repeated_field) const;
  // The sub-message; precondition: Has(field), or index < Size(field).
  ProtoCursor Child(const char* field, int index = -1) const;

  // Where the field was written; where this message starts if it was not; "--set" where it came
  // from there.
  SourceLocation Where(const char* field, int index = -1) const;
  SourceLocation WhereSelf() const { return where_; }
  std::string Path(const char* field, int index = -1) const;  // "faults[0].until"

  void Error(Diagnostics& diagnostics, const char* field, std::string what, int index = -1) const;
  void Warning(Diagnostics& diagnostics, const char* field, std::string what, int index = -1) const;
  // `missing (expected …)` at the message's own place.
  void Missing(Diagnostics& diagnostics, const char* field, std::string_view expected) const;

  // String fields with a unit. Absent: the default. Unreadable: an error, and the default.
  int64_t DurationPs(Diagnostics& diagnostics, const char* field, int64_t default_ps) const;
  uint64_t RateBps(Diagnostics& diagnostics, const char* field, uint64_t default_bps) const;
  uint64_t Bytes(Diagnostics& diagnostics, const char* field, uint64_t default_bytes) const;
  // Numbers within [min, max]; outside: an error that says the range, and the default.
  uint64_t Number(Diagnostics& diagnostics, const char* field, uint64_t default_value, uint64_t min,
                  uint64_t max) const;
  bool Flag(const char* field, bool default_value) const;
  std::string Text(const char* field, std::string default_value) const;
  // A path relative to the file it was written in.
  std::string FilePath(const char* field, int index = -1) const;

 private:
  ProtoCursor() = default;
  const TextProtoFile* file_ = nullptr;
  const google::protobuf::Message* message_ = nullptr;
  const google::protobuf::TextFormat::ParseInfoTree* places_ = nullptr;
  std::string path_;
  SourceLocation where_;
};

}  // namespace railyard
