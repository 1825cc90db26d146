// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/log_line_reader.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {
namespace {

struct Piece {
  std::string text;
  bool is_continuation;
  uint64_t line;
  bool operator==(const Piece&) const = default;
};

std::vector<Piece> Pieces(const std::string& content, size_t line_bytes_max = 1000) {
  const std::string path = ::testing::TempDir() + "log_line_reader_test_" +
                           ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::ofstream(path, std::ios::binary) << content;
  std::vector<Piece> pieces;
  {
    InputStream stream(path, OpenFile(path));
    LogLineReader reader(stream, line_bytes_max);
    while (reader.Next()) {
      pieces.push_back({reader.text(), reader.is_continuation(), reader.lines_read()});
    }
    EXPECT_EQ(stream.bytes_read(), content.size());
  }
  std::filesystem::remove(path);
  return pieces;
}

TEST(LogLineReaderTest, ReadsLinesWithAndWithoutALastLineBreak) {
  const std::vector<Piece> expected = {{"a", false, 1}, {"", false, 2}, {"b", false, 3}};
  EXPECT_EQ(Pieces("a\n\nb\n"), expected);
  EXPECT_EQ(Pieces("a\n\nb"), expected);
  EXPECT_EQ(Pieces(""), std::vector<Piece>());
}

TEST(LogLineReaderTest, LeavesOutWhatIsNotText) {
  const std::string content("\x1b[1;31mred\x1b[0m\r\nho\0\0le\x1b(B\n", 26);
  const std::vector<Piece> pieces = Pieces(content);
  EXPECT_EQ(pieces, (std::vector<Piece>{{"red ", false, 1}, {"hole", false, 2}}));
}

// encoding/json of Go writes these three so, unless it is configured otherwise.
TEST(LogLineReaderTest, EscapesOfJsonAreTheirCharacters) {
  EXPECT_EQ(Pieces("{\"log\":\"1 Bytes -\\u003e Algo \\u003ca\\u003e \\u0026 \\u0041\"}\n"),
            (std::vector<Piece>{{"{\"log\":\"1 Bytes -> Algo <a> & \\u0041\"}", false, 1}}));
}

TEST(LogLineReaderTest, AnUnfinishedEscapeEndsWithItsLine) {
  EXPECT_EQ(Pieces("a\x1b[\nb\n"), (std::vector<Piece>{{"a", false, 1}, {"b", false, 2}}));
}

TEST(LogLineReaderTest, LongLinesComeInPieces) {
  EXPECT_EQ(Pieces("0123456789\nx\n", 4),
            (std::vector<Piece>{
                {"0123", false, 1}, {"4567", true, 1}, {"89", true, 1}, {"x", false, 2}}));
}

TEST(LogLineReaderTest, ALineLongerThanTheReadBufferIsOneLine) {
  const std::string line(200'000, 'x');
  EXPECT_EQ(Pieces(line + "\n" + line, 1 << 20),
            (std::vector<Piece>{{line, false, 1}, {line, false, 2}}));
}

TEST(LogLineReaderTest, AMissingFileIsAnEnvironmentError) {
  EXPECT_THROW(OpenFile("/nonexistent/x.log"), EnvironmentError);
}

}  // namespace
}  // namespace railyard
