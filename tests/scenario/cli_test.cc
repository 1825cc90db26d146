// SPDX-License-Identifier: GPL-2.0-only
// The command line up to time zero: what it accepts, what it refuses, and with which exit status.
#include "simulator/cli/cli.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class CliTest : public ::testing::Test {
 protected:
  CliTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "cannot create " << pattern;
    directory_ = pattern;
  }
  ~CliTest() override {
    std::error_code error;
    std::filesystem::remove_all(directory_, error);
  }

  std::string Path(const std::string& name) const { return (directory_ / name).string(); }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name, std::ios::binary) << text;
    return Path(name);
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  int Railyard(const std::vector<std::string>& arguments) {
    std::vector<const char*> argv = {"railyard"};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int status = RunCli(static_cast<int>(argv.size()), argv.data());
    output_ = ::testing::internal::GetCapturedStdout();
    errors_ = ::testing::internal::GetCapturedStderr();
    return status;
  }

  std::filesystem::path directory_;
  std::string output_;
  std::string errors_;
};

constexpr const char* kScenario =
    "fabric { rail_optimized { servers: 2 } }\n"
    "workload { program { collectives { kind: ALL_REDUCE bytes: \"1MiB\" } } }\n";

constexpr const char* kLog =
    "node0:1:1 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId "
    "1000 commId 0xa - Init COMPLETE\n"
    "node0:1:1 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 4 datatype 7 op "
    "0 "
    "root 0 comm 0x5 [nranks=2] stream 0x7\n";

TEST_F(CliTest, HelpNamesEveryCommandThereIs) {
  EXPECT_EQ(Railyard({"--help"}), kExitDone);
  for (const char* command : {"run", "validate", "import"}) {
    EXPECT_THAT(output_, HasSubstr(std::string("\n  ") + command + " "));
  }
  EXPECT_EQ(Railyard({"run", "--help"}), kExitDone);
  EXPECT_EQ(Railyard({"--version"}), kExitDone);
  EXPECT_THAT(output_, ::testing::MatchesRegex("railyard [0-9]+\\.[0-9]+\\.[0-9]+ \\((commit "
                                               "[0-9a-f]{12}(-dirty)?, )?ns-3\\.[0-9]+\\)\n"));
}

TEST_F(CliTest, NoCommandAndUnknownOnesAreMistakes) {
  EXPECT_EQ(Railyard({}), kExitInput);
  EXPECT_THAT(errors_, HasSubstr("Usage: railyard"));
  EXPECT_EQ(Railyard({"rnu"}), kExitInput);
  EXPECT_EQ(errors_, "railyard: error: unknown command \"rnu\" (did you mean \"run\"?)\n");
  EXPECT_EQ(Railyard({"dance"}), kExitInput);
  EXPECT_EQ(
      errors_,
      "railyard: error: unknown command \"dance\" (expected run, validate, import, trace, "
      "study, synth, estimate, topo, schedule, perf, fidelity, report, compare, list, help or "
      "completion)\n");
  EXPECT_EQ(Railyard({"--quiet"}), kExitInput);
  EXPECT_EQ(
      errors_,
      "railyard: error: unknown option \"--quiet\" (expected --version or --help)\n"
      "railyard: error: a command is missing (expected run, validate, import, trace, "
      "study, synth, estimate, topo, schedule, perf, fidelity, report, compare, list, help or "
      "completion)\n");
}

TEST_F(CliTest, HelpListsModelsWithUnitsDefaultsAndFields) {
  EXPECT_EQ(Railyard({"help"}), kExitDone);
  EXPECT_THAT(output_, HasSubstr("Usage: railyard"));
  EXPECT_EQ(Railyard({"help", "models"}), kExitDone);
  for (const char* model :
       {"Cubic", "Dcqcn", "Dctcp", "FabricNetwork", "Hpcc", "Nic", "Swift", "Switch", "Timely"}) {
    EXPECT_THAT(output_, HasSubstr("railyard::" + std::string(model) + "\n"));
  }
  EXPECT_EQ(Railyard({"help", "models", "Switch"}), kExitDone);
  EXPECT_THAT(output_, HasSubstr("  EcnPmax = 0.2 (0 to 1); in a scenario: switch.ecn_pmax\n"));
  EXPECT_THAT(output_, ::testing::Not(HasSubstr("railyard::Nic")));
  EXPECT_EQ(Railyard({"help", "models", "railyard::Dcqcn"}), kExitDone);
  EXPECT_THAT(output_, HasSubstr("  AdditiveIncreaseBps = 40 Mbps (0 bps or more); in a scenario: "
                                 "nic.congestion_control.dcqcn.additive_increase\n"));
  EXPECT_EQ(Railyard({"help", "models", "FabricNetwork"}), kExitDone);
  EXPECT_THAT(output_, HasSubstr("  trace source PauseSent: railyard::PauseSentCallback\n"));
  EXPECT_EQ(Railyard({"help", "models", "Dcqc"}), kExitInput);
  EXPECT_EQ(errors_, "railyard: error: unknown model \"Dcqc\" (did you mean \"Dcqcn\"?)\n");
}

TEST_F(CliTest, UnknownOptionsAndArgumentsAreMistakes) {
  EXPECT_EQ(Railyard({"run", "a", "--ot", "b"}), kExitInput);
  EXPECT_EQ(errors_, "railyard: error: unknown option \"--ot\" (did you mean \"--out\"?)\n");
  EXPECT_EQ(Railyard({"run", "a", "--qiet=1"}), kExitInput);
  EXPECT_EQ(errors_, "railyard: error: unknown option \"--qiet\" (did you mean \"--quiet\"?)\n");
  EXPECT_EQ(Railyard({"run", "a", "b"}), kExitInput);
  EXPECT_EQ(errors_, "railyard: error: unexpected argument \"b\"\n");
  EXPECT_EQ(Railyard({"run"}), kExitInput);
  EXPECT_EQ(errors_, "railyard: error: SCENARIO is required\n");
  EXPECT_EQ(Railyard({"run", "a", "--seed", "-3"}), kExitInput);
  EXPECT_EQ(errors_,
            "railyard: error: --seed: \"-3\" is not a whole number, 0 to 18446744073709551615\n");
}

TEST_F(CliTest, EmptyPathsAndAMissingWorkingDirectoryAreNamed) {
  EXPECT_EQ(Railyard({"validate", ""}), kExitInput);
  EXPECT_EQ(errors_, "error: the path is empty (expected a file)\n");
  for (const char* command : {"run", "study"}) {
    EXPECT_EQ(Railyard({command, "a", "--out", ""}), kExitInput);
    EXPECT_EQ(errors_, "railyard: error: --out: the path is empty\n");
  }
  const std::string scenario = Write("s.textproto", kScenario);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::create_directory(Path("gone"));
  std::filesystem::current_path(Path("gone"));
  std::filesystem::remove(Path("gone"));
  EXPECT_EQ(Railyard({"validate", "s.textproto"}), kExitEnvironment);
  EXPECT_THAT(errors_, HasSubstr("railyard: error: the working directory is gone\n"));
  EXPECT_EQ(Railyard({"run", scenario}), kExitEnvironment);
  EXPECT_THAT(errors_, HasSubstr("railyard: error: the working directory is gone\n"));
  EXPECT_EQ(Railyard({"validate", scenario}), kExitDone);
  std::filesystem::current_path(before);
}

// Wherever a mistyped word stands, it is named, with what its own command would take.
TEST_F(CliTest, MistakesBehindSubcommandsAreNamed) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"topo", "show", "h100-1x8", "--foo"},
        {"topo", "list", "--foo"},
        {"topo", "compare", "h100-1x8", "h100-1x8", "--workload", "w", "--foo"},
        {"help", "models", "--foo"},
        {"list", "models", "--foo"},
        {"topo", "--foo"},
        {"--foo", "topo", "list"}}) {
    EXPECT_EQ(Railyard(arguments), kExitInput);
    EXPECT_THAT(errors_, StartsWith("railyard: error: unknown option \"--foo\" ("));
  }
  EXPECT_EQ(Railyard({"topo", "show", "h100-1x8", "--jsn=-"}), kExitInput);
  EXPECT_EQ(errors_, "railyard: error: unknown option \"--jsn\" (did you mean \"--json\"?)\n");
  EXPECT_EQ(Railyard({"topo", "list", "all"}), kExitInput);
  EXPECT_EQ(errors_, "railyard: error: unexpected argument \"all\"\n");
  EXPECT_EQ(Railyard({"help", "modles"}), kExitInput);
  EXPECT_EQ(errors_, "railyard: error: unknown command \"modles\" (did you mean \"models\"?)\n");
  EXPECT_EQ(Railyard({"topo", "shwo", "h100-1x8"}), kExitInput);
  EXPECT_THAT(errors_, StartsWith("railyard: error: unknown command \"shwo\" (did you mean "));
  EXPECT_EQ(Railyard({"topo"}), kExitInput);
  EXPECT_EQ(errors_, "railyard: error: a command is missing (expected list, show or compare)\n");
  EXPECT_EQ(Railyard({"run", "--qiet"}), kExitInput);
  EXPECT_EQ(errors_,
            "railyard: error: unknown option \"--qiet\" (did you mean \"--quiet\"?)\n"
            "railyard: error: SCENARIO is required\n");
}

TEST_F(CliTest, WhatHasANameIsListed) {
  const std::vector<std::pair<std::string, std::string>> listed = {
      {"platforms", "dgx-1-v100 "},
      {"presets", "h100-1x8 "},
      {"models", "gpt-2-xl "},
      {"formats", "nccl-log "},
      {"scenarios", "/fault_flap.textproto "}};
  for (const auto& [what, name] : listed) {
    EXPECT_EQ(Railyard({"list", what}), kExitDone) << errors_;
    EXPECT_THAT(output_, HasSubstr(name));
    EXPECT_EQ(errors_, "");
  }
  // A scenario's name is what the other commands take.
  for (std::string rest = output_; !rest.empty(); rest.erase(0, rest.find('\n') + 1)) {
    EXPECT_TRUE(std::filesystem::is_regular_file(rest.substr(0, rest.find("  ")))) << rest;
  }
  EXPECT_EQ(Railyard({"list", "platform"}), kExitInput);
  EXPECT_THAT(errors_, HasSubstr("(did you mean \"platforms\"?)"));
}

TEST_F(CliTest, TopoShowTakesWhateverNamesAFabric) {
  EXPECT_EQ(Railyard({"topo", "show", "dgx-1-v100"}), kExitDone) << errors_;
  EXPECT_THAT(output_, HasSubstr(" 8 GPUs in 1 server, 0 NVSwitches, 4 NICs, "));
  // Full bisection: 8 x 400 Gb/s of two servers to those of the others.
  EXPECT_EQ(Railyard({"topo", "show", "dgx-h100", "--nodes", "4"}), kExitDone) << errors_;
  EXPECT_THAT(output_, HasSubstr(" 32 GPUs in 4 servers, "));
  EXPECT_THAT(output_,
              HasSubstr("Bisection (maximum flow, first half of the servers to the other): "
                        "800 GB/s"));
  EXPECT_EQ(Railyard({"topo", "show", Write("ok.textproto", kScenario)}), kExitDone) << errors_;
  EXPECT_THAT(output_, HasSubstr(" 16 GPUs in 2 servers, "));
  EXPECT_EQ(Railyard({"topo", "show", "h100-1x8", "--nodes", "2"}), kExitInput);
  EXPECT_THAT(errors_, StartsWith("--nodes: error: means something for a platform only"));
  EXPECT_EQ(Railyard({"topo", "show", "generic"}), kExitInput);
  EXPECT_THAT(errors_, StartsWith("generic: error: leaves gpus, "));
  EXPECT_EQ(Railyard({"perf", "--collective", "all_reduce", "--fabric", Path("ok.textproto")}),
            kExitInput);
  EXPECT_THAT(errors_, HasSubstr("ok.textproto:1:1: error: is a scenario (expected a fabric"));
}

// Without the second class behind its wrap-around cables a torus can deadlock (Dally and Seitz).
TEST_F(CliTest, AFabricWithAnErrorIsDescribedAndRefused) {
  EXPECT_EQ(Railyard({"topo", "show", "torus-2d-8x8", "--text", Path("torus.textproto")}),
            kExitDone);
  std::string text = Read(Path("torus.textproto"));
  const std::string avoidance = "deadlock_avoidance: DATELINE";
  ASSERT_THAT(text, HasSubstr(avoidance));
  text.erase(text.find(avoidance), avoidance.size());
  const std::string circular = Write("circular.textproto", text);
  EXPECT_EQ(Railyard({"topo", "show", circular, "--json", Path("f.json")}), kExitInput);
  EXPECT_THAT(output_, HasSubstr("error: PFC_DEADLOCK: "));
  EXPECT_THAT(Read(Path("f.json")), HasSubstr("PFC_DEADLOCK"));

  const auto validate = [&](const std::string& network) {
    const std::string scenario =
        "fabric { file: \"circular.textproto\" }\n" + network +
        "workload { program { collectives { kind: ALL_REDUCE bytes: \"1MiB\" } } }\n";
    EXPECT_EQ(Railyard({"validate", Write("s.textproto", scenario)}), kExitDone) << errors_;
    return errors_;
  };
  EXPECT_THAT(validate(""), HasSubstr("s.textproto:1:1: warning: fabric: packets can wait for each "
                                      "other in a circle, which ends no more: "));
  EXPECT_EQ(validate("network { network_flow_control: NONE }\n"), "");
}

TEST_F(CliTest, NicsOverWhatADragonflysSwitchesHaveCountsBothOfTheirTiers) {
  EXPECT_EQ(Railyard({"topo", "show", "h100-9x8-dragonfly"}), kExitDone) << errors_;
  EXPECT_THAT(output_, HasSubstr("  NIC_LEAF over LOCAL and GLOBAL: at most "));
}

TEST_F(CliTest, ValidateSaysWhatIsThere) {
  const std::string path = Write("ok.textproto", kScenario);
  EXPECT_EQ(Railyard({"validate", path}), kExitDone);
  EXPECT_EQ(output_, path + ": valid: 16 ranks on 16 GPUs, 1 collective, 0 faults\n");
  EXPECT_EQ(errors_, "");
}

TEST_F(CliTest, ValidateLooksAtEveryFileAndFailsIfOneIsWrong) {
  const std::string right = Write("ok.textproto", kScenario);
  const std::string wrong = Write("wrong.textproto", std::string(kScenario) + "sede: 1\n");
  EXPECT_EQ(Railyard({"validate", wrong, "/no/such/file", right}), kExitInput);
  EXPECT_EQ(errors_, wrong +
                         ":3:1: error: sede: unknown field \"sede\" (did you mean \"seed\"?)\n"
                         "/no/such/file: error: there is no such file\n");
  EXPECT_THAT(output_, StartsWith(right + ": valid"));
}

TEST_F(CliTest, RunOfAWrongScenarioWritesNothing) {
  const std::string wrong = Write("wrong.textproto", std::string(kScenario) + "sede: 1\n");
  EXPECT_EQ(Railyard({"run", wrong, "--quiet", "--out", Path("out")}), kExitInput);
  EXPECT_EQ(errors_,
            wrong + ":3:1: error: sede: unknown field \"sede\" (did you mean \"seed\"?)\n");
  EXPECT_EQ(output_, "");
  EXPECT_FALSE(std::filesystem::exists(Path("out")));
}

TEST_F(CliTest, SetsMayBeRepeatedAndStandAnywhere) {
  const std::string path = Write("ok.textproto", kScenario);
  EXPECT_EQ(Railyard({"run", "--set", "seed=x", "--set=faults[0].kind=UP", path, "--set", "nam=1"}),
            kExitInput);
  EXPECT_EQ(errors_,
            "--set seed=x: error: seed: \"x\" is not a whole number, 0 to 18446744073709551615\n"
            "--set faults[0].kind=UP: error: faults[0].kind: unknown \"UP\" (expected LINK_DOWN, "
            "SWITCH_REBOOT, DEGRADE, LOSS, DELAY, PAUSE_STORM, BACKGROUND_LOAD or STRAGGLER)\n"
            "--set nam=1: error: nam: unknown field \"nam\" (did you mean \"name\"?)\n");
}

TEST_F(CliTest, RunRefusesADirectoryWithOtherThingsInIt) {
  const std::string path = Write("ok.textproto", kScenario);
  std::filesystem::create_directories(Path("mine"));
  Write("mine/thesis.tex", "years of work");
  EXPECT_EQ(Railyard({"run", path, "--out", Path("mine")}), kExitInput);
  EXPECT_THAT(errors_, StartsWith("--out " + Path("mine") + ": error: refusing to "));
  EXPECT_EQ(Read(Path("mine/thesis.tex")), "years of work");
}

TEST_F(CliTest, ImportWritesTraceAndReport) {
  const std::string log = Write("a.log", kLog);
  EXPECT_EQ(Railyard({"import", "--format", "nccl-log", log, "-o", Path("a.trace")}), kExitDone);
  EXPECT_EQ(errors_, "");
  EXPECT_THAT(output_,
              StartsWith("1 calls seen in 2 lines of 1 file: 1 imported, 0 dropped.\n"
                         "1 calls of 1 missing ranks are reconstructed from the others.\n"));
  EXPECT_THAT(output_, HasSubstr("trace: " + Path("a.trace") + " (2 ranks)\n"));
  EXPECT_THAT(output_, HasSubstr("report: " + Path("a.trace.report.txt") + "\n"));
  EXPECT_TRUE(std::filesystem::exists(Path("a.trace")));
  EXPECT_TRUE(std::filesystem::exists(Path("a.trace.report.txt")));
}

TEST_F(CliTest, ImportWithNothingToImportWritesTheReportOnly) {
  const std::string log = Write("a.log", kLog);
  EXPECT_EQ(Railyard({"import", "--format", "nccl-log", log, "-o", Path("a.trace"), "--report",
                      Path("r.txt"), "--missing-ranks", "refuse"}),
            kExitInput);
  EXPECT_THAT(output_, HasSubstr("No trace is written: no call can be imported.\n"));
  EXPECT_FALSE(std::filesystem::exists(Path("a.trace")));
  EXPECT_TRUE(std::filesystem::exists(Path("r.txt")));
}

TEST_F(CliTest, ImportRefusesWhatItDoesNotUnderstand) {
  const std::string log = Write("a.log", kLog);
  EXPECT_EQ(
      Railyard({"import", "--format", "nccl-lgo", log, "-o", log, "--missing-ranks", "guess",
                "--rank-map", "node0=1", "--rank-map", "node0:x=1", "--rank-map", "node0:1:2:3=4"}),
      kExitInput);
  EXPECT_EQ(errors_,
            "--format: error: unknown format \"nccl-lgo\" (did you mean \"nccl-log\"?)\n"
            "--missing-ranks: error: unknown \"guess\" (expected reconstruct or refuse)\n"
            "--rank-map node0=1: error: expected HOST:PID=RANK or HOST:PID:DEVICE=RANK\n"
            "--rank-map node0:x=1: error: expected HOST:PID=RANK or HOST:PID:DEVICE=RANK\n"
            "--rank-map node0:1:2:3=4: error: expected HOST:PID=RANK or HOST:PID:DEVICE=RANK\n"
            "--output: error: \"" +
                log + "\" is read by this command (expected another file)\n");
  EXPECT_EQ(Read(log), kLog);
}

TEST_F(CliTest, ImportReadsFilesAndDirectoriesAndNothingElse) {
  EXPECT_EQ(Railyard({"import", "--format", "nccl-log", "/no/such/log", "/dev/zero",
                      directory_.string(), "-o", Path("t")}),
            kExitInput);
  EXPECT_EQ(errors_,
            "/no/such/log: error: there is no such file\n"
            "/dev/zero: error: that is a pipe or a device (expected a file)\n");
  EXPECT_FALSE(std::filesystem::exists(Path("t.report.txt")));
}

TEST_F(CliTest, ImportNeverWritesOverItsInputs) {
  const std::string log = Write("a.log", kLog);
  EXPECT_EQ(Railyard({"import", "--format", "nccl-log", log, "-o", Path("t"), "--report",
                      Path("./a.log")}),
            kExitInput);
  EXPECT_EQ(
      Railyard({"import", "--format", "nccl-log", log, "-o", Path("t"), "--report", Path("t")}),
      kExitInput);
  EXPECT_EQ(Read(log), kLog);
}

TEST_F(CliTest, AFileThatCannotBeWrittenFailsTheEnvironment) {
  const std::string log = Write("a.log", kLog);
  EXPECT_EQ(Railyard({"import", "--format", "nccl-log", log, "-o", "/proc/no/such/place"}),
            kExitEnvironment);
  EXPECT_THAT(errors_, HasSubstr("/proc/no/such/place"));
  EXPECT_EQ(std::count(errors_.begin(), errors_.end(), '\n'), 1);
}

}  // namespace
}  // namespace railyard
