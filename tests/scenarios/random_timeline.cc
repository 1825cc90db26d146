// SPDX-License-Identifier: GPL-2.0-only
#include "tests/scenarios/random_timeline.h"

#include <algorithm>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/support/regex.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  std::string Generate() {
    std::string text = Fabric();
    has_jobs_ = !has_ports_ && servers_ * gpus_ >= 4 && Below(4) == 0;
    has_restart_ = Below(3) == 0;
    has_spare_ = has_restart_ && !has_jobs_ && servers_ > 2 && Below(2) == 0;
    text += has_jobs_ ? Jobs() : Workload(servers_ - (has_spare_ ? 1 : 0));
    if (has_restart_ && !has_jobs_) text += Restart();
    // A failure shorter than a queue pair's retries causes no failover.
    const bool has_failover = !has_ports_ && Below(4) == 0;
    const uint32_t retries = has_ports_ ? 3 : has_failover ? 2 : 8;
    text += fmt::format("nccl {{ IB_TIMEOUT: {} IB_RETRY_CNT: {} {}}}\n",
                        (has_ports_ ? 1 : 6) + Below(3), Below(retries), Ports());
    if (has_ports_) text += "nic { link_aggregation: false }\n";
    if (has_failover) {
      text += fmt::format("nic_failover {{ policy: {} }}\n", Below(2) == 0 ? "PXN" : "REPLAN");
    }
    text += fmt::format("routing {{ detection_delay: \"{}us\" convergence_delay: \"{}us\" {}}}\n",
                        Below(300), Below(300), SlowSwitch());
    text += fmt::format("watchdog {{ no_progress: \"{}ms\" }}\n", 1 << Below(6));
    for (uint32_t i = 0, count = 1 + Below(3); i < count; ++i) {
      const std::string effect = Effect();
      text += fmt::format("faults {{ name: \"f{}\" {} {} }}\n", i, effect, When(i));
    }
    return text;
  }

 private:
  uint32_t Below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }

  std::string Fabric() {
    servers_ = 2 + Below(3);
    gpus_ = 1 + Below(4);
    const std::string servers = fmt::format("servers {{ count: {} gpus: {} }}", servers_, gpus_);
    switch (Below(4)) {
      case 0:
        switches_ = "leaf*";
        return fmt::format("fabric {{ leaf_spine {{ {} nics_per_leaf: {} spines: {} }} }}\n",
                           servers, 1 + Below(4), 1 + Below(3));
      case 1:
        return fmt::format("fabric {{ fat_tree {{ {} radix: 8 tiers: 2 }} }}\n", servers);
      case 2:
        has_ports_ = Below(2) == 0;
        switches_ = "*/tor*";
        return fmt::format("fabric {{ dual_tor {{ {} aggs_per_plane: 2 }} }}\n", servers);
      default:
        switches_ = "leaf*";
        gpus_ = 8;
        servers_ = 2 + Below(2);
        return RailOptimized(servers_);
    }
  }

  std::string Workload(uint32_t servers) {
    static const char* const kKinds[] = {"ALL_REDUCE", "ALL_GATHER", "REDUCE_SCATTER",
                                         "ALL_TO_ALL", "SEND_RECV",  "BROADCAST"};
    const uint32_t kind = Below(6);
    has_progress_ &= kind != 3 && kind != 4;  // not of what is made of Send and Recv
    iterations_ = 1 + Below(3) + (has_ports_ ? 5 : 0) + (has_restart_ ? 3 : 0);
    return fmt::format(
        "workload {{ program {{ ranks: {} repeat: {} collectives {{ kind: {} bytes: \"{}KiB\" "
        "compute_before: \"{}us\" }} }} }}\n",
        servers * gpus_, iterations_, kKinds[kind], 36 << Below(4), has_ports_ ? 3000 : Below(100));
  }

  // Each on half of the GPUs, side by side or so that they share servers.
  std::string Jobs() {
    std::string text;
    for (const char* name : {"a", "b"}) {
      text +=
          fmt::format("jobs {{ name: \"{}\" {}placement {{ policy: {} }} start: \"{}us\" {}}}\n",
                      name, InJob(), Below(2) == 0 ? "PACKED" : "STRIPED", Below(100),
                      has_restart_ && Below(2) == 0 ? Restart() : "");
    }
    return text;
  }
  std::string InJob() {
    const uint32_t gpus = gpus_;
    // Half of the GPUs, at least one.
    gpus_ = std::max(1u, servers_ * gpus / 2);
    std::string text = Workload(1);
    gpus_ = gpus;
    return text;
  }

  std::string Restart() {
    std::string text = fmt::format("restart {{ restarts_max: {} requeue: \"{}ms\" load: \"{}ms\" ",
                                   1 + Below(3), Below(20), Below(5));
    if (Below(4) == 0) {
      text += "detection: WATCHDOG ";
      has_watchdog_ = true;
    }
    if (iterations_ > 2 && Below(2) == 0) {
      text += fmt::format("checkpoint_every: {} save: \"{}us\" ", 1 + Below(2), Below(50));
    }
    if (has_spare_) text += fmt::format("spare_servers: \"server{}\" ", servers_ - 1);
    return text + "}\n";
  }

  std::string SlowSwitch() {
    if (switches_.empty() || Below(4) != 0) return "";
    return fmt::format("devices {{ device: \"{}\" convergence_delay: \"{}us\" }} ", switches_,
                       Below(2000));
  }

  // Ports that fail over, where NICs have two: with short timers, and jobs that last until one is
  // back.
  std::string Ports() {
    if (!has_ports_) return "";
    std::string text = fmt::format(
        "version: \"2.30.7\" IB_QPS_PER_CONNECTION: {} IB_RESILIENCY_PORT_FAILOVER: true "
        "IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY: {} ",
        1 + Below(2), Below(3));
    if (Below(4) != 0) {
      text += fmt::format(
          "IB_RESILIENCY_PORT_RECOVERY: true IB_RESILIENCY_PORT_RECOVERY_START_DELAY: {} "
          "IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT: {} ",
          Below(2), 1 + Below(2));
    }
    return text;
  }

  // On NIC cables most of the time: there is no way around them.
  std::string Cable() {
    static const char* const kPatterns[] = {"*/nic*--*", "*/nic*--*", "*", "*/gpu*--*"};
    return fmt::format("link: \"{}\" draw {{ count: {} }}", kPatterns[Below(4)], 1 + Below(2));
  }

  std::string Loss() {
    switch (Below(4)) {
      case 0:
        return fmt::format("probability: 0.{}1", Below(10));
      case 1:
        return fmt::format("gilbert_elliott {{ to_bad: 0.0{} to_good: 0.{} }}", 1 + Below(90),
                           1 + Below(9));
      case 2:
        return fmt::format("bit_error_ratio: {}e-6", 1 + Below(20));
      default: {
        static const char* const kKinds[] = {"DATA", "CLEAR_TO_SEND", "ACK"};
        return fmt::format("packets {{ kind: {} number: {} count: {} }}", kKinds[Below(3)],
                           1 + Below(20), 1 + Below(20));
      }
    }
  }

  std::string Effect() {
    static const char* const kDirections[] = {"BOTH", "FORWARD", "BACKWARD"};
    const char* const direction = kDirections[Below(3)];
    const std::string on = fmt::format("{} direction: {}", Cable(), direction);
    may_last_ = true;
    switch (Below(13)) {
      case 0:
      case 1:
        return fmt::format("kind: LOSS {} loss {{ {} }}", on, Loss());
      case 2:
        return fmt::format("kind: DEGRADE {} rate_share: 0.{}", on, 1 + Below(9));
      case 3:
        return fmt::format("kind: DELAY {} delay: \"{}us\" jitter: \"{}us\"", on, Below(30),
                           Below(10));
      case 4:
        return "kind: PAUSE_STORM device: \"*/nic*\" draw { count: 1 }";
      case 5:
        return fmt::format("kind: STRAGGLER device: \"*/gpu*\" draw {{ count: 1 }} speed: 0{}",
                           Below(2) == 0 ? "" : ".25");
      case 6:
        return fmt::format("kind: LINK_DOWN {} unnoticed: true", on);
      case 7:
        return "kind: LINK_DOWN device: \"*/nic*\" draw { count: 1 }";
      case 8:
        may_last_ = false;
        if (switches_.empty()) return "kind: LINK_DOWN " + on;
        return fmt::format("kind: SWITCH_REBOOT device: \"{}\" draw {{ count: 1 }}", switches_);
      case 9:
        if (has_watchdog_) return "kind: LINK_DOWN " + on;
        return fmt::format(
            "kind: BACKGROUND_LOAD load {{ from: \"server0/gpu*\" to: \"server1/gpu*\" rate: "
            "\"{}Gbps\" message: \"64KiB\" }}",
            1 + Below(60));
      default:
        return "kind: LINK_DOWN " + on;
    }
  }

  std::string When(uint32_t number) {
    const uint32_t at_us = Below(200);
    const uint32_t for_us = 1 + Below(1u << Below(13));
    switch (Below(7)) {
      case 0:
        if (!may_last_) break;
        return fmt::format("at: \"{}us\"", at_us);
      case 1:
        return fmt::format(
            "at: \"{}us\" until: \"{}us\" repeat {{ period: \"{}us\" jitter: "
            "\"{}us\" count: {} }}",
            at_us, at_us + for_us, 2 * for_us + 20, Below(20), 1 + Below(30));
      case 2:
        if (has_watchdog_) break;
        return fmt::format("by_chance {{ mean_between: \"{}us\" mean_repair: \"{}us\" }}",
                           100 + Below(2000), 1 + Below(500));
      case 3:
        return fmt::format("when {{ number: 1 {} }} until: \"{}us\"",
                           has_progress_ ? fmt::format("progress: 0.{}", 1 + Below(9)) : "",
                           for_us);
      case 4:
        if (number == 0) break;
        return fmt::format("when {{ {}: \"f0\" }} at: \"{}us\" until: \"{}us\"",
                           Below(2) == 0 ? "begin_of" : "end_of", Below(50), 50 + for_us);
      case 5:
        return fmt::format("when {{ iteration: 1 {} }} at: \"{}us\" until: \"{}us\"",
                           has_jobs_ ? "job: \"b\"" : "", Below(50), 50 + for_us);
      default:
        break;
    }
    return fmt::format("at: \"{}us\" until: \"{}us\"", at_us, at_us + for_us);
  }

  std::mt19937 random_;
  uint32_t servers_ = 2;
  uint32_t gpus_ = 1;  // of each
  uint32_t iterations_ = 1;
  std::string switches_;  // pattern of those that NICs are cabled to
  bool has_progress_ = true;
  bool has_ports_ = false;
  bool has_restart_ = false;
  bool has_jobs_ = false;
  bool has_spare_ = false;
  bool has_watchdog_ = false;  // ranks that hang do so for ten minutes: nothing may go on so long
  bool may_last_ = false;      // the fault at hand
};

// Returns whether a fault of one of the kinds was aimed at the link, e.g. "leaf0>server0/nic1".
bool IsHit(const EndedRun& run, const std::string& link, const std::vector<std::string>& kinds) {
  const Table faults = run.Query("SELECT kind, target FROM faults");
  for (size_t row = 0; row < faults.size(); ++row) {
    if (std::find(kinds.begin(), kinds.end(), faults.Text(row, "kind")) == kinds.end()) continue;
    // "server0/nic0--leaf0, server0/nic1--leaf0 (forward)"
    const std::string& names = faults.Text(row, "target");
    const std::string targets = fmt::format(",{},", names.substr(0, names.find(" (")));
    const size_t middle = link.find('>');
    const std::string from = link.substr(0, middle);
    const std::string to = link.substr(middle + 1);
    for (const std::string& name :
         {fmt::format("{}--{}", from, to), fmt::format("{}--{}", to, from), from, to}) {
      for (const char* const before : {",", " "}) {
        if (targets.find(before + name + ",") != std::string::npos) return true;
      }
    }
  }
  return false;
}

void CheckAbort(const EndedRun& run, const std::string& why) {
  if (why.find("Xid 74") != std::string::npos) {
    EXPECT_GT(run.Drops()["LINK_DOWN"] + run.Drops()["BIT_ERROR"] + run.Drops()["NO_ROUTE"], 0);
    return;
  }
  EXPECT_THAT(why, ::testing::AnyOf(HasSubstr("IBV_WC_RETRY_EXC_ERR(12)"),
                                    HasSubstr("a packet acknowledged to its sender was lost")));
  EXPECT_GT(run.Integer("transport.qp_errors"), 0);
}

// Every link it names is one that a fault of that kind hit; every chain has an end.
void CheckStall(const EndedRun& run, const std::string& why) {
  const std::regex down("([^ ,]+>[^ ,]+) is down");
  for (std::sregex_iterator it(why.begin(), why.end(), down), end; it != end; ++it) {
    EXPECT_TRUE(IsHit(run, (*it)[1], {"LINK_DOWN", "SWITCH_REBOOT"})) << (*it)[1];
  }
  // Pauses spread from the storm to all senders there.
  if (why.find(" is paused") != std::string::npos) {
    EXPECT_GT(run.Query("SELECT 1 FROM faults WHERE kind = 'PAUSE_STORM' AND begins > 0").size(),
              0u);
  }
  const std::regex still("(server[0-9]+/gpu[0-9]+), rank [0-9]+, stands still");
  for (std::sregex_iterator it(why.begin(), why.end(), still), end; it != end; ++it) {
    EXPECT_TRUE(IsHit(run, std::string((*it)[1]) + ">", {"STRAGGLER"})) << (*it)[1];
  }
  const std::regex chain(
      "in [A-Za-z]+ #\\d+ of communicator [\\w/]+: rank \\d+ waits .* -> (queue pair .*|.* stands "
      "still|rank \\d+ again: they wait for one another|rank \\d+ has not begun .*|rank \\d+, "
      "which waits for nobody)");
  EXPECT_TRUE(std::regex_search(why, chain) || why.find("stands still") != std::string::npos);
}

// The time attributed to faults is the time that collectives took longer since the first of them
// began.
void CheckShares(const EndedRun& run) {
  const rapidjson::Value& faults = run.At("faults");
  int64_t first_ps = INT64_MAX;
  for (const auto& fault : faults.GetArray()) {
    if (fault["from_ps"].IsInt64()) first_ps = std::min(first_ps, fault["from_ps"].GetInt64());
  }
  for (const char* part :
       {"queueing", "retransmission", "timeout", "rerouting", "slow_peer", "other"}) {
    int64_t of_faults_ps = 0;
    for (const auto& fault : faults.GetArray()) {
      of_faults_ps += fault["added_ps"][part].GetInt64();
    }
    int64_t of_collectives_ps = 0;
    for (size_t row = 0; row < run.collectives.size(); ++row) {
      if (run.collectives.Text(row, "completed") != "true") continue;
      if (run.collectives.Integer(row, "end_ps") < first_ps) continue;
      of_collectives_ps += run.collectives.Integer(row, fmt::format("added_{}_ps", part));
    }
    EXPECT_EQ(of_faults_ps, of_collectives_ps) << part;
  }
}

}  // namespace

std::string RandomTimeline(uint32_t seed) { return Generator(seed).Generate(); }

void RandomTimelineTest::Check(uint32_t seed) {
  const std::string scenario = RandomTimeline(seed);
  SCOPED_TRACE(fmt::format("seed {}:\n{}", seed, scenario));
  const EndedRun run = RunText(scenario, {"--seed", std::to_string(seed)});
  ASSERT_TRUE(run.has_result()) << run.exit.status << run.exit.errors;
  const std::string status = run.Text("status");
  ++seen_[status];
  const std::map<std::string, int> exits = {{"COMPLETED", 0}, {"JOB_ABORTED", 3}, {"STALLED", 4}};
  ASSERT_TRUE(exits.contains(status)) << status;
  EXPECT_EQ(run.exit.status, exits.at(status));
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
  const std::string why =
      run.Query("SELECT value FROM run WHERE key = 'status_detail'").Text(0, "value");
  SCOPED_TRACE(why);
  if (status == "COMPLETED") {
    EXPECT_EQ(why, "");
  }
  if (status == "JOB_ABORTED") CheckAbort(run, why);
  if (status == "STALLED") CheckStall(run, why);

  const EndedRun free = RunText(scenario, {"--seed", std::to_string(seed), "--set", "faults=[]"});
  ASSERT_EQ(free.exit.status, 0) << free.exit.errors;
  EXPECT_TRUE(free.At("conservation.ok").GetBool());
  for (const char* figure : {"mean", "max"}) {
    EXPECT_EQ(free.Real(fmt::format("collectives.stretch.{}", figure)), 1);
  }
  ASSERT_EQ(free.collectives.size(), run.collectives.size());
  for (size_t row = 0; row < free.collectives.size(); ++row) {
    EXPECT_EQ(run.collectives.Text(row, "baseline_duration_ps"),
              free.collectives.Text(row, "duration_ps"));
    if (run.collectives.Text(row, "completed") != "true") continue;
    int64_t added_ps = 0;
    for (const char* part :
         {"queueing", "retransmission", "timeout", "rerouting", "slow_peer", "other"}) {
      added_ps += run.collectives.Integer(row, fmt::format("added_{}_ps", part));
    }
    EXPECT_EQ(added_ps, run.collectives.Integer(row, "duration_ps") -
                            free.collectives.Integer(row, "duration_ps"));
  }
  int64_t restarts = 0;
  for (const auto& job : run.At("jobs").GetArray()) {
    restarts += job["restarts"].GetInt64();
    seen_["servers replaced"] += job["servers_replaced"].GetInt64();
  }
  if (status == "COMPLETED" && restarts == 0) {
    EXPECT_EQ(run.Integer("payload.total_bytes"), free.Integer("payload.total_bytes"));
  } else if (status == "COMPLETED") {
    EXPECT_GE(run.Integer("payload.total_bytes"), free.Integer("payload.total_bytes"));
  }
  CheckShares(run);
  seen_["restarts"] += restarts;
  if (run.At("jobs").Size() > 1) seen_["restarts of jobs"] += restarts;
  for (const char* counter : {"port_failovers", "port_recoveries", "nic_failovers"}) {
    seen_[counter] += run.Integer(std::string("transport.") + counter);
  }
}

}  // namespace railyard::testing
