// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/writers/summary_json.h"

#include <optional>
#include <string_view>

#include "analysis/metrics/job_metrics.h"
#include "analysis/metrics/run_metrics.h"
#include "analysis/metrics/traffic_metrics.h"
#include "analysis/writers/json_writer.h"
#include "simulator/units/units.h"

namespace railyard {

namespace {

class SummaryWriter {
 public:
  explicit SummaryWriter(const RunResult& result) : result_(result) {}

  std::string Write() {
    json_.StartObject();
    WriteRun();
    WriteCollectives();
    WriteKinds();
    WriteTiers();
    WritePairs();
    WriteDrops();
    WriteTransport();
    WriteFaults();
    WriteJobs();
    WritePayload();
    WriteConservation();
    WriteEstimate();
    WriteTraffic();
    WriteInNetwork();
    WriteMeasured();
    json_.EndObject();
    return json_.Take();
  }

 private:
  void WriteRun() {
    json_.Number("schema_version", kSummarySchemaVersion);
    json_.Text("scenario", result_.scenario);
    json_.Number("seed", result_.seed);
    json_.Text("mode", RunModeName(result_.mode));
    json_.Text("fingerprint", result_.fingerprint);
    json_.Text("status", RunStatusName(result_.status));
    json_.Signed("simulated_time_ps", result_.simulated_time_ps);
    json_.Real("wall_seconds", result_.wall_seconds);
    json_.Real("cpu_seconds", result_.cpu_seconds);
    json_.Real("baseline_cpu_seconds", result_.baseline_cpu_seconds);
    json_.Number("peak_rss_bytes", result_.peak_rss_bytes);
    json_.Number("threads", result_.threads);
    json_.Text("threads_why", result_.threads_why);
    WriteDivision();
    json_.Number("events", result_.events);
    json_.Number("packet_hops", result_.packet_hops);
    json_.Number("control_hops", result_.control_hops);
    json_.Real("short_form_share", ShortFormShare(result_));
    json_.Number("packets", result_.packets);
  }

  void WriteDivision() {
    const DivisionResult& division = result_.division;
    if (division.shards.empty()) {
      json_.Null("division");
      return;
    }
    json_.StartObject("division");
    json_.Signed("lookahead_ps", division.lookahead_ps);
    json_.Number("windows", division.windows);
    json_.Number("serial_events", division.serial_events);
    json_.StartArray("shards");
    for (const ShardResult& shard : division.shards) {
      json_.StartObject();
      json_.Number("servers", shard.servers);
      json_.Number("switches", shard.switches);
      json_.Number("events", shard.events);
      json_.Number("crossings", shard.crossings);
      json_.Real("cpu_seconds", shard.cpu_seconds);
      json_.Real("waiting_seconds", shard.waiting_seconds);
      json_.EndObject();
    }
    json_.EndArray();
    json_.EndObject();
  }

  void PutDurations(const std::optional<DurationStatistics>& durations,
                    const char* name = "duration_ps") {
    json_.StartObject(name);
    const auto put = [&](const char* key, int64_t DurationStatistics::*figure) {
      json_.Signed(key, durations ? std::optional((*durations).*figure) : std::nullopt);
    };
    put("min", &DurationStatistics::min_ps);
    put("p50", &DurationStatistics::p50_ps);
    put("p90", &DurationStatistics::p90_ps);
    put("p99", &DurationStatistics::p99_ps);
    put("p999", &DurationStatistics::p999_ps);
    put("max", &DurationStatistics::max_ps);
    json_.EndObject();
  }
  void PutStretches(const std::optional<StretchStatistics>& stretches,
                    const char* name = "stretch") {
    json_.StartObject(name);
    const auto put = [&](const char* key, double StretchStatistics::*figure) {
      json_.Real(key, stretches ? std::optional((*stretches).*figure) : std::nullopt);
    };
    put("mean", &StretchStatistics::mean);
    put("p50", &StretchStatistics::p50);
    put("p99", &StretchStatistics::p99);
    put("p999", &StretchStatistics::p999);
    put("max", &StretchStatistics::max);
    json_.EndObject();
  }
  void PutRates(const std::optional<RateStatistics>& rates, const char* name) {
    json_.StartObject(name);
    const auto put = [&](const char* key, double RateStatistics::*figure) {
      json_.Real(key, rates ? std::optional((*rates).*figure) : std::nullopt);
    };
    put("min", &RateStatistics::min);
    put("p50", &RateStatistics::p50);
    put("max", &RateStatistics::max);
    json_.EndObject();
  }

  void WriteCollectives() {
    const CollectiveTotals totals = TotalOfCollectives(result_);
    json_.StartObject("collectives");
    json_.Number("count", totals.count);
    json_.Number("calls", result_.calls);
    json_.Number("simulated", result_.simulated_collectives);
    json_.Number("replayed", result_.replayed_collectives);
    json_.StartObject("replayed_by");
    json_.Number("network", result_.replayed_collectives - result_.replayed_by_partition -
                                result_.replayed_by_like_partition);
    json_.Number("part", result_.replayed_by_partition);
    json_.Number("like_part", result_.replayed_by_like_partition);
    json_.EndObject();
    json_.Number("verified_episodes", result_.verified_episodes);
    json_.StartArray("never_replayed");
    for (const RunResult::NeverReplayed& of : result_.never_replayed) {
      json_.StartObject();
      json_.Text("owner", of.owner);
      json_.Text("why", of.why);
      json_.EndObject();
    }
    json_.EndArray();
    PutDurations(totals.durations);
    PutStretches(totals.stretches);
    json_.EndObject();
  }

  void WriteKinds() {
    json_.StartArray("by_kind");
    for (const CollectiveTotals& totals : TotalsByKind(result_)) {
      json_.StartObject();
      json_.Text("kind", totals.kind);
      json_.Number("count", totals.count);
      json_.Number("bytes", totals.bytes);
      PutDurations(totals.durations);
      PutStretches(totals.stretches);
      PutRates(totals.busbw_GBps, "busbw_GBps");
      json_.EndObject();
    }
    json_.EndArray();
  }

  void WriteTiers() {
    json_.StartArray("tiers");
    for (const TierTotals& tier : TotalsByTier(result_)) {
      json_.StartObject();
      json_.Text("tier", tier.tier);
      json_.Number("payload_bytes", tier.payload_bytes);
      json_.Number("header_bytes", tier.header_bytes);
      json_.Number("retransmitted_bytes", tier.retransmitted_bytes);
      json_.Real("payload_share", tier.payload_share);
      json_.EndObject();
    }
    json_.EndArray();
  }

  void WritePairs() {
    const PairCounts pairs = CountPairs(result_);
    json_.StartObject("pairs");
    json_.Number("active", pairs.active);
    json_.Number("possible", pairs.possible);
    json_.EndObject();
  }

  void WriteInNetwork() {
    json_.StartArray("in_network");
    for (const InNetworkTotals& total : TotalsInNetwork(result_)) {
      json_.StartObject();
      json_.Text("switches", total.switches);
      json_.Text("operation", total.operation);
      json_.Number("sent_bytes", total.sent_bytes);
      json_.Number("received_bytes", total.received_bytes);
      json_.EndObject();
    }
    json_.EndArray();
  }

  void WriteMeasured() {
    const std::vector<MeasuredTotals> sizes = TotalsOfMeasured(result_);
    json_.StartObject("measured");
    uint64_t count = 0;
    for (const MeasuredTotals& totals : sizes) count += totals.count;
    json_.Number("count", count);
    PutRates(MeasuredRatios(result_), "ratio");
    json_.StartArray("by_size");
    for (const MeasuredTotals& totals : sizes) {
      json_.StartObject();
      json_.Text("kind", totals.kind);
      json_.Number("bytes", totals.bytes);
      json_.Number("ranks", totals.rank_count);
      json_.Number("count", totals.count);
      json_.Signed("measured_p50_ps", totals.measured_p50_ps);
      json_.Signed("simulated_p50_ps", totals.simulated_p50_ps);
      PutRates(totals.ratios, "ratio");
      json_.EndObject();
    }
    json_.EndArray();
    json_.EndObject();
  }

  void WriteDrops() {
    json_.StartArray("drops");
    for (const DropResult& drop : result_.drops) {
      json_.StartObject();
      json_.Text("reason", drop.reason);
      json_.Number("count", drop.packets);
      json_.EndObject();
    }
    json_.EndArray();
  }

  void WriteTransport() {
    const TransportCounters& transport = result_.transport;
    json_.StartObject("transport");
    json_.Number("retransmitted_packets", transport.retransmitted_packets);
    json_.Number("timeouts", transport.timeouts);
    json_.Number("ecn_marked", transport.ecn_marked);
    json_.Number("cnp", transport.cnp);
    json_.Number("pfc_pause_ps", transport.pfc_pause_ps);
    json_.Number("qp_errors", transport.qp_errors);
    json_.Number("port_failovers", transport.port_failovers);
    json_.Number("port_recoveries", transport.port_recoveries);
    json_.Number("nic_failovers", transport.nic_failovers);
    json_.Number("missing_packets", transport.missing_packets);
    json_.Number("missing_bytes", transport.missing_bytes);
    const bool has_reliable = result_.reliable_simulated_time_ps != 0;
    json_.Signed("reliable_time_ps",
                 has_reliable ? std::optional(result_.reliable_simulated_time_ps) : std::nullopt);
    json_.Signed("saved_ps", has_reliable ? std::optional(result_.reliable_simulated_time_ps -
                                                          result_.simulated_time_ps)
                                          : std::nullopt);
    json_.EndObject();
  }

  void WriteFaults() {
    json_.StartArray("faults");
    const std::vector<AddedTime> added = AddedByFaults(result_);
    for (size_t i = 0; i < result_.faults.size(); ++i) {
      const FaultResult& fault = result_.faults[i];
      json_.StartObject();
      json_.Text("name", fault.name);
      json_.Text("kind", fault.kind);
      json_.Text("target", fault.target);
      json_.Signed("from_ps",
                   fault.from_ps == kNeverPs ? std::nullopt : std::optional(fault.from_ps));
      json_.Signed("until_ps",
                   fault.until_ps == kNeverPs ? std::nullopt : std::optional(fault.until_ps));
      json_.Number("begins", fault.begins);
      json_.Number("dropped_packets", fault.dropped_packets);
      json_.Number("retransmitted_bytes", fault.retransmitted_bytes);
      json_.Number("collectives_hit", fault.collectives.size());
      json_.Number("ranks_hit", fault.ranks_hit);
      json_.Number("bytes_hit", fault.bytes_hit);
      const auto since_begin = [](int64_t time_ps) {
        return time_ps < 0 ? std::nullopt : std::optional(time_ps);
      };
      json_.Signed("time_to_detect_ps", since_begin(fault.time_to_detect_ps));
      json_.Signed("first_retransmission_ps", since_begin(fault.first_retransmission_ps));
      const StretchesAroundFault around = StretchesAround(result_, fault);
      PutStretches(around.before, "stretch_before");
      PutStretches(around.during, "stretch_during");
      PutStretches(around.after, "stretch_after");
      json_.Signed("time_to_recover_ps", fault.time_to_recover_ps < 0
                                             ? std::nullopt
                                             : std::optional(fault.time_to_recover_ps));
      json_.Signed("time_to_full_busbw_ps", TimeToFullBusbwPs(result_, fault));
      PutAdded(added.empty() ? std::nullopt : std::optional(added[i]));
      json_.EndObject();
    }
    json_.EndArray();
  }

  void PutAdded(const std::optional<AddedTime>& added) {
    json_.StartObject("added_ps");
    const auto put = [&](const char* key, int64_t AddedTime::*part) {
      json_.Signed(key, added ? std::optional((*added).*part) : std::nullopt);
    };
    put("queueing", &AddedTime::queueing_ps);
    put("retransmission", &AddedTime::retransmission_ps);
    put("timeout", &AddedTime::timeout_ps);
    put("rerouting", &AddedTime::rerouting_ps);
    put("slow_peer", &AddedTime::slow_peer_ps);
    put("other", &AddedTime::other_ps);
    json_.EndObject();
  }

  void WriteJobs() {
    json_.StartArray("jobs");
    for (uint32_t i = 0; i < result_.jobs.size(); ++i) WriteJob(i);
    json_.EndArray();
  }

  void WriteJob(uint32_t index) {
    const JobResult& job = result_.jobs[index];
    const JobOutcome outcome = OutcomeOfJob(result_, job);
    json_.StartObject();
    json_.Text("name", job.name);
    json_.Text("status", RunStatusName(job.status));
    json_.Number("gpus", job.gpu_count);
    json_.Signed("start_ps", job.start_ps);
    json_.Signed("end_ps", job.end_ps);
    json_.Signed("alone_time_ps", AloneTimePs(job));
    json_.Real("interference", Interference(result_, job));
    PutStretches(InterferenceOfCollectives(result_, index), "collective_interference");
    const RestartResult& restart = job.restart;
    json_.Number("restarts", restart.restarts);
    json_.Real("goodput", outcome.goodput);
    json_.Signed("lost_ps", outcome.lost_ps);
    json_.Real("effective_training_time_ratio", outcome.effective_training_time_ratio);
    json_.Signed("rework_ps", restart.rework_ps);
    json_.Signed("detection_ps", restart.detection_ps + job.abort.detection_ps);
    json_.Signed("requeue_ps", restart.requeue_ps);
    json_.Signed("load_ps", restart.load_ps);
    json_.Signed("save_ps", restart.save_ps);
    json_.Number("servers_replaced", restart.servers_replaced);
    const AbortResult& abort = job.abort;
    json_.Signed("first_error_ps",
                 abort.first_error_ps < 0 ? std::nullopt : std::optional(abort.first_error_ps));
    json_.Number("ranks_with_error", abort.ranks_with_error);
    json_.Number("ranks_hung", abort.ranks_hung);
    json_.EndObject();
  }

  void WritePayload() {
    json_.StartObject("payload");
    json_.Number("total_bytes", result_.payload_bytes);
    json_.Real("left_server_share",
               Share(result_.payload_left_server_bytes, result_.payload_bytes));
    json_.Real("reached_spine_share",
               Share(result_.payload_reached_spine_bytes, result_.payload_bytes));
    json_.EndObject();
  }

  void WriteEstimate() {
    if (!result_.estimate) {
      json_.Null("estimate");
      return;
    }
    const EstimateResult& estimate = *result_.estimate;
    json_.StartObject("estimate");
    WriteParts(estimate.parts);
    json_.Real("difference", EstimateDifference(result_));
    json_.Number("rank", estimate.rank);
    if (estimate.simulated.empty()) {
      json_.Null("simulated");
    } else {
      json_.StartObject("simulated");
      WriteParts(SimulatedParts(estimate));
      json_.Number("iterations", estimate.simulated.size());
      json_.EndObject();
    }
    json_.EndObject();
  }

  void WriteParts(const TimeBreakdown& parts) {
    json_.Signed("total_ps", parts.total_ps());
    json_.Signed("compute_ps", parts.compute_ps);
    json_.Signed("tensor_ps", parts.tensor_ps);
    json_.Signed("expert_ps", parts.expert_ps);
    json_.Signed("pipeline_ps", parts.pipeline_ps);
    json_.Signed("data_ps", parts.data_ps);
    json_.Signed("wait_ps", parts.wait_ps);
    json_.Signed("bubble_ps", parts.bubble_ps);
    json_.Signed("overlap_ps", parts.overlap_ps);
    json_.Real("communication_share", parts.CommunicationShare());
  }

  void WriteTraffic() {
    const TrafficFigures traffic = TrafficOf(result_);
    json_.StartObject("traffic");
    json_.Real("pair_entropy_bits", traffic.pair_entropy_bits);
    json_.Real("pair_entropy_share", traffic.pair_entropy_share);
    json_.Number("links_used", traffic.links_used);
    PutStretches(traffic.flow_entropy_bits, "flow_entropy_bits");
    PutDurations(traffic.link_periods, "link_period_ps");
    PutStretches(traffic.link_duty, "link_duty");
    PutSizes(traffic.message_sizes);
    json_.Number("iterations", traffic.iterations);
    PutStretches(traffic.drift, "drift");
    PutStretches(traffic.all_to_all_drift, "all_to_all_drift");
    PutStretches(traffic.all_to_all_imbalance, "all_to_all_imbalance");
    json_.EndObject();
  }

  void PutSizes(const std::optional<SizeStatistics>& sizes) {
    json_.StartObject("message_bytes");
    json_.Number("count", sizes ? sizes->count : 0);
    json_.Real("mean", sizes ? std::optional(sizes->mean) : std::nullopt);
    const auto put = [&](const char* key, uint64_t SizeStatistics::*figure) {
      json_.Number(key, sizes ? std::optional((*sizes).*figure) : std::nullopt);
    };
    put("min", &SizeStatistics::min);
    put("p50", &SizeStatistics::p50);
    put("p90", &SizeStatistics::p90);
    put("p99", &SizeStatistics::p99);
    put("p999", &SizeStatistics::p999);
    put("max", &SizeStatistics::max);
    json_.EndObject();
  }

  void WriteConservation() {
    const Conservation& bytes = result_.conservation;
    json_.StartObject("conservation");
    json_.Number("injected_bytes", bytes.injected_bytes);
    json_.Number("replicated_bytes", bytes.replicated_bytes);
    json_.Number("delivered_bytes", bytes.delivered_bytes);
    json_.Number("reduced_bytes", bytes.reduced_bytes);
    json_.Number("dropped_bytes", bytes.dropped_bytes);
    json_.Number("in_flight_bytes", bytes.in_flight_bytes);
    json_.Flag("ok", bytes.Holds());
    json_.EndObject();
  }

  const RunResult& result_;
  JsonWriter json_;
};

}  // namespace

std::string SummaryJson(const RunResult& result) { return SummaryWriter(result).Write(); }

}  // namespace railyard
