// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/writers/summary.h"

#include <initializer_list>
#include <optional>
#include <utility>

#include "analysis/metrics/job_metrics.h"
#include "analysis/metrics/run_metrics.h"
#include "analysis/metrics/traffic_metrics.h"
#include "analysis/writers/json_writer.h"
#include "analysis/writers/known_time.h"

namespace railyard {

namespace {

class SummaryVisit {
 public:
  SummaryVisit(const RunResult& result, FigureSink& sink) : result_(result), sink_(sink) {}

  void Visit() {
    sink_.StartObject();
    VisitRun();
    VisitCollectives();
    VisitKinds();
    VisitTiers();
    VisitPairs();
    VisitDrops();
    VisitTransport();
    VisitFaults();
    VisitJobs();
    VisitPayload();
    VisitConservation();
    VisitEstimate();
    VisitTraffic();
    VisitInNetwork();
    VisitMeasured();
    sink_.EndObject();
  }

 private:
  void VisitRun() {
    sink_.Number("schema_version", kSummarySchemaVersion);
    sink_.Text("scenario", result_.scenario);
    sink_.Number("seed", result_.seed);
    sink_.Text("mode", RunModeName(result_.mode));
    sink_.Text("fingerprint", result_.fingerprint);
    VisitTrajectory();
    sink_.Text("status", RunStatusName(result_.status));
    sink_.Signed("simulated_time_ps", result_.simulated_time_ps);
    sink_.Real("wall_seconds", result_.wall_seconds);
    sink_.Real("cpu_seconds", result_.cpu_seconds);
    sink_.Real("baseline_cpu_seconds", result_.baseline_cpu_seconds);
    sink_.Number("peak_rss_bytes", result_.peak_rss_bytes);
    sink_.Number("threads", result_.threads);
    sink_.Text("threads_why", result_.threads_why);
    VisitDivision();
    sink_.Number("events", result_.events);
    sink_.Number("packet_hops", result_.packet_hops);
    sink_.Number("control_hops", result_.control_hops);
    sink_.Real("short_form_share", ShortFormShare(result_));
    sink_.Number("packets", result_.packets);
  }

  void VisitTrajectory() {
    if (result_.trajectory_hash.empty()) {
      sink_.Null("trajectory_hash");
    } else {
      sink_.Text("trajectory_hash", result_.trajectory_hash);
    }
  }

  void VisitDivision() {
    const DivisionResult& division = result_.division;
    if (division.shards.empty()) {
      sink_.Null("division");
      return;
    }
    sink_.StartObject("division");
    sink_.Signed("lookahead_ps", division.lookahead_ps);
    sink_.Number("windows", division.windows);
    sink_.Number("serial_events", division.serial_events);
    sink_.StartArray("shards");
    for (const ShardResult& shard : division.shards) {
      sink_.StartObject();
      sink_.Number("servers", shard.servers);
      sink_.Number("switches", shard.switches);
      sink_.Number("events", shard.events);
      sink_.Number("crossings", shard.crossings);
      sink_.Real("cpu_seconds", shard.cpu_seconds);
      sink_.Real("waiting_seconds", shard.waiting_seconds);
      sink_.EndObject();
    }
    sink_.EndArray();
    sink_.EndObject();
  }

  template <typename Number, typename Group>
  void PutParts(const char* name, const std::optional<Group>& group,
                std::initializer_list<std::pair<const char*, Number Group::*>> parts) {
    sink_.StartObject(name);
    for (const auto& [key, part] : parts) {
      Put(key, group ? std::optional<Number>((*group).*part) : std::nullopt);
    }
    sink_.EndObject();
  }
  void Put(const char* key, std::optional<int64_t> value) { sink_.Signed(key, value); }
  void Put(const char* key, std::optional<double> value) { sink_.Real(key, value); }

  void PutDurations(const std::optional<DurationStatistics>& durations,
                    const char* name = "duration_ps") {
    PutParts<int64_t>(name, durations,
                      {{"min", &DurationStatistics::min_ps},
                       {"p50", &DurationStatistics::p50_ps},
                       {"p90", &DurationStatistics::p90_ps},
                       {"p99", &DurationStatistics::p99_ps},
                       {"p999", &DurationStatistics::p999_ps},
                       {"max", &DurationStatistics::max_ps}});
  }
  void PutStretches(const std::optional<StretchStatistics>& stretches,
                    const char* name = "stretch") {
    PutParts<double>(name, stretches,
                     {{"mean", &StretchStatistics::mean},
                      {"p50", &StretchStatistics::p50},
                      {"p99", &StretchStatistics::p99},
                      {"p999", &StretchStatistics::p999},
                      {"max", &StretchStatistics::max}});
  }
  void PutRates(const std::optional<RateStatistics>& rates, const char* name) {
    PutParts<double>(name, rates,
                     {{"min", &RateStatistics::min},
                      {"p50", &RateStatistics::p50},
                      {"max", &RateStatistics::max}});
  }

  void VisitCollectives() {
    const CollectiveTotals totals = TotalOfCollectives(result_);
    sink_.StartObject("collectives");
    sink_.Number("count", totals.count);
    sink_.Number("calls", result_.calls);
    sink_.Number("simulated", result_.simulated_collectives);
    sink_.Number("replayed", result_.replayed_collectives);
    sink_.StartObject("replayed_by");
    sink_.Number("network", result_.replayed_collectives - result_.replayed_by_partition -
                                result_.replayed_by_like_partition);
    sink_.Number("part", result_.replayed_by_partition);
    sink_.Number("like_part", result_.replayed_by_like_partition);
    sink_.EndObject();
    sink_.Number("verified_episodes", result_.verified_episodes);
    sink_.StartArray("never_replayed");
    for (const RunResult::NeverReplayed& of : result_.never_replayed) {
      sink_.StartObject();
      sink_.Text("owner", of.owner);
      sink_.Text("why", of.why);
      sink_.EndObject();
    }
    sink_.EndArray();
    PutDurations(totals.durations);
    PutStretches(totals.stretches);
    sink_.EndObject();
  }

  void VisitKinds() {
    sink_.StartArray("by_kind");
    for (const CollectiveTotals& totals : TotalsByKind(result_)) {
      sink_.StartObject();
      sink_.Text("kind", totals.kind);
      sink_.Number("count", totals.count);
      sink_.Number("bytes", totals.bytes);
      PutDurations(totals.durations);
      PutStretches(totals.stretches);
      PutRates(totals.busbw_GBps, "busbw_GBps");
      sink_.EndObject();
    }
    sink_.EndArray();
  }

  void VisitTiers() {
    sink_.StartArray("tiers");
    for (const TierTotals& tier : TotalsByTier(result_)) {
      sink_.StartObject();
      sink_.Text("tier", tier.tier);
      sink_.Number("payload_bytes", tier.payload_bytes);
      sink_.Number("header_bytes", tier.header_bytes);
      sink_.Number("retransmitted_bytes", tier.retransmitted_bytes);
      sink_.Real("payload_share", tier.payload_share);
      sink_.EndObject();
    }
    sink_.EndArray();
  }

  void VisitPairs() {
    const PairCounts pairs = CountPairs(result_);
    sink_.StartObject("pairs");
    sink_.Number("active", pairs.active);
    sink_.Number("possible", pairs.possible);
    sink_.EndObject();
  }

  void VisitInNetwork() {
    sink_.StartArray("in_network");
    for (const InNetworkTotals& total : TotalsInNetwork(result_)) {
      sink_.StartObject();
      sink_.Text("switches", total.switches);
      sink_.Text("operation", total.operation);
      sink_.Number("sent_bytes", total.sent_bytes);
      sink_.Number("received_bytes", total.received_bytes);
      sink_.EndObject();
    }
    sink_.EndArray();
  }

  void VisitMeasured() {
    const std::vector<MeasuredTotals> sizes = TotalsOfMeasured(result_);
    sink_.StartObject("measured");
    uint64_t count = 0;
    for (const MeasuredTotals& totals : sizes) count += totals.count;
    sink_.Number("count", count);
    PutRates(MeasuredRatios(result_), "ratio");
    sink_.StartArray("by_size");
    for (const MeasuredTotals& totals : sizes) {
      sink_.StartObject();
      sink_.Text("kind", totals.kind);
      sink_.Number("bytes", totals.bytes);
      sink_.Number("ranks", totals.rank_count);
      sink_.Number("count", totals.count);
      sink_.Signed("measured_p50_ps", totals.measured_p50_ps);
      sink_.Signed("simulated_p50_ps", totals.simulated_p50_ps);
      PutRates(totals.ratios, "ratio");
      sink_.EndObject();
    }
    sink_.EndArray();
    sink_.EndObject();
  }

  void VisitDrops() {
    sink_.StartArray("drops");
    for (const DropResult& drop : result_.drops) {
      sink_.StartObject();
      sink_.Text("reason", drop.reason);
      sink_.Number("count", drop.packets);
      sink_.EndObject();
    }
    sink_.EndArray();
  }

  void VisitTransport() {
    const TransportCounters& transport = result_.transport;
    sink_.StartObject("transport");
    sink_.Number("retransmitted_packets", transport.retransmitted_packets);
    sink_.Number("timeouts", transport.timeouts);
    sink_.Number("ecn_marked", transport.ecn_marked);
    sink_.Number("cnp", transport.cnp);
    sink_.Number("pfc_pause_ps", transport.pfc_pause_ps);
    sink_.Number("qp_errors", transport.qp_errors);
    sink_.Number("port_failovers", transport.port_failovers);
    sink_.Number("port_recoveries", transport.port_recoveries);
    sink_.Number("nic_failovers", transport.nic_failovers);
    sink_.Number("missing_packets", transport.missing_packets);
    sink_.Number("missing_bytes", transport.missing_bytes);
    const bool has_reliable = result_.reliable_simulated_time_ps != 0;
    sink_.Signed("reliable_time_ps",
                 has_reliable ? std::optional(result_.reliable_simulated_time_ps) : std::nullopt);
    sink_.Signed("saved_ps", has_reliable ? std::optional(result_.reliable_simulated_time_ps -
                                                          result_.simulated_time_ps)
                                          : std::nullopt);
    sink_.EndObject();
  }

  void VisitFaults() {
    sink_.StartArray("faults");
    const std::vector<AddedTime> added = AddedByFaults(result_);
    for (size_t i = 0; i < result_.faults.size(); ++i) {
      const FaultResult& fault = result_.faults[i];
      sink_.StartObject();
      sink_.Text("name", fault.name);
      sink_.Text("kind", fault.kind);
      sink_.Text("target", fault.target);
      sink_.Signed("from_ps", UnlessNever(fault.from_ps));
      sink_.Signed("until_ps", UnlessNever(fault.until_ps));
      sink_.Number("begins", fault.begins);
      sink_.Number("dropped_packets", fault.dropped_packets);
      sink_.Number("retransmitted_bytes", fault.retransmitted_bytes);
      sink_.Number("collectives_hit", fault.collectives.size());
      sink_.Number("ranks_hit", fault.ranks_hit);
      sink_.Number("bytes_hit", fault.bytes_hit);
      sink_.Signed("time_to_detect_ps", UnlessNegative(fault.time_to_detect_ps));
      sink_.Signed("first_retransmission_ps", UnlessNegative(fault.first_retransmission_ps));
      const StretchesAroundFault around = StretchesAround(result_, fault);
      PutStretches(around.before, "stretch_before");
      PutStretches(around.during, "stretch_during");
      PutStretches(around.after, "stretch_after");
      sink_.Signed("time_to_recover_ps", UnlessNegative(fault.time_to_recover_ps));
      sink_.Signed("time_to_full_busbw_ps", TimeToFullBusbwPs(result_, fault));
      PutAdded(added.empty() ? std::nullopt : std::optional(added[i]));
      sink_.EndObject();
    }
    sink_.EndArray();
  }

  void PutAdded(const std::optional<AddedTime>& added) {
    PutParts<int64_t>("added_ps", added,
                      {{"queueing", &AddedTime::queueing_ps},
                       {"retransmission", &AddedTime::retransmission_ps},
                       {"timeout", &AddedTime::timeout_ps},
                       {"rerouting", &AddedTime::rerouting_ps},
                       {"slow_peer", &AddedTime::slow_peer_ps},
                       {"other", &AddedTime::other_ps}});
  }

  void VisitJobs() {
    sink_.StartArray("jobs");
    for (uint32_t i = 0; i < result_.jobs.size(); ++i) VisitJob(i);
    sink_.EndArray();
  }

  void VisitJob(uint32_t index) {
    const JobResult& job = result_.jobs[index];
    const JobOutcome outcome = OutcomeOfJob(result_, job);
    sink_.StartObject();
    sink_.Text("name", job.name);
    sink_.Text("status", RunStatusName(job.status));
    sink_.Number("gpus", job.gpu_count);
    sink_.Signed("start_ps", job.start_ps);
    sink_.Signed("end_ps", job.end_ps);
    sink_.Signed("alone_time_ps", AloneTimePs(job));
    sink_.Real("interference", Interference(result_, job));
    PutStretches(InterferenceOfCollectives(result_, index), "collective_interference");
    const RestartResult& restart = job.restart;
    sink_.Number("restarts", restart.restarts);
    sink_.Real("goodput", outcome.goodput);
    sink_.Signed("lost_ps", outcome.lost_ps);
    sink_.Real("effective_training_time_ratio", outcome.effective_training_time_ratio);
    sink_.Signed("rework_ps", restart.rework_ps);
    sink_.Signed("detection_ps", restart.detection_ps + job.abort.detection_ps);
    sink_.Signed("requeue_ps", restart.requeue_ps);
    sink_.Signed("load_ps", restart.load_ps);
    sink_.Signed("save_ps", restart.save_ps);
    sink_.Number("servers_replaced", restart.servers_replaced);
    const AbortResult& abort = job.abort;
    sink_.Signed("first_error_ps", UnlessNegative(abort.first_error_ps));
    sink_.Number("ranks_with_error", abort.ranks_with_error);
    sink_.Number("ranks_hung", abort.ranks_hung);
    sink_.EndObject();
  }

  void VisitPayload() {
    sink_.StartObject("payload");
    sink_.Number("total_bytes", result_.payload_bytes);
    sink_.Real("left_server_share",
               Share(result_.payload_left_server_bytes, result_.payload_bytes));
    sink_.Real("reached_spine_share",
               Share(result_.payload_reached_spine_bytes, result_.payload_bytes));
    sink_.EndObject();
  }

  void VisitEstimate() {
    if (!result_.estimate) {
      sink_.Null("estimate");
      return;
    }
    const EstimateResult& estimate = *result_.estimate;
    sink_.StartObject("estimate");
    VisitParts(estimate.parts);
    sink_.Real("difference", EstimateDifference(result_));
    sink_.Number("rank", estimate.rank);
    if (estimate.simulated.empty()) {
      sink_.Null("simulated");
    } else {
      sink_.StartObject("simulated");
      VisitParts(SimulatedParts(estimate));
      sink_.Number("iterations", estimate.simulated.size());
      sink_.EndObject();
    }
    sink_.EndObject();
  }

  void VisitParts(const TimeBreakdown& parts) {
    sink_.Signed("total_ps", parts.total_ps());
    sink_.Signed("compute_ps", parts.compute_ps);
    sink_.Signed("tensor_ps", parts.tensor_ps);
    sink_.Signed("expert_ps", parts.expert_ps);
    sink_.Signed("pipeline_ps", parts.pipeline_ps);
    sink_.Signed("data_ps", parts.data_ps);
    sink_.Signed("wait_ps", parts.wait_ps);
    sink_.Signed("bubble_ps", parts.bubble_ps);
    sink_.Signed("overlap_ps", parts.overlap_ps);
    sink_.Real("communication_share", parts.CommunicationShare());
  }

  void VisitTraffic() {
    const TrafficFigures traffic = TrafficOf(result_);
    sink_.StartObject("traffic");
    sink_.Real("pair_entropy_bits", traffic.pair_entropy_bits);
    sink_.Real("pair_entropy_share", traffic.pair_entropy_share);
    sink_.Number("links_used", traffic.links_used);
    PutStretches(traffic.flow_entropy_bits, "flow_entropy_bits");
    PutDurations(traffic.link_periods, "link_period_ps");
    PutStretches(traffic.link_duty, "link_duty");
    PutSizes(traffic.message_sizes);
    sink_.Number("iterations", traffic.iterations);
    PutStretches(traffic.drift, "drift");
    PutStretches(traffic.all_to_all_drift, "all_to_all_drift");
    PutStretches(traffic.all_to_all_imbalance, "all_to_all_imbalance");
    sink_.EndObject();
  }

  void PutSizes(const std::optional<SizeStatistics>& sizes) {
    sink_.StartObject("message_bytes");
    sink_.Number("count", sizes ? sizes->count : 0);
    sink_.Real("mean", sizes ? std::optional(sizes->mean) : std::nullopt);
    const auto put = [&](const char* key, uint64_t SizeStatistics::*figure) {
      sink_.Number(key, sizes ? std::optional((*sizes).*figure) : std::nullopt);
    };
    put("min", &SizeStatistics::min);
    put("p50", &SizeStatistics::p50);
    put("p90", &SizeStatistics::p90);
    put("p99", &SizeStatistics::p99);
    put("p999", &SizeStatistics::p999);
    put("max", &SizeStatistics::max);
    sink_.EndObject();
  }

  void VisitConservation() {
    const Conservation& bytes = result_.conservation;
    sink_.StartObject("conservation");
    sink_.Number("injected_bytes", bytes.injected_bytes);
    sink_.Number("replicated_bytes", bytes.replicated_bytes);
    sink_.Number("delivered_bytes", bytes.delivered_bytes);
    sink_.Number("reduced_bytes", bytes.reduced_bytes);
    sink_.Number("dropped_bytes", bytes.dropped_bytes);
    sink_.Number("in_flight_bytes", bytes.in_flight_bytes);
    sink_.Flag("ok", bytes.Holds());
    sink_.EndObject();
  }

  const RunResult& result_;
  FigureSink& sink_;
};

}  // namespace

void VisitSummary(const RunResult& result, FigureSink& sink) { SummaryVisit(result, sink).Visit(); }

std::string SummaryJson(const RunResult& result) {
  JsonWriter json;
  VisitSummary(result, json);
  return json.Take();
}

}  // namespace railyard
