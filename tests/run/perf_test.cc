// SPDX-License-Identifier: GPL-2.0-only
// `railyard perf` and `railyard fidelity` as a user runs them.
#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include "tests/run/program.h"
#include "tests/support/reference_dir.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;

class PerfTest : public ProgramTest {};

TEST_F(PerfTest, PrintsNcclTestsRowsWithBandwidthsThatAgreeWithTheTime) {
  const ProgramExit run = Railyard({"perf", "--collective", "all_gather", "--fabric", "dgx-h100",
                                    "-b", "1M", "-e", "4M", "-f", "2"});
  ASSERT_EQ(run.status, 0) << run.errors;
  EXPECT_THAT(run.output, HasSubstr("simulated"));
  std::istringstream lines(run.output);
  uint64_t expected_bytes = 1 << 20;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    uint64_t bytes = 0;
    uint64_t count = 0;
    std::string type;
    std::string redop;
    int root = 0;
    double time_us = 0;
    double algbw = 0;
    double busbw = 0;
    fields >> bytes >> count >> type >> redop >> root >> time_us >> algbw >> busbw;
    EXPECT_EQ(bytes, expected_bytes);
    EXPECT_EQ(count, bytes / 4 / 8);
    EXPECT_EQ(type, "float");
    EXPECT_EQ(redop, "none");
    EXPECT_EQ(root, -1);
    EXPECT_NEAR(algbw, static_cast<double>(bytes) / time_us * 1e-3, 0.01 * algbw + 0.01);
    EXPECT_NEAR(busbw, algbw * 7 / 8, 0.01 * busbw + 0.01);
    expected_bytes *= 2;
  }
  EXPECT_EQ(expected_bytes, uint64_t{8} << 20);
}

// `run` and `perf` name one bus bandwidth for nccl-tests' sendrecv: each rank's, of the bytes that
// it sends. Every ring edge between servers is one NIC's, so it is below a NIC's 50 GB/s.
TEST_F(PerfTest, ARunsSendRecvHasTheBusbwAndSizeThatPerfPrints) {
  constexpr int64_t kBytes = 4 << 20;
  const ProgramExit perf =
      Railyard({"perf", "--collective", "sendrecv", "--fabric", "h100-4x8-rail-optimized", "-b",
                "4M", "-e", "4M", "-J", scratch_.Path("perf.json")});
  ASSERT_EQ(perf.status, 0) << perf.errors;
  rapidjson::Document table;
  table.Parse(ReadText(scratch_.Path("perf.json")).c_str());
  const EndedRun run = RunText(
      "fabric { preset: \"h100-4x8-rail-optimized\" }\n"
      "workload { program { collectives { kind: SEND_RECV bytes: \"4MiB\" } } }\n"
      "nccl { version: \"2.27.5\" }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Integer("by_kind.0.bytes"), kBytes);
  EXPECT_EQ(run.Integer("payload.total_bytes"), 32 * kBytes);
  EXPECT_EQ(run.collectives.Integer(0, "bytes"), kBytes);
  const double busbw = run.collectives.Real(0, "busbw_GBps");
  EXPECT_NEAR(busbw, kBytes * 1e3 / static_cast<double>(run.collectives.Integer(0, "duration_ps")),
              1e-6 * busbw);
  EXPECT_LT(busbw, 50);
  EXPECT_NEAR(busbw, table["results"][0]["out_of_place"]["bus_bw"].GetDouble(), 0.01 * busbw);
}

// Two ranks that swap data are a SendRecv, and neither an AllToAll nor of twice the bytes.
TEST_F(PerfTest, ASendRecvOfTwoRanksIsOne) {
  const EndedRun run = RunText("fabric { rail_optimized { servers: 2 gpus_per_server: 1 } }\n" +
                               Program("SEND_RECV", "4MiB"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.collectives.Text(0, "kind"), "SendRecv");
  EXPECT_EQ(run.collectives.Integer(0, "bytes"), 4 << 20);
  EXPECT_EQ(run.pairs.size(), 2u);
  EXPECT_EQ(run.pairs.Sum("payload_bytes"), 8 << 20);
}

// Two GPUs on two servers: out of place, each copies half of the size and sends half to the other.
// Both works are on the same four CTAs, so that the Send has half of the warps that send, a quarter
// of the 44 GiB/s that NCCL counts for 16 warps (src/symmetric.cc), and 2.9 us between two chunks
// of 128 KiB. In place its 4 x 15.5 GB/s are more than the NIC's.
TEST_F(PerfTest, WhatARankCopiesTakesWarpsFromWhatItSends) {
  const ProgramExit run =
      Railyard({"perf", "--collective", "alltoall", "--fabric", "single-gpu", "--nodes", "2",
                "--nccl-version", "2.29.2", "-b", "256M", "-e", "256M", "--json", "-"});
  ASSERT_EQ(run.status, 0) << run.errors;
  rapidjson::Document json;
  json.Parse(run.output.c_str());
  ASSERT_FALSE(json.HasParseError());
  const auto& row = json["results"][0];
  const double chunk_us = 131'072 / (44.0 / 4 * (1 << 30) / 1e6) + 2.9;
  const double chunks = (128 << 20) / 131'072.0 / 4;
  EXPECT_NEAR(row["out_of_place"]["time"].GetDouble(), chunks * chunk_us, 0.02 * chunks * chunk_us);
  const double wire_us = (128 << 20) / 4096.0 * (4096 + 82) / 50e3;
  EXPECT_NEAR(row["in_place"]["time"].GetDouble(), wire_us, 0.02 * wire_us);
}

TEST_F(PerfTest, SaysEveryMistakeBeforeItRuns) {
  const ProgramExit run = Railyard(
      {"perf", "--collective", "alltoal", "--fabric", "dgx-h100", "--nodes", "0", "-b", "0"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.errors, HasSubstr("unknown collective \"alltoal\" (did you mean \"alltoall\"?)"));
  EXPECT_THAT(run.errors, HasSubstr("-b: \"0\" is not a size"));
  const ProgramExit algorithm = Railyard(
      {"perf", "--collective", "all_reduce", "--fabric", "dgx-h100", "--algo", "Rng", "-e", "4M"});
  EXPECT_EQ(algorithm.status, 2);
  EXPECT_EQ(algorithm.output, "");
  EXPECT_THAT(algorithm.errors,
              HasSubstr("railyard: error: --algo: unknown name \"Rng\" (did you mean \"Ring\"?)"));
  const ProgramExit large = Railyard(
      {"perf", "--collective", "all_reduce", "--fabric", "dgx-h100", "-e", "18446744073709551615"});
  EXPECT_EQ(large.status, 2);
  EXPECT_THAT(large.errors, HasSubstr("-e: \"18446744073709551615\" is out of range (expected at "
                                      "most 1 PiB)"));
}

TEST_F(PerfTest, ASchedulesTransfersAreWhatTheAlgorithmSends) {
  // 4 KiB on one channel of 8 ranks: 2 x 7 chunks of 512 B from each.
  const ProgramExit run =
      Railyard({"schedule", "--collective", "all_reduce", "--bytes", "4K", "--fabric", "dgx-h100",
                "--algo", "Ring", "--proto", "LL", "--json", "-"});
  ASSERT_EQ(run.status, 0) << run.errors;
  rapidjson::Document json;
  json.Parse(run.output.c_str());
  ASSERT_FALSE(json.HasParseError());
  EXPECT_STREQ(json["replayed"].GetString(), "RING/LL");
  std::vector<uint64_t> sent(8);
  for (const auto& transfer : json["transfers"].GetArray()) {
    sent[transfer["from"].GetUint()] += transfer["bytes"].GetUint64();
    EXPECT_EQ(transfer["to"].GetUint(), (transfer["from"].GetUint() + 1) % 8);
    EXPECT_EQ(transfer["wire_bytes"].GetUint64(), 2 * transfer["bytes"].GetUint64());
  }
  for (const uint64_t bytes : sent) EXPECT_EQ(bytes, 2u * 7 * 4096 / 8);
}

// Two ranks that exchange halves and then sums send as many bytes as a ring's: S each.
// (count / nranks) & -(16 / wordSize(type)) of nccl-tests' all_gather.cu: 999,936 of 1,000,003.
TEST_F(PerfTest, ASchedulesSizeIsRoundedAsThatOfATest) {
  const auto run = [this](const std::string& bytes) {
    return Railyard({"schedule", "--collective", "all_gather", "--fabric", "dgx-h100", "--bytes",
                     bytes, "--rows", "0"});
  };
  EXPECT_THAT(run("1000003").output, HasSubstr(" of 999936 B on "));
  const ProgramExit none = run("16");
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.errors, HasSubstr("--bytes: \"16\" leaves a rank of 8 without an element"));
}

TEST_F(PerfTest, AUsersAlgorithmIsListedAndTimed) {
  std::string text = "collective: ALL_REDUCE ranks: 2 chunks: 2\n";
  for (const int rank : {0, 1}) {
    const int peer = 1 - rank;
    text += fmt::format(
        "lanes {{ rank: {0} steps {{ chunk: {1} send_to: {1} load_local: true }}\n"
        "steps {{ chunk: {0} recv_from: {1} load_local: true reduce: true keep: true store: true "
        "}}\nsteps {{ chunk: {0} send_to: {1} load_kept: true }}\n"
        "steps {{ chunk: {1} recv_from: {1} store: true }} }}\n",
        rank, peer);
  }
  const std::string file = scratch_.Write("halves.textproto", text);
  const ProgramExit listed = Railyard({"schedule", file, "--bytes", "1M", "--json", "-"});
  EXPECT_EQ(Railyard({"schedule", file}).output,
            Railyard({"schedule", file, "--bytes", "1M"}).output);
  ASSERT_EQ(listed.status, 0) << listed.errors;
  rapidjson::Document json;
  json.Parse(listed.output.c_str());
  ASSERT_FALSE(json.HasParseError());
  EXPECT_STREQ(json["replayed"].GetString(), "EXPLICIT/SIMPLE");
  std::vector<uint64_t> sent(2);
  for (const auto& transfer : json["transfers"].GetArray()) {
    sent[transfer["from"].GetUint()] += transfer["bytes"].GetUint64();
  }
  EXPECT_THAT(sent, ::testing::Each(uint64_t{1} << 20));
  const ProgramExit timed =
      Railyard({"perf", "--collective", "all_reduce", "--fabric", "single-gpu", "--nodes", "2",
                "--schedule", file, "-b", "1M", "-e", "1M"});
  EXPECT_EQ(timed.status, 0) << timed.errors;
  EXPECT_THAT(timed.output, HasSubstr("1048576"));
  // LL's messages take twice the bytes, and less time for a few.
  const std::string ll = scratch_.Write("ll.textproto", "protocol: LL " + text);
  const ProgramExit ll_listed = Railyard({"schedule", ll, "--bytes", "1M"});
  EXPECT_THAT(ll_listed.output, HasSubstr("EXPLICIT/LL,"));
  const auto time_us = [&](const std::string& schedule, const std::string& bytes) {
    const ProgramExit exit = Railyard({"perf", "--fabric", "single-gpu", "--nodes", "2",
                                       "--schedule", schedule, "-b", bytes, "-e", bytes});
    EXPECT_EQ(exit.status, 0) << exit.errors;
    std::istringstream row(exit.output.substr(exit.output.rfind("sum") + 3));
    int root = 0;
    double time = 0;
    row >> root >> time;
    return time;
  };
  EXPECT_LT(time_us(ll, "64"), time_us(file, "64"));
  EXPECT_GT(time_us(ll, "64M"), 1.8 * time_us(file, "64M"));
  // The collective is that of the schedule, and an error says how many ranks it needs.
  const ProgramExit derived = Railyard({"perf", "--fabric", "single-gpu", "--nodes", "2",
                                        "--schedule", file, "-b", "1M", "-e", "1M"});
  EXPECT_EQ(derived.status, 0) << derived.errors;
  EXPECT_EQ(derived.output, timed.output);
  const ProgramExit large =
      Railyard({"perf", "--fabric", "dgx-h100", "--schedule", file, "-b", "1M", "-e", "1M"});
  EXPECT_EQ(large.status, 2);
  EXPECT_THAT(large.errors,
              HasSubstr("--schedule: is of AllReduce over 2 ranks, and the job has it "
                        "over 8 (expected a schedule of as many, or a job of 2 GPUs)"));
  EXPECT_THAT(Railyard({"perf", "--fabric", "dgx-h100"}).errors,
              HasSubstr("--collective is required (or --schedule with the file of one)"));
  // A wrong result is reported at its step, and a file excludes a fabric.
  scratch_.Write("halves.textproto", std::regex_replace(text, std::regex("reduce: true "), ""));
  const ProgramExit wrong = Railyard({"schedule", file, "--bytes", "1M"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_EQ(wrong.output, "");
  EXPECT_THAT(wrong.errors, HasSubstr("takes several operands without reducing"));
  EXPECT_EQ(Railyard({"schedule", file, "--bytes", "1M", "--fabric", "dgx-h100"}).status, 2);
  EXPECT_THAT(Railyard({"schedule", "--bytes", "1M", "--fabric", "dgx-h100"}).errors,
              HasSubstr("--collective is required (or the file of a schedule)"));
  const std::string none = scratch_.Path("none");
  EXPECT_EQ(Railyard({"schedule", none, "--bytes", "1M"}).errors,
            none + ": error: there is no such file (expected a schedule)\n");
}

// Each of two ranks sends half of its bytes; NCCL's grouped Sends and Recvs are not used.
TEST_F(PerfTest, AnAllToAllMayBeAUsersAlgorithm) {
  const std::string file =
      scratch_.Write("swap.textproto",
                     "collective: ALL_TO_ALL ranks: 2\n"
                     "lanes { rank: 0 steps { chunk: 0 load_local: true store: true }\n"
                     "  steps { chunk: 2 send_to: 1 load_local: true }\n"
                     "  steps { chunk: 1 recv_from: 1 store: true } }\n"
                     "lanes { rank: 1 steps { chunk: 3 load_local: true store: true }\n"
                     "  steps { chunk: 1 send_to: 0 load_local: true }\n"
                     "  steps { chunk: 2 recv_from: 0 store: true } }\n");
  const ProgramExit listed = Railyard({"schedule", file, "--bytes", "2M"});
  EXPECT_EQ(listed.status, 0) << listed.errors;
  EXPECT_THAT(listed.output, HasSubstr("AlltoAll of 2097152 B"));
  EXPECT_THAT(listed.output, HasSubstr("EXPLICIT/SIMPLE"));
  const std::string scenario = scratch_.Write(
      "swap_scenario.textproto",
      "fabric { rail_optimized { servers: 2 gpus_per_server: 1 } }\n"
      "workload { program { collectives { kind: ALL_TO_ALL bytes: \"2MiB\" repeat: 3 } }\n"
      "  schedule: \"swap.textproto\" }\n");
  const std::string out = scratch_.Path("swap_out");
  EXPECT_EQ(Railyard({"run", scenario, "--out", out, "--verify-replay-cache"}).status, 0);
  rapidjson::Document summary;
  summary.Parse(ReadText(out + "/summary.json").c_str());
  EXPECT_EQ(summary["payload"]["total_bytes"].GetUint64(), 3u * 2 * (1 << 20));
  EXPECT_THAT(Railyard({"perf", "--fabric", "single-gpu", "--nodes", "2", "--schedule", file, "-b",
                        "2M", "-e", "2M"})
                  .output,
              HasSubstr("2097152"));
}

// Every send has its receive, of as many bytes.
TEST_F(PerfTest, AScheduleInGoalIsBalanced) {
  for (const char* collective : {"all_reduce", "alltoall"}) {
    const ProgramExit run = Railyard({"schedule", "--collective", collective, "--bytes", "1M",
                                      "--fabric", "dgx-h100", "--algo", "Tree", "--goal", "-"});
    ASSERT_EQ(run.status, 0) << run.errors;
    EXPECT_TRUE(run.output.starts_with("num_ranks 8\n"));
    std::map<std::string, int64_t> open;
    std::istringstream lines(run.output);
    std::string rank;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string label;
      std::string verb;
      std::string bytes;
      std::string preposition;
      std::string peer;
      words >> label >> verb >> bytes >> preposition >> peer;
      if (label == "rank") rank = verb;
      if (verb == "send") ++open[fmt::format("{}>{} {}", rank, peer, bytes)];
      if (verb == "recv") --open[fmt::format("{}>{} {}", peer, rank, bytes)];
    }
    EXPECT_FALSE(open.empty());
    for (const auto& [pair, count] : open) EXPECT_EQ(count, 0) << pair;
  }
}

TEST_F(PerfTest, WhatGoalCannotSayIsRefused) {
  const ProgramExit run = Railyard({"schedule", "--collective", "all_reduce", "--bytes", "64M",
                                    "--fabric", "dgx-h100", "--algo", "NVLS", "--goal", "-"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.errors, HasSubstr("--goal: NVLS/SIMPLE has switches add up and copy"));
  const ProgramExit nodes = Railyard({"schedule", "--collective", "all_reduce", "--bytes", "64M",
                                      "--fabric", "dgx-h100", "--nodes", "0"});
  EXPECT_EQ(nodes.status, 2);
  EXPECT_THAT(nodes.errors, HasSubstr("--nodes: 0 (expected 1 to 4096)"));
  const ProgramExit generic =
      Railyard({"perf", "--collective", "all_reduce", "--fabric", "generic"});
  EXPECT_EQ(generic.status, 2);
  EXPECT_EQ(
      generic.errors,
      "railyard: error: --fabric: platform \"generic\" leaves gpus, nic_rate, host_rate, "
      "host_delay, nvlink_rate, nvlink_delay, nvswitch_latency to its user (expected a fabric "
      "file or a custom platform file that states them)\n");
}

double Quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

// The core set of docs/validation.md, whose other tables are of 1 GiB and more. Limits are a little
// above what is reached at these sizes, where latencies and chunks show most.
TEST_F(PerfTest, TimesOfTheCoreSetUpTo64MiBAreNearThoseMeasured) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  const std::string tables = reference_dir + "/measured/";
  const std::string json = scratch_.Path("fidelity.json");
  const ProgramExit run = Railyard(
      {"fidelity", tables + "h100-cluster01-1node-5collectives.csv",
       tables + "nvidia-dgxh100-1node-allreduce.csv", tables + "h100-ndr-2and8node-allreduce.csv",
       tables + "gcp-h200-2node-allgather.csv", tables + "stas-a100-h200-allreduce.csv",
       tables + "oci-2node-allreduce.csv", "--max-bytes", "64M", "--json", json});
  ASSERT_EQ(run.status, 0) << run.errors;
  rapidjson::Document result;
  result.Parse(ReadText(json).c_str());
  ASSERT_FALSE(result.HasParseError());
  static const std::set<std::string> kCoreSet = {
      "nvidia-dgxc-h100-1n", "xxrjun-c01-1n8g", "xxrjun-c01-1n4g", "nccl-tests-309b",
      "gcp-a3ultra-doc",     "stas-a100-1n",    "stas-h200-1n"};
  std::set<std::string> seen;
  std::vector<double> errors;
  std::vector<double> errors_below_1mib;
  for (const auto& row : result["rows"].GetArray()) {
    const std::string source = row["source_id"].GetString();
    if (!kCoreSet.contains(source)) continue;
    seen.insert(source);
    const uint64_t bytes = row["bytes"].GetUint64();
    const double error = std::abs(row["error"].GetDouble());
    (bytes < 1 << 20 ? errors_below_1mib : errors).push_back(error);
    // No time without packets.
    EXPECT_GE(row["packet_hops"].GetUint64(), bytes / 8192) << source;
    EXPECT_NEAR(row["simulated_us"].GetDouble() / row["measured_us"].GetDouble() - 1,
                row["error"].GetDouble(), 1e-9);
  }
  EXPECT_EQ(seen, kCoreSet);
  ASSERT_GT(errors.size(), 100u);
  ASSERT_GT(errors_below_1mib.size(), 50u);
  EXPECT_LT(Quantile(errors, 0.5), 0.07);
  EXPECT_LT(Quantile(errors, 0.9), 0.23);
  EXPECT_LT(Quantile(errors_below_1mib, 0.5), 0.09);
  EXPECT_GT(result["not_run"].Size(), 0u);
  EXPECT_TRUE(result["summary"].HasMember("p90_abs_error"));
}

TEST_F(PerfTest, ALaunchThatNothingHidesIsInTheTime) {
  scratch_.Write("measured.csv",
                 "source_id,collective,nodes,gpus_per_node,gpu,nic_gbps,nccl_version,algo_hint,"
                 "bytes,time_us,algbw_GBps,busbw_GBps,notes\n"
                 "a,all_reduce,1,4,H100-SXM5-80GB,,unknown,auto,32768,20,1.638,2.458,\n"
                 "b,all_reduce,1,4,H100-SXM5-80GB,,unknown,auto,32768,20,1.638,2.458,"
                 "torch.distributed bench\n");
  const std::string json = scratch_.Path("fidelity.json");
  const ProgramExit run = Railyard({"fidelity", scratch_.Path("measured.csv"), "--json", json});
  ASSERT_EQ(run.status, 0) << run.errors;
  rapidjson::Document result;
  result.Parse(ReadText(json).c_str());
  const auto& rows = result["rows"].GetArray();
  ASSERT_EQ(rows.Size(), 2u);
  EXPECT_NEAR(rows[1]["simulated_us"].GetDouble() - rows[0]["simulated_us"].GetDouble(), 20, 1e-6);
}

// The output of nccl-tests on a machine whose launches take 2^(1/3) as long as a DGX H100's here.
TEST_F(PerfTest, CalibrationFindsTheCostsOfAMachineThatIsKnown) {
  scratch_.Write("machine.textproto",
                 ReadText(RAILYARD_SOURCE_DIR "/topologies/platforms/dgx-h100.textproto") +
                     "calibration { launch_latency_scale: 1.2599 step_latency_scale: 1 "
                     "channel_rate_scale: 1 source: \"made up\" }\n");
  const ProgramExit printed =
      Railyard({"perf", "--collective", "all_gather", "--fabric",
                scratch_.Path("machine.textproto"), "-b", "64K", "-e", "1M", "-f", "4"});
  ASSERT_EQ(printed.status, 0) << printed.errors;
  scratch_.Write("table.txt", printed.output);
  const std::string mine = scratch_.Path("mine.textproto");
  const std::vector<std::string> arguments = {"fidelity",     scratch_.Path("table.txt"),
                                              "--calibrate",  mine,
                                              "--fabric",     "dgx-h100",
                                              "--collective", "all_gather"};
  const ProgramExit run = Railyard(arguments);
  ASSERT_EQ(run.status, 0) << run.errors;
  EXPECT_THAT(run.output, HasSubstr("launch_latency_scale     1.2599\n"));
  EXPECT_THAT(run.output, HasSubstr("step_latency_scale       1\n"));
  EXPECT_THAT(run.output, HasSubstr(", 0.0% after,"));
  const std::string text = ReadText(mine);
  EXPECT_THAT(text, HasSubstr("  launch_latency_scale: 1.2599\n"));
  EXPECT_THAT(text, HasSubstr("  source: \"all_gather on 1 x dgx-h100: "));
  EXPECT_THAT(text, HasSubstr("NVIDIA DGX H100 user guide"));
  // The platform that was written has the times that were measured.
  const ProgramExit again = Railyard(
      {"perf", "--collective", "all_gather", "--fabric", mine, "-b", "64K", "-e", "1M", "-f", "4"});
  const auto rows = [](const std::string& output) {
    return std::regex_replace(output, std::regex("#[^\n]*\n"), "");
  };
  EXPECT_EQ(rows(again.output), rows(printed.output));
  // Nothing is overwritten, and nothing calibrated is calibrated again.
  EXPECT_THAT(Railyard(arguments).errors, HasSubstr("is there already (expected a new file)"));
  EXPECT_EQ(ReadText(mine), text);
  const ProgramExit twice =
      Railyard({"fidelity", scratch_.Path("table.txt"), "--calibrate", scratch_.Path("b.textproto"),
                "--fabric", mine, "--collective", "all_gather"});
  EXPECT_EQ(twice.status, 2);
  EXPECT_THAT(twice.errors, HasSubstr("is calibrated (expected a platform that is not)"));
}

TEST_F(PerfTest, WhatCannotBeCalibratedIsRefused) {
  scratch_.Write("table.txt", "8 2 float sum -1 10 1 1 0 10 1 1 0\n");
  const auto errors = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"fidelity", scratch_.Path("table.txt")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramExit run = Railyard(arguments);
    EXPECT_EQ(run.status, 2);
    return run.errors;
  };
  const std::string out = scratch_.Path("mine.textproto");
  EXPECT_THAT(errors({"--nodes", "2"}),
              HasSubstr("--nodes: error: has no effect without --calibrate (expected both or "
                        "neither)"));
  EXPECT_THAT(errors({"--calibrate", out, "--json", "-"}),
              HasSubstr("--json: error: has no effect with --calibrate (expected one of the two)"));
  EXPECT_THAT(errors({"--calibrate", out, "--collective", "all_reduc", "--fabric", "dgx-h100"}),
              HasSubstr("--collective: unknown collective \"all_reduc\""));
  EXPECT_THAT(
      errors({"--calibrate", out, "--collective", "all_reduce", "--fabric", "dgx-h100"}),
      HasSubstr("table.txt:1:1: error: 1 rows of at most 1073741824 B (expected two or more)"));
  scratch_.Write("table.txt",
                 "8 2 float sum -1 10 1 1 0 10 1 1 0\n16 4 float sum -1 10 1 1 0 10 1 1 0\n");
  // One of three sizes is no number of float32 elements.
  scratch_.Write("odd.txt",
                 "8 2 float sum -1 10 1 1 0 10 1 1 0\n"
                 "2 1 half sum -1 10 1 1 0 10 1 1 0\n"
                 "16 4 float sum -1 10 1 1 0 10 1 1 0\n");
  const ProgramExit odd = Railyard({"fidelity", scratch_.Path("odd.txt"), "--calibrate", out,
                                    "--collective", "all_reduce", "--fabric", "dgx-h100"});
  EXPECT_EQ(odd.status, 2);
  EXPECT_EQ(odd.errors, scratch_.Path("odd.txt") +
                            ":2:1: error: size: 2 bytes are not a whole number of float32 elements "
                            "(expected a multiple of 4)\n");
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_THAT(errors({"--calibrate", out, "--collective", "all_reduce", "--fabric", "dgx-h10"}),
              HasSubstr("--fabric: unknown platform \"dgx-h10\""));
  EXPECT_THAT(errors({"--calibrate", "mine", "--collective", "all_reduce", "--fabric", "dgx-h100"}),
              HasSubstr("--calibrate: mine would be taken for a name"));
}

}  // namespace
}  // namespace railyard::testing
