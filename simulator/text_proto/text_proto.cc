// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/text_proto/text_proto.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <sys/stat.h>

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "simulator/text_proto/text_proto_check.h"
#include "simulator/text_proto/text_proto_set.h"

namespace railyard {
namespace {

// The whole file; nullopt after a finding.
std::optional<std::string> ReadText(const std::string& path, Diagnostics& diagnostics) {
  const std::string problem = WhyNotAFile(path);
  if (!problem.empty()) {
    diagnostics.Error({path}, "", problem);
    return std::nullopt;
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (!file) throw EnvironmentError(fmt::format("{}: {}", path, std::strerror(errno)));
  std::string text;
  std::string block(size_t{1} << 16, '\0');
  while (const size_t count = std::fread(block.data(), 1, block.size(), file.get())) {
    text.append(block, 0, count);
    if (text.size() > kTextProtoBytesMax) {
      diagnostics.Error({path, 1, 1}, "",
                        fmt::format("larger than {} MiB", kTextProtoBytesMax >> 20));
      return std::nullopt;
    }
  }
  if (std::ferror(file.get())) {
    throw EnvironmentError(fmt::format("{}: {}", path, std::strerror(errno)));
  }
  // Editors of Windows begin a text with a byte order mark, of which UTF-8 has no need.
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

bool CheckIsText(const std::string& path, std::string_view text, Diagnostics& diagnostics) {
  const size_t offset = FindNonText(text);
  if (offset == std::string_view::npos) return true;
  const std::string_view before = text.substr(0, offset);
  const auto line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  const auto is_character = [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; };
  diagnostics.Error(
      {path, static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1,
       static_cast<int>(std::count_if(before.begin() + static_cast<std::ptrdiff_t>(line_start),
                                      before.end(), is_character)) +
           1},
      "",
      fmt::format("byte 0x{:02x} is not text (expected UTF-8 without control characters)",
                  static_cast<uint8_t>(text[offset])));
  return false;
}

// Collects errors of protobuf's parser in text that our check accepted.
class ParserErrors : public google::protobuf::io::ErrorCollector {
 public:
  ParserErrors(const std::string& path, Diagnostics& diagnostics)
      : path_(path), diagnostics_(diagnostics) {}
  void AddError(int line, int column, const std::string& message) override {
    diagnostics_.Error({path_, line + 1, column + 1}, "", message);
  }

 private:
  const std::string& path_;
  Diagnostics& diagnostics_;
};

}  // namespace

SourceLocation TextProtoFile::Locate(const FieldPlace& place) const {
  if (place.set_index >= 0) return SetLocation(sets[static_cast<size_t>(place.set_index)]);
  return {path, place.line, place.column};
}

bool TextProtoFile::IsUnreadable(std::string_view field_path) const {
  while (!field_path.empty()) {
    const auto mistake = mistakes.find(field_path);
    if (mistake != mistakes.end() && mistake->second == FieldMistake::kUnreadable) return true;
    const size_t end = field_path.find_last_of(".[");
    field_path = field_path.substr(0, end == std::string_view::npos ? 0 : end);
  }
  return false;
}

bool TextProtoFile::IsDoubtful(std::string_view field_path) const {
  if (IsUnreadable(field_path)) return true;
  if (field_path.empty()) return !mistakes.empty();
  for (auto it = mistakes.lower_bound(field_path);
       it != mistakes.end() && it->first.starts_with(field_path); ++it) {
    if (IsAtOrBelow(it->first, field_path)) return true;
  }
  return false;
}

SourceLocation SetLocation(const std::string& set) {
  const std::string quoted = Quote(set);
  return {fmt::format("--set {}", std::string_view(quoted).substr(1, quoted.size() - 2))};
}

std::unique_ptr<TextProtoFile> LoadTextProto(const std::string& path,
                                             const google::protobuf::Message& prototype,
                                             const std::vector<std::string>& sets,
                                             Diagnostics& diagnostics,
                                             const TextProtoReach& reach) {
  const std::optional<std::string> text = ReadText(path, diagnostics);
  if (!text || !CheckIsText(path, *text, diagnostics)) return nullptr;
  auto file = std::make_unique<TextProtoFile>();
  file->path = path;
  file->message.reset(prototype.New());
  file->sets = sets;
  file->reach = reach;
  const TextProtoCheck check{
      .text = *text, .type = prototype.GetDescriptor(), .locate = [&file](const FieldPlace& place) {
        return file->Locate(place);
      }};
  CheckedTextProto checked = CheckTextProto(check, diagnostics);
  if (!checked.readable) return nullptr;
  file->places = std::move(checked.places);
  file->mistakes = std::move(checked.mistakes);

  // After a finding of the check, the parser's errors would only follow from it.
  Diagnostics unreported;
  ParserErrors errors(path, file->mistakes.empty() ? diagnostics : unreported);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.SetRecursionLimit(kTextProtoDepthMax);
  if (!parser.ParseFromString(*checked.readable, file->message.get())) return nullptr;

  for (size_t i = 0; i < sets.size(); ++i) ApplySet(*file, static_cast<int>(i), diagnostics);
  return file;
}

std::string WhyNotAFile(const std::string& path) {
  if (path.empty()) return "the path is empty (expected a file)";
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return "there is no such file";
    if (errno == ENAMETOOLONG) return "the file's name is too long";
    throw EnvironmentError(fmt::format("{}: {}", path, std::strerror(errno)));
  }
  if (S_ISDIR(status.st_mode)) return "that is a directory (expected a file)";
  // A pipe or a device may never end.
  if (!S_ISREG(status.st_mode)) return "that is a pipe or a device (expected a file)";
  return "";
}

}  // namespace railyard
