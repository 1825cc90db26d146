// SPDX-License-Identifier: GPL-2.0-only
// Tests where outputs go, and which files they leave alone.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"
#include "tests/support/lacking.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace fs = std::filesystem;

constexpr const char* kLog =
    "node0:1:1 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId "
    "1000 commId 0xa - Init COMPLETE\n"
    "node0:1:1 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 4 datatype 7 op "
    "0 root 0 comm 0x5 [nranks=2] stream 0x7\n";

class OutputTest : public ProgramTest {
 protected:
  // Every command that writes a file, to `path`.
  std::vector<std::vector<std::string>> Writers(const std::string& path) const {
    const std::string log = scratch_.Write("a.log", kLog);
    const std::string plan = RAILYARD_SOURCE_DIR "/workloads/examples/dlrm_criteo_32.textproto";
    std::vector<std::vector<std::string>> writers = {
        {"import", "--format", "nccl-log", log, "-o", path, "--report", scratch_.Path("r.txt")},
        {"import", "--format", "nccl-log", log, "-o", scratch_.Path("t"), "--report", path},
        {"synth", plan, "-o", path},
        {"estimate", plan, "--pairs", path},
        {"perf", "--collective", "all_reduce", "--fabric", "h100-1x8", "-b", "1K", "-e", "1K", "-J",
         path}};
    for (const char* option :
         {"--json", "--graphml", "--text", "--dot", "--picture", "--ns3", "--nccl"}) {
      writers.push_back({"topo", "show", "h100-2x8-rail-optimized", option, path});
    }
    for (const char* option : {"--json", "--goal"}) {
      writers.push_back({"schedule", "--collective", "all_reduce", "--bytes", "1K", "--fabric",
                         "h100-1x8", "--algo", "Ring", option, path});
    }
    return writers;
  }

  // The exit status of `railyard` in a shell, behind `before`.
  int Shell(const std::string& before, const std::string& arguments) const {
    const std::string command = fmt::format("cd {} && {} {} {}", scratch_.Path(""), before,
                                            "exec " RAILYARD_BINARY_DIR "/bin/railyard", arguments);
    const int status = std::system(("sh -c '" + command + "'").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
};

// As root a rename over a device node would succeed.
TEST_F(OutputTest, ATraceOnStandardOutputIsAloneThere) {
  const std::string plan = RAILYARD_SOURCE_DIR "/workloads/examples/dlrm_criteo_32.textproto";
  const std::string log = scratch_.Write("a.log", kLog);
  const std::string trace = scratch_.Path("t");
  ASSERT_EQ(Railyard({"synth", plan, "-o", trace}).status, 0);
  const std::vector<std::vector<std::string>> writers = {
      {"synth", plan, "-o", "-"},
      {"trace", "cut", trace, "--ranks", "0-3", "-o", "-"},
      {"import", "--format", "nccl-log", log, "-o", "-"}};
  for (const std::vector<std::string>& writer : writers) {
    const ProgramExit exit = Railyard(writer);
    ASSERT_EQ(exit.status, 0) << exit.errors;
    EXPECT_EQ(Railyard({"trace", "show", scratch_.Write("again", exit.output)}).status, 0)
        << writer.front();
    EXPECT_THAT(exit.errors, HasSubstr("trace: -"));
  }
  EXPECT_FALSE(fs::exists("-.report.txt"));
  EXPECT_EQ(Railyard({"trace", "export", trace, "--format", "chakra", "-o", "-"}).status, 2);
}

TEST_F(OutputTest, ADeviceIsWrittenToAndStays) {
  std::string device = scratch_.Path("null");
  if (mknod(device.c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) {
    if (access("/dev", W_OK) == 0)
      RAILYARD_LACK("no device can be made, and the machine's be replaced");
    device = "/dev/null";
  }
  for (const std::vector<std::string>& writer : Writers(device)) {
    const ProgramExit exit = Railyard(writer);
    EXPECT_EQ(exit.status, 0) << fmt::format("{}", fmt::join(writer, " ")) << "\n" << exit.errors;
    EXPECT_TRUE(fs::is_character_file(device)) << fmt::format("{}", fmt::join(writer, " "));
  }
}

TEST_F(OutputTest, APipeGetsWhatAFileWould) {
  const std::string pipe = scratch_.Path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(
      Shell("{ timeout 10 cat pipe > got & } &&", "topo show h100-1x8 --json pipe > /dev/null"), 0);
  ASSERT_EQ(Railyard({"topo", "show", "h100-1x8", "--json", scratch_.Path("file")}).status, 0);
  for (int i = 0;
       i < 500 && ReadText(scratch_.Path("got")).size() < ReadText(scratch_.Path("file")).size();
       ++i) {
    usleep(10'000);
  }
  EXPECT_EQ(ReadText(scratch_.Path("got")), ReadText(scratch_.Path("file")));
  EXPECT_TRUE(fs::is_fifo(pipe));
}

// "-" and /dev/stdout are one thing, whatever is behind it.
TEST_F(OutputTest, StandardOutputIsNotReplaced) {
  ASSERT_EQ(Railyard({"topo", "show", "h100-1x8", "--json", scratch_.Path("file")}).status, 0);
  EXPECT_EQ(Shell("", "topo show h100-1x8 --json - > dash"), 0);
  EXPECT_EQ(ReadText(scratch_.Path("dash")), ReadText(scratch_.Path("file")));
  EXPECT_EQ(Shell("", "topo show h100-1x8 --json /dev/stdout > standard"), 0);
  EXPECT_THAT(ReadText(scratch_.Path("standard")),
              HasSubstr("Preflight: nothing to report\n" + ReadText(scratch_.Path("file"))));
}

TEST_F(OutputTest, ALinkLeadsToTheFile) {
  fs::create_symlink("target", scratch_.Path("link"));
  ASSERT_EQ(Railyard({"topo", "show", "h100-1x8", "--json", scratch_.Path("link")}).status, 0);
  EXPECT_TRUE(fs::is_symlink(scratch_.Path("link")));
  EXPECT_THAT(ReadText(scratch_.Path("target")), HasSubstr("\"name\""));
}

TEST_F(OutputTest, WhatIsReadIsNotOverwritten) {
  const std::string text = "rail_optimized { servers: 2 }";
  const std::string fabric = scratch_.Write("f.textproto", text);
  const std::string scenario =
      scratch_.Write("s.textproto", RailOptimized(2) + Program("ALL_REDUCE", "1MiB"));
  const std::string schedule = scratch_.Path("f.textproto");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"topo", "show", fabric, "--text", scratch_.Path("./f.textproto")},
        {"topo", "compare", fabric, fabric, "--workload", scenario, "--json", fabric},
        {"schedule", "--collective", "all_reduce", "--bytes", "1K", "--fabric", fabric, "--json",
         fabric},
        {"perf", "--collective", "all_reduce", "--fabric", fabric, "-J", fabric}}) {
    const ProgramExit exit = Railyard(command);
    EXPECT_EQ(exit.status, 2);
    EXPECT_THAT(exit.errors, HasSubstr("is read by this command (expected another file)"));
    EXPECT_EQ(ReadText(fabric), text);
  }
  const ProgramExit twice =
      Railyard({"topo", "show", fabric, "--json", scratch_.Path("o"), "--dot", scratch_.Path("o")});
  EXPECT_EQ(twice.status, 2);
  EXPECT_THAT(twice.errors, HasSubstr("is what --json writes (expected another file)"));
}

// A file-size limit comes where a full disk would, and with a signal besides.
TEST_F(OutputTest, ADiskThatIsFullKeepsNothingUnfinished) {
  const std::string log = scratch_.Write("a.log", kLog);
  scratch_.Write("s.textproto", RailOptimized(4) + Program("ALL_REDUCE", "1MiB"));
  fs::create_directory(scratch_.Path("o"));
  for (const std::string arguments :
       {"topo show h100-4x8-rail-optimized --graphml o/f.graphml",
        "schedule --collective all_reduce --bytes 1M --fabric h100-1x8 --json o/f.json",
        "run s.textproto --out o/result --quiet", "run s.textproto --out o/a/b --quiet"}) {
    EXPECT_EQ(Shell("ulimit -f 1;", arguments + " > /dev/null 2> e"), 1) << arguments;
    EXPECT_THAT(ReadText(scratch_.Path("e")), HasSubstr("railyard: error: ")) << arguments;
    EXPECT_TRUE(fs::is_empty(scratch_.Path("o"))) << arguments;
  }
}

TEST_F(OutputTest, APlaceThatCannotBeIsRefusedBeforeTheSimulation) {
  // Minutes of simulation.
  const std::string scenario =
      scratch_.Write("s.textproto", RailOptimized(4) + Program("ALL_REDUCE", "64GiB"));
  fs::create_symlink("nothing", scratch_.Path("dangling"));
  for (const std::string& out : {scratch_.Path("dangling"), std::string("/proc/x"),
                                 std::string("/sys/x"), scratch_.Path(std::string(256, 'x'))}) {
    const ProgramExit exit = RunningProgram(scratch_, {"run", scenario, "--out", out}).Wait(20);
    EXPECT_TRUE(exit.status == 1 || exit.status == 2) << exit.status;
    EXPECT_EQ(std::count(exit.errors.begin(), exit.errors.end(), '\n'), 1) << exit.errors;
  }
  const ProgramExit perf =
      RunningProgram(scratch_, {"perf", "--collective", "all_reduce", "--fabric", "dgx-h100", "-b",
                                "64G", "-e", "64G", "-J", scratch_.Path("no/such/place")})
          .Wait(20);
  EXPECT_EQ(perf.status, 1);
  EXPECT_EQ(perf.output, "");
}

// A name as long as a file system allows is no reason to refuse it.
TEST_F(OutputTest, TheLongestNameIsFine) {
  const std::string name(255, 'x');
  const std::string scenario =
      scratch_.Write("s.textproto", RailOptimized(2) + Program("ALL_REDUCE", "1MiB"));
  EXPECT_EQ(Railyard({"run", scenario, "--out", scratch_.Path(name)}).status, 0);
  EXPECT_TRUE(fs::exists(scratch_.Path(name + "/summary.json")));
  EXPECT_EQ(
      Railyard({"topo", "show", "h100-1x8", "--json", scratch_.Path("y" + name.substr(1))}).status,
      0);
}

TEST_F(OutputTest, StreamsThatTakeNothingEndNoCommandBySignal) {
  EXPECT_EQ(Shell("", "help models > /dev/full 2> e"), 1);
  EXPECT_EQ(ReadText(scratch_.Path("e")),
            "railyard: error: standard output: No space left on device\n");
  EXPECT_EQ(Shell("", "validate nosuch 2>&-"), 2);
  EXPECT_EQ(Shell("", "validate nosuch 2> /dev/full"), 1);
  EXPECT_EQ(Shell("", "list presets >&- 2> e"), 1);
  EXPECT_THAT(ReadText(scratch_.Path("e")), HasSubstr("railyard: error: standard output: "));
}

}  // namespace
}  // namespace railyard::testing
