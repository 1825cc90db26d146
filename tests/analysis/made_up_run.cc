// SPDX-License-Identifier: GPL-2.0-only
#include "tests/analysis/made_up_run.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "simulator/units/units.h"

namespace railyard::testing {

namespace {

CollectiveResult AllReduce(int64_t start_ps, int64_t duration_ps) {
  return {.kind = "AllReduce",
          .communicator = "world",
          .rank_count = 4,
          .bytes = 100'000'000,
          .busbw_factor = 1.5,
          .logged = "TREE/LL",
          .replayed = "RING/SIMPLE",
          .source = "job.log:7",
          .first_start_ps = start_ps,
          .last_start_ps = start_ps + 2 * kPsPerUs,
          .last_end_ps = start_ps + duration_ps,
          .bound_ps = kPsPerMs / 2,
          .completed = true};
}

LinkResult Link(const char* name, const char* tier, uint64_t payload_bytes) {
  return {.name = name,
          .tier = tier,
          .rate_bps = 400'000'000'000,
          .payload_bytes = payload_bytes,
          .header_bytes = payload_bytes / 100,
          .packets = payload_bytes / 1000};
}

}  // namespace

RunResult MadeUpRunWithoutFaults() {
  RunResult run;
  run.scenario = "made_up";
  run.seed = 7;
  run.fingerprint = "00112233445566778899aabbccddeeff";
  run.simulated_time_ps = 20 * kPsPerMs;
  run.wall_seconds = 0.5;
  run.cpu_seconds = 0.25;
  run.peak_rss_bytes = 1 << 20;
  run.fabric = "two-by-two";
  run.server_count = 2;
  run.gpu_count = 4;
  run.events = 900;
  run.packets = 100;
  run.packet_hops = 300;
  run.control_hops = 100;
  run.short_form_hops = 100;
  run.calls = 12;
  run.simulated_collectives = 2;
  run.replayed_collectives = 1;
  run.payload_bytes = 4000;
  run.payload_left_server_bytes = 1000;
  run.payload_reached_spine_bytes = 500;
  run.jobs = {{.name = "made_up", .gpu_count = 4, .end_ps = 20 * kPsPerMs}};
  run.collectives = {AllReduce(0, kPsPerMs), AllReduce(2 * kPsPerMs, 10 * kPsPerMs),
                     AllReduce(13 * kPsPerMs, 2 * kPsPerMs)};
  CollectiveResult& all_gather = run.collectives[2];
  all_gather.kind = "AllGather";
  all_gather.busbw_factor = 0.75;
  all_gather.logged = "";
  all_gather.source = "job \"a\", part 1.log:9";
  run.links = {Link("server0/gpu0>server0/nvswitch0", "NVLINK", 5000),
               Link("server0/nvswitch0>server0/gpu0", "NVLINK", 1000),
               Link("server0/nic0>leaf0", "NIC_LEAF", 1500),
               Link("leaf0>server0/nic0", "NIC_LEAF", 500), Link("leaf0>spine0", "LEAF_SPINE", 0)};
  run.links[2].retransmitted_bytes = 300;
  run.pairs = {
      {.source_gpu = 0, .destination_gpu = 1, .tiers = "NVLINK", .payload_bytes = 3000},
      {.source_gpu = 1, .destination_gpu = 2, .tiers = "HOST+NIC_LEAF", .payload_bytes = 1000},
      {.source_gpu = 2, .destination_gpu = 3, .tiers = "NVLINK", .payload_bytes = 0}};
  run.in_network = {{.gpu = 1,
                     .switches = "NVSWITCH",
                     .operation = "REDUCE",
                     .tiers = "NVLINK",
                     .sent_bytes = 80,
                     .received_bytes = 10},
                    {.gpu = 2,
                     .switches = "NVSWITCH",
                     .operation = "REDUCE",
                     .tiers = "NVLINK",
                     .sent_bytes = 40,
                     .received_bytes = 5}};
  run.conservation = {.injected_bytes = 4300, .delivered_bytes = 4000, .dropped_bytes = 300};
  return run;
}

RunResult MadeUpRun() {
  RunResult run = MadeUpRunWithoutFaults();
  run.has_baseline = true;
  run.baseline_simulated_time_ps = 15 * kPsPerMs;
  run.baseline_cpu_seconds = 0.125;
  run.jobs[0].baseline_end_ps = 15 * kPsPerMs;
  run.collectives[0].baseline_duration_ps = kPsPerMs;
  run.collectives[1].baseline_duration_ps = 5 * kPsPerMs / 2;
  run.collectives[1].hit_by_fault = true;
  run.collectives[1].added = {.queueing_ps = -kPsPerMs / 2,
                              .retransmission_ps = kPsPerMs,
                              .timeout_ps = 5 * kPsPerMs,
                              .rerouting_ps = kPsPerMs / 4,
                              .slow_peer_ps = kPsPerMs / 2,
                              .other_ps = 5 * kPsPerMs / 4};
  run.collectives[1].held_up_by_source = 2;
  run.collectives[1].held_up_by_destination = 3;
  run.collectives[2].baseline_duration_ps = 2 * kPsPerMs;
  run.drops = {{.reason = "LINK_DOWN", .packets = 3, .bytes = 300}};
  run.faults = {{.name = "flap",
                 .kind = "LINK_DOWN",
                 .target = "server0/nic0--leaf0",
                 .from_ps = 3 * kPsPerMs,
                 .until_ps = 4 * kPsPerMs,
                 .begins = 1,
                 .dropped_packets = 3,
                 .retransmitted_bytes = 300,
                 .collectives = {1},
                 .ranks_hit = 4,
                 .bytes_hit = 100'000'000,
                 .time_to_detect_ps = 2'000'000,
                 .first_retransmission_ps = 9 * kPsPerMs,
                 .time_to_recover_ps = 6 * kPsPerMs}};
  run.waits = {
      {.rank = 0, .source_rank = 2, .destination_rank = 3, .calls = 1, .waited_ps = 6 * kPsPerMs}};
  run.transport = {.retransmitted_packets = 3, .timeouts = 1};
  run.notes = {"Half of the ranks are reconstructed."};
  return run;
}

ScratchDirectory::ScratchDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "railyard-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) std::abort();
  path_ = pattern;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace railyard::testing
