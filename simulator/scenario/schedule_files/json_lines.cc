// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/schedule_files/json_lines.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <rapidjson/reader.h>

namespace railyard {
namespace {

// Hostile texts do not take more memory than these: longer places, and places beyond that number,
// are not noted, and deeper texts are not read on.
constexpr size_t kPlaceBytesMax = 256;
constexpr size_t kPlacesMax = size_t{1} << 20;
constexpr size_t kDepthMax = 1'000;

class LineNotes : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, LineNotes> {
 public:
  LineNotes(const std::string& text, const rapidjson::StringStream& stream)
      : text_(text), stream_(stream) {}

  // The reader calls these; it asks for their names. NOLINTBEGIN(readability-identifier-naming)
  bool Default() {
    EnterValue();
    if (levels_.size() <= 1) Note();
    return true;
  }
  bool Key(const char* key, rapidjson::SizeType length, bool /*copy*/) {
    place_.resize(levels_.back().place_bytes);
    if (!place_.empty()) place_ += '.';
    place_.append(key, std::min<size_t>(length, kPlaceBytesMax + 1));
    return true;
  }
  bool StartObject() { return Open(false); }
  bool StartArray() { return Open(true); }
  bool EndObject(rapidjson::SizeType /*count*/) { return Close(); }
  bool EndArray(rapidjson::SizeType /*count*/) { return Close(); }
  // NOLINTEND(readability-identifier-naming)

  std::unordered_map<std::string, int> Take() { return std::move(lines_); }

 private:
  struct Level {
    bool is_list = false;
    size_t place_bytes = 0;
    uint32_t next = 0;  // element of the list
  };

  void EnterValue() {
    if (levels_.empty() || !levels_.back().is_list) return;
    place_.resize(levels_.back().place_bytes);
    place_ += '[' + std::to_string(levels_.back().next++) + ']';
  }
  bool Open(bool is_list) {
    EnterValue();
    Note();
    // Deep inside, places no longer grow.
    levels_.push_back({is_list, std::min(place_.size(), kPlaceBytesMax + 1)});
    return levels_.size() < kDepthMax;
  }
  bool Close() {
    levels_.pop_back();
    return true;
  }
  void Note() {
    const size_t offset = std::min(stream_.Tell(), text_.size());
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<ptrdiff_t>(counted_),
                                         text_.begin() + static_cast<ptrdiff_t>(offset), '\n'));
    counted_ = offset;
    if (place_.size() > kPlaceBytesMax || lines_.size() >= kPlacesMax) return;
    lines_.emplace(place_, line_);
  }

  const std::string& text_;
  const rapidjson::StringStream& stream_;
  std::string place_;
  std::vector<Level> levels_;
  int line_ = 1;
  size_t counted_ = 0;  // bytes whose lines are counted
  std::unordered_map<std::string, int> lines_;
};

}  // namespace

JsonLines::JsonLines(const std::string& text) {
  rapidjson::StringStream stream(text.c_str());
  rapidjson::Reader reader;
  LineNotes notes(text, stream);
  reader.Parse<rapidjson::kParseIterativeFlag>(stream, notes);
  lines_ = notes.Take();
}

int JsonLines::LineOf(std::string place) const {
  for (;;) {
    if (const auto found = lines_.find(place); found != lines_.end()) return found->second;
    const size_t end = place.find_last_of(".[");
    if (end == std::string::npos) return 1;
    place.resize(end);
  }
}

}  // namespace railyard
