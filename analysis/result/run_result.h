// SPDX-License-Identifier: GPL-2.0-only
// Holds the measurements of one run as plain numbers. The recorders of the replay write them and
// all reports read them; they depend on no model. Units are in the names; indices are dense.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/result/on_off_load.h"
#include "analysis/result/text_pool.h"
#include "analysis/result/time_series.h"
#include "analysis/result/traffic_result.h"
#include "simulator/units/never.h"

namespace railyard {

// Says how a run ended. With kRunning the figures are intermediate: the run has not ended.
enum class RunStatus : uint8_t {
  kCompleted,
  kJobAborted,
  kStalled,
  kInterrupted,
  kTimeEnded,
  kRunning
};

// Holds the time that a collective took longer than in the paired fault-free run, by the cause on
// which its critical path spent more time (docs/results.md). Parts may be negative.
struct AddedTime {
  int64_t queueing_ps = 0;        // messages took longer
  int64_t retransmission_ps = 0;  // requests for lost packets, and their retransmission
  int64_t timeout_ps = 0;         // waiting for a retransmission timer
  int64_t rerouting_ps = 0;       // messages took longer on paths other than their first
  int64_t slow_peer_ps = 0;       // a GPU was slow, was halted or began later
  int64_t other_ps = 0;           // the rest
};

// Describes one collective, with all of its ranks. Its texts point into RunResult::texts or to
// literals, because there may be millions of rows.
struct CollectiveResult {
  std::string_view kind;  // "AllReduce", "SendRecv", …
  std::string_view communicator;
  uint32_t job = 0;  // into RunResult::jobs
  uint32_t rank_count = 0;
  uint64_t bytes = 0;         // nccl-tests' size
  double busbw_factor = 1;    // 2(n-1)/n, (n-1)/n or 1
  std::string_view logged;    // "TREE/LL", or "" if the log does not say
  std::string_view replayed;  // "RING/SIMPLE"
  std::string_view source;    // "file:line" of the first call, or ""
  // kNeverPs if the run ended before.
  int64_t first_start_ps = 0;
  int64_t last_start_ps = 0;
  int64_t last_end_ps = 0;
  int64_t bound_ps = 0;  // no schedule of these bytes on these links can be faster
  bool completed = false;
  bool hit_by_fault = false;         // lost a packet to a fault
  int64_t baseline_duration_ps = 0;  // of the paired fault-free run; 0 without one
  int64_t baseline_wait_ps = 0;      // of that run
  int64_t alone_duration_ps = 0;     // with its job alone on the fabric; 0 without such a run
  int64_t measured_ps = 0;           // duration in the capture (JobCollective); 0 if unknown
  AddedTime added{};                 // with a paired run
  // Source and destination of the transfer that delayed it most; equal if the rank itself was late
  // and delayed it most.
  uint32_t held_up_by_source = UINT32_MAX;
  uint32_t held_up_by_destination = UINT32_MAX;
  // Preconditions: the collective completed; every rank started.
  int64_t duration_ps() const { return last_end_ps - first_start_ps; }
  int64_t wait_ps() const { return last_start_ps - first_start_ps; }
};

// Describes one direction of a cable. Its texts point into RunResult::texts or to literals, because
// a large fabric has tens of thousands of links.
struct LinkResult {
  std::string_view name;
  std::string_view tier;  // "NIC_LEAF", …
  uint64_t rate_bps = 0;
  uint64_t payload_bytes = 0;        // first transmissions of data
  uint64_t header_bytes = 0;         // headers, ACKs, credits, cell overhead
  uint64_t retransmitted_bytes = 0;  // payload sent again
  uint64_t packets = 0;              // of any kind
  uint64_t dropped_packets = 0;
  uint64_t flows = 0;            // connections of jobs with payload over it
  double flow_entropy_bits = 0;  // of the distribution of its payload over them
  OnOffLoad load{};              // while collectives run that use it
};

// Describes the traffic of an ordered pair of different GPUs; each pair has one row.
struct PairResult {
  uint32_t source_gpu = 0;
  uint32_t destination_gpu = 0;
  // The tiers that it crossed, in order, e.g. "HOST+NIC_LEAF"; several paths are separated by "|",
  // the path with the most bytes first.
  std::string tiers;
  uint64_t payload_bytes = 0;
};

// Counts the bytes that one GPU sent to switches that reduce or multicast, and received from them.
struct InNetworkResult {
  uint32_t gpu = 0;
  std::string_view switches;   // a literal: "NVSWITCH", or "NETWORK" for those behind NICs
  std::string_view operation;  // a literal: "REDUCE" or "MULTICAST"
  std::string tiers;           // as in PairResult
  uint64_t sent_bytes = 0;
  uint64_t received_bytes = 0;
};

// Describes one of a sample of the messages over the network.
struct TransferResult {
  uint32_t collective = 0;  // into RunResult::collectives
  uint32_t source_gpu = 0;
  uint32_t destination_gpu = 0;
  uint32_t bytes = 0;
  int64_t ready_ps = 0;   // its data was staged and the receiver had granted it
  int64_t posted_ps = 0;  // the proxy posted it
  int64_t acknowledged_ps = 0;
};

struct DropResult {
  std::string reason;
  uint64_t packets = 0;
  uint64_t bytes = 0;
};

struct FaultResult {
  std::string name;
  std::string kind;
  std::string target;
  int64_t from_ps = 0;   // its first begin, or the begin in the scenario; kNeverPs if unknown
  int64_t until_ps = 0;  // its last end; kNeverPs if it was permanent or lasted to the run's end
  uint64_t begins = 0;   // how often it began
  uint64_t dropped_packets = 0;
  uint64_t retransmitted_bytes = 0;  // payload retransmitted by senders that had lost packets to it
  std::vector<uint32_t> collectives;  // that lost a packet to it, ascending
  uint32_t ranks_hit = 0;             // that sent or were to receive such a packet
  uint64_t bytes_hit = 0;             // sizes of the collectives that lost a packet to it
  int64_t time_to_detect_ps = -1;     // for links that are down, since from_ps; -1 if not detected
  int64_t first_retransmission_ps = -1;  // since time zero; -1 if none
  int64_t time_to_recover_ps = -1;  // first delivery after its last loss, since from_ps; -1: never
};

// Holds the time that all calls of a rank waited for a transfer or rank beyond the usual time of
// the calls. Only waits of at least 1 % of a call count.
struct WaitResult {
  uint32_t rank = 0;
  uint32_t source_rank = 0;       // of the transfer that was lost or late
  uint32_t destination_rank = 0;  // equal to the source if that rank itself was late
  uint64_t calls = 0;
  int64_t waited_ps = 0;
};

struct TransportCounters {
  uint64_t retransmitted_packets = 0;
  uint64_t timeouts = 0;
  uint64_t nacks = 0;
  uint64_t ecn_marked = 0;
  uint64_t cnp = 0;
  uint64_t pfc_pause_ps = 0;
  uint64_t qp_errors = 0;
  uint64_t port_failovers = 0;
  uint64_t port_recoveries = 0;
  uint64_t nic_failovers = 0;
  // Packets that receivers did without, in messages with a tolerated loss.
  uint64_t missing_packets = 0;
  uint64_t missing_bytes = 0;
};

// Counts the payload bytes of data packets (without headers) over the whole run.
struct Conservation {
  uint64_t injected_bytes = 0;  // every transmission, retransmissions included
  uint64_t replicated_bytes = 0;
  uint64_t delivered_bytes = 0;
  uint64_t reduced_bytes = 0;
  uint64_t dropped_bytes = 0;
  uint64_t in_flight_bytes = 0;
  bool Holds() const {
    return injected_bytes + replicated_bytes ==
           delivered_bytes + reduced_bytes + dropped_bytes + in_flight_bytes;
  }
};

// Holds the parts of one rank's time (docs/workloads.md), estimated by closed forms or simulated.
struct TimeBreakdown {
  int64_t compute_ps = 0;
  int64_t tensor_ps = 0;    // calls that computation waits for in its own stream, except experts'
  int64_t expert_ps = 0;    // the same, of expert parallelism
  int64_t pipeline_ps = 0;  // transfers between stages that are waited for
  int64_t data_ps = 0;      // calls parallel to computation: the part that outlasts it
  int64_t wait_ps = 0;      // in such calls, for ranks that begin later
  int64_t bubble_ps = 0;    // until another stage begins to send
  int64_t overlap_ps = 0;   // calls parallel to computation: the hidden part; in no sum
  int64_t communication_ps() const { return tensor_ps + expert_ps + pipeline_ps + data_ps; }
  int64_t total_ps() const { return compute_ps + communication_ps() + wait_ps + bubble_ps; }
  // Returns the share of the time that is exposed communication, R_comm.
  double CommunicationShare() const {
    return total_ps() == 0
               ? 0
               : static_cast<double>(communication_ps()) / static_cast<double>(total_ps());
  }
  TimeBreakdown& operator+=(const TimeBreakdown& other) {
    compute_ps += other.compute_ps;
    tensor_ps += other.tensor_ps;
    expert_ps += other.expert_ps;
    pipeline_ps += other.pipeline_ps;
    data_ps += other.data_ps;
    wait_ps += other.wait_ps;
    bubble_ps += other.bubble_ps;
    overlap_ps += other.overlap_ps;
    return *this;
  }
};

// Holds the time breakdown of a plan's job: `parts` is the closed-form estimate over all
// iterations, `simulated` the result for the same rank by iteration. `simulated` is empty if the
// job did not complete or was restarted.
struct EstimateResult {
  TimeBreakdown parts;
  uint32_t rank = 0;
  uint64_t iterations = 1;
  std::vector<TimeBreakdown> simulated{};
};

// Describes the restarts of a job that may restart.
struct RestartResult {
  uint32_t restarts = 0;
  // The time lost to restarts: repeating the work since the last checkpoint (rework), waiting until
  // all ranks had ended (detection) and until processes ran again (requeue), and loading the
  // checkpoint. `save_ps` is the time of saving checkpoints, with or without failures.
  int64_t rework_ps = 0;
  int64_t detection_ps = 0;
  int64_t requeue_ps = 0;
  int64_t load_ps = 0;
  int64_t save_ps = 0;
  uint32_t servers_replaced = 0;  // by spares
  std::string last_failure;
};

// Describes how a job was aborted because of an error.
struct AbortResult {
  int64_t first_error_ps = -1;  // when the first rank received one; -1 if none did
  uint32_t ranks_with_error = 0;
  uint32_t ranks_hung = 0;   // in a collective, without an error
  int64_t detection_ps = 0;  // from the first error until the last hung rank had been ended
};

// Describes one of the jobs of a run. A job ends with its last operation or when it is aborted.
struct JobResult {
  std::string name;
  RunStatus status = RunStatus::kCompleted;
  uint32_t gpu_count = 0;
  int64_t start_ps = 0;
  int64_t end_ps = 0;
  int64_t baseline_end_ps = 0;  // of the paired fault-free run; 0 without one or if it did not end
  int64_t alone_end_ps = 0;     // alone on the same GPUs, without faults; 0 without such a run
  AbortResult abort{};
  RestartResult restart{};
};

// Describes one shard of a divided run and the process that simulated it.
struct ShardResult {
  uint64_t servers = 0;
  uint64_t switches = 0;   // those outside of servers
  uint64_t events = 0;     // those that an undivided run would have had too
  uint64_t crossings = 0;  // packets and pause frames sent to other shards
  double cpu_seconds = 0;
  double waiting_seconds = 0;  // wall-clock time, for other shards
};

// Describes how a run was divided into shards. A run on one core has none.
struct DivisionResult {
  int64_t lookahead_ps = 0;  // the length of a window
  uint64_t windows = 0;      // at the end of each, the shards synchronized
  // The sum over all windows of the events of that window's busiest shard. `events` divided by it
  // bounds the speed-up with one core per shard.
  uint64_t serial_events = 0;
  std::vector<ShardResult> shards{};
};

// Names what crosses links in a run.
enum class RunMode : uint8_t {
  kPacket,
  kFlow,  // flows with max-min fair rates
};
constexpr const char* RunModeName(RunMode mode) {
  return mode == RunMode::kFlow ? "flow" : "packet";
}

// Holds all that a run measured.
struct RunResult {
  std::string scenario;
  uint64_t seed = 0;
  RunMode mode = RunMode::kPacket;
  RunStatus status = RunStatus::kCompleted;
  std::string status_detail;    // why it was aborted, or the chains of waits; one or several lines
  std::string fingerprint;      // 32 hex digits
  std::string trajectory_hash;  // 16 hex digits; empty if packets were not hashed
  int64_t simulated_time_ps = 0;
  double wall_seconds = 0;
  double cpu_seconds = 0;
  double baseline_cpu_seconds = 0;  // of all paired runs
  uint64_t peak_rss_bytes = 0;
  uint32_t threads = 1;     // on which it was simulated
  std::string threads_why;  // why fewer than requested; empty if as many
  DivisionResult division;
  bool has_baseline = false;
  int64_t baseline_simulated_time_ps = 0;  // of the fault-free run; 0 if it did not complete
  // Simulated time of the paired run with the same faults in which receivers get all packets; 0 if
  // there was none.
  int64_t reliable_simulated_time_ps = 0;
  std::string fabric;  // name of the preset, file or generator
  uint32_t server_count = 0;
  uint32_t gpu_count = 0;
  uint64_t events = 0;
  uint64_t packets = 0;
  uint64_t packet_hops = 0;
  uint64_t control_hops = 0;
  uint64_t short_form_hops = 0;  // hops that took one event
  uint64_t calls = 0;            // one per rank and collective
  uint64_t simulated_collectives = 0;
  uint64_t replayed_collectives = 0;
  // These count the replayed collectives that their part of the network had been through before,
  // and those that an equal part had. The whole network had been through the others.
  uint64_t replayed_by_partition = 0;
  uint64_t replayed_by_like_partition = 0;
  uint64_t verified_episodes = 0;  // of the replay cache, simulated once more and found equal
  // Names an owner of state that prevents the run, or the collectives that involve it, from being
  // replayed from the cache, and the reason.
  struct NeverReplayed {
    std::string owner;
    std::string why;
  };
  std::vector<NeverReplayed> never_replayed;
  // The payload delivered between different GPUs: that of all pairs, and the bytes that switches of
  // the network delivered.
  uint64_t payload_bytes = 0;
  uint64_t payload_left_server_bytes = 0;
  uint64_t payload_reached_spine_bytes = 0;
  std::vector<JobResult> jobs;  // one or more
  // Holds the texts of `collectives` and `links`; copies of the result share it.
  std::shared_ptr<TextPool> texts = std::make_shared<TextPool>();
  std::vector<CollectiveResult> collectives;
  std::vector<LinkResult> links;
  std::vector<PairResult> pairs;
  std::vector<InNetworkResult> in_network;
  std::vector<DropResult> drops;
  std::vector<FaultResult> faults;
  std::vector<WaitResult> waits;
  TransportCounters transport;
  TrafficResult traffic;
  TimeSeries series;                      // without bins if not requested
  std::vector<TransferResult> transfers;  // a sample, ascending by ready_ps
  uint64_t transfers_seen = 0;            // the number from which `transfers` was sampled
  Conservation conservation;
  std::optional<EstimateResult> estimate;  // of a plan's job
  std::vector<std::string> notes;  // caveats for the reader (assumed, reconstructed, no effect)
};

}  // namespace railyard
