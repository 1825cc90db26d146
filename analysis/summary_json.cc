// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/summary_json.h"

#include <optional>
#include <string_view>

#include <rapidjson/encodings.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>

#include "analysis/job_metrics.h"
#include "analysis/run_metrics.h"
#include "analysis/traffic_metrics.h"
#include "analysis/utf8.h"
#include "simulator/diagnostics/check.h"
#include "simulator/units/units.h"

namespace railyard {

namespace {

class SummaryWriter {
 public:
  explicit SummaryWriter(const RunResult& result) : result_(result), writer_(buffer_) {
    writer_.SetIndent(' ', 2);
  }

  std::string Write() {
    writer_.StartObject();
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
    writer_.EndObject();
    SIM_CHECK(writer_.IsComplete(), "summary.json is not one whole object");
    return std::string(buffer_.GetString(), buffer_.GetSize()) + "\n";
  }

 private:
  void Key(const char* key) { writer_.Key(key); }
  void Put(const char* key, uint64_t value) {
    Key(key);
    writer_.Uint64(value);
  }
  void PutTime(const char* key, std::optional<int64_t> time_ps) {
    Key(key);
    if (time_ps) {
      writer_.Int64(*time_ps);
    } else {
      writer_.Null();
    }
  }
  void PutReal(const char* key, std::optional<double> value) {
    Key(key);
    if (value) {
      SIM_CHECK(writer_.Double(*value), "not a finite number");
    } else {
      writer_.Null();
    }
  }
  void PutText(const char* key, std::string_view text) {
    Key(key);
    const std::string valid = ToValidUtf8(text);
    writer_.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
  }

  void WriteRun() {
    Put("schema_version", kSummarySchemaVersion);
    PutText("scenario", result_.scenario);
    Put("seed", result_.seed);
    PutText("fingerprint", result_.fingerprint);
    PutText("status", RunStatusName(result_.status));
    PutTime("simulated_time_ps", result_.simulated_time_ps);
    PutReal("wall_seconds", result_.wall_seconds);
    PutReal("cpu_seconds", result_.cpu_seconds);
    PutReal("baseline_cpu_seconds", result_.baseline_cpu_seconds);
    Put("peak_rss_bytes", result_.peak_rss_bytes);
    Put("events", result_.events);
    Put("packet_hops", result_.packet_hops);
    Put("control_hops", result_.control_hops);
    PutReal("short_form_share", ShortFormShare(result_));
    Put("packets", result_.packets);
  }

  void PutDurations(const std::optional<DurationStatistics>& durations,
                    const char* name = "duration_ps") {
    Key(name);
    writer_.StartObject();
    const auto put = [&](const char* key, int64_t DurationStatistics::*figure) {
      PutTime(key, durations ? std::optional((*durations).*figure) : std::nullopt);
    };
    put("min", &DurationStatistics::min_ps);
    put("p50", &DurationStatistics::p50_ps);
    put("p90", &DurationStatistics::p90_ps);
    put("p99", &DurationStatistics::p99_ps);
    put("p999", &DurationStatistics::p999_ps);
    put("max", &DurationStatistics::max_ps);
    writer_.EndObject();
  }
  void PutStretches(const std::optional<StretchStatistics>& stretches,
                    const char* name = "stretch") {
    Key(name);
    writer_.StartObject();
    const auto put = [&](const char* key, double StretchStatistics::*figure) {
      PutReal(key, stretches ? std::optional((*stretches).*figure) : std::nullopt);
    };
    put("mean", &StretchStatistics::mean);
    put("p50", &StretchStatistics::p50);
    put("p99", &StretchStatistics::p99);
    put("p999", &StretchStatistics::p999);
    put("max", &StretchStatistics::max);
    writer_.EndObject();
  }
  void PutBusbw(const std::optional<RateStatistics>& busbw_GBps) {
    Key("busbw_GBps");
    writer_.StartObject();
    const auto put = [&](const char* key, double RateStatistics::*figure) {
      PutReal(key, busbw_GBps ? std::optional((*busbw_GBps).*figure) : std::nullopt);
    };
    put("min", &RateStatistics::min);
    put("p50", &RateStatistics::p50);
    put("max", &RateStatistics::max);
    writer_.EndObject();
  }

  void WriteCollectives() {
    const CollectiveTotals totals = TotalOfCollectives(result_);
    Key("collectives");
    writer_.StartObject();
    Put("count", totals.count);
    Put("calls", result_.calls);
    Put("simulated", result_.simulated_collectives);
    Put("replayed", result_.replayed_collectives);
    PutDurations(totals.durations);
    PutStretches(totals.stretches);
    writer_.EndObject();
  }

  void WriteKinds() {
    Key("by_kind");
    writer_.StartArray();
    for (const CollectiveTotals& totals : TotalsByKind(result_)) {
      writer_.StartObject();
      PutText("kind", totals.kind);
      Put("count", totals.count);
      Put("bytes", totals.bytes);
      PutDurations(totals.durations);
      PutStretches(totals.stretches);
      PutBusbw(totals.busbw_GBps);
      writer_.EndObject();
    }
    writer_.EndArray();
  }

  void WriteTiers() {
    Key("tiers");
    writer_.StartArray();
    for (const TierTotals& tier : TotalsByTier(result_)) {
      writer_.StartObject();
      PutText("tier", tier.tier);
      Put("payload_bytes", tier.payload_bytes);
      Put("header_bytes", tier.header_bytes);
      Put("retransmitted_bytes", tier.retransmitted_bytes);
      PutReal("payload_share", tier.payload_share);
      writer_.EndObject();
    }
    writer_.EndArray();
  }

  void WritePairs() {
    const PairCounts pairs = CountPairs(result_);
    Key("pairs");
    writer_.StartObject();
    Put("active", pairs.active);
    Put("possible", pairs.possible);
    writer_.EndObject();
  }

  void WriteDrops() {
    Key("drops");
    writer_.StartArray();
    for (const DropResult& drop : result_.drops) {
      writer_.StartObject();
      PutText("reason", drop.reason);
      Put("count", drop.packets);
      writer_.EndObject();
    }
    writer_.EndArray();
  }

  void WriteTransport() {
    const TransportCounters& transport = result_.transport;
    Key("transport");
    writer_.StartObject();
    Put("retransmitted_packets", transport.retransmitted_packets);
    Put("timeouts", transport.timeouts);
    Put("ecn_marked", transport.ecn_marked);
    Put("cnp", transport.cnp);
    Put("pfc_pause_ps", transport.pfc_pause_ps);
    Put("qp_errors", transport.qp_errors);
    Put("port_failovers", transport.port_failovers);
    Put("port_recoveries", transport.port_recoveries);
    Put("nic_failovers", transport.nic_failovers);
    Put("missing_packets", transport.missing_packets);
    Put("missing_bytes", transport.missing_bytes);
    const bool has_reliable = result_.reliable_simulated_time_ps != 0;
    PutTime("reliable_time_ps",
            has_reliable ? std::optional(result_.reliable_simulated_time_ps) : std::nullopt);
    PutTime("saved_ps", has_reliable ? std::optional(result_.reliable_simulated_time_ps -
                                                     result_.simulated_time_ps)
                                     : std::nullopt);
    writer_.EndObject();
  }

  void WriteFaults() {
    Key("faults");
    writer_.StartArray();
    const std::vector<AddedTime> added = AddedByFaults(result_);
    for (size_t i = 0; i < result_.faults.size(); ++i) {
      const FaultResult& fault = result_.faults[i];
      writer_.StartObject();
      PutText("name", fault.name);
      PutText("kind", fault.kind);
      PutText("target", fault.target);
      PutTime("from_ps", fault.from_ps == kNeverPs ? std::nullopt : std::optional(fault.from_ps));
      PutTime("until_ps",
              fault.until_ps == kNeverPs ? std::nullopt : std::optional(fault.until_ps));
      Put("begins", fault.begins);
      Put("dropped_packets", fault.dropped_packets);
      Put("retransmitted_bytes", fault.retransmitted_bytes);
      Put("collectives_hit", fault.collectives.size());
      Put("ranks_hit", fault.ranks_hit);
      Put("bytes_hit", fault.bytes_hit);
      const auto since_begin = [](int64_t time_ps) {
        return time_ps < 0 ? std::nullopt : std::optional(time_ps);
      };
      PutTime("time_to_detect_ps", since_begin(fault.time_to_detect_ps));
      PutTime("first_retransmission_ps", since_begin(fault.first_retransmission_ps));
      const StretchesAroundFault around = StretchesAround(result_, fault);
      PutStretches(around.before, "stretch_before");
      PutStretches(around.during, "stretch_during");
      PutStretches(around.after, "stretch_after");
      PutTime("time_to_recover_ps", fault.time_to_recover_ps < 0
                                        ? std::nullopt
                                        : std::optional(fault.time_to_recover_ps));
      PutTime("time_to_full_busbw_ps", TimeToFullBusbwPs(result_, fault));
      PutAdded(added.empty() ? std::nullopt : std::optional(added[i]));
      writer_.EndObject();
    }
    writer_.EndArray();
  }

  void PutAdded(const std::optional<AddedTime>& added) {
    Key("added_ps");
    writer_.StartObject();
    const auto put = [&](const char* key, int64_t AddedTime::*part) {
      PutTime(key, added ? std::optional((*added).*part) : std::nullopt);
    };
    put("queueing", &AddedTime::queueing_ps);
    put("retransmission", &AddedTime::retransmission_ps);
    put("timeout", &AddedTime::timeout_ps);
    put("rerouting", &AddedTime::rerouting_ps);
    put("slow_peer", &AddedTime::slow_peer_ps);
    put("other", &AddedTime::other_ps);
    writer_.EndObject();
  }

  void WriteJobs() {
    Key("jobs");
    writer_.StartArray();
    for (uint32_t i = 0; i < result_.jobs.size(); ++i) WriteJob(i);
    writer_.EndArray();
  }

  void WriteJob(uint32_t index) {
    const JobResult& job = result_.jobs[index];
    const JobOutcome outcome = OutcomeOfJob(result_, job);
    writer_.StartObject();
    PutText("name", job.name);
    PutText("status", RunStatusName(job.status));
    Put("gpus", job.gpu_count);
    PutTime("start_ps", job.start_ps);
    PutTime("end_ps", job.end_ps);
    PutTime("alone_time_ps", AloneTimePs(job));
    PutReal("interference", Interference(result_, job));
    PutStretches(InterferenceOfCollectives(result_, index), "collective_interference");
    const RestartResult& restart = job.restart;
    Put("restarts", restart.restarts);
    PutReal("goodput", outcome.goodput);
    PutTime("lost_ps", outcome.lost_ps);
    PutReal("effective_training_time_ratio", outcome.effective_training_time_ratio);
    PutTime("rework_ps", restart.rework_ps);
    PutTime("detection_ps", restart.detection_ps + job.abort.detection_ps);
    PutTime("requeue_ps", restart.requeue_ps);
    PutTime("load_ps", restart.load_ps);
    PutTime("save_ps", restart.save_ps);
    Put("servers_replaced", restart.servers_replaced);
    const AbortResult& abort = job.abort;
    PutTime("first_error_ps",
            abort.first_error_ps < 0 ? std::nullopt : std::optional(abort.first_error_ps));
    Put("ranks_with_error", abort.ranks_with_error);
    Put("ranks_hung", abort.ranks_hung);
    writer_.EndObject();
  }

  void WritePayload() {
    Key("payload");
    writer_.StartObject();
    Put("total_bytes", result_.payload_bytes);
    PutReal("left_server_share", Share(result_.payload_left_server_bytes, result_.payload_bytes));
    PutReal("reached_spine_share",
            Share(result_.payload_reached_spine_bytes, result_.payload_bytes));
    writer_.EndObject();
  }

  void WriteEstimate() {
    Key("estimate");
    if (!result_.estimate) {
      writer_.Null();
      return;
    }
    const EstimateResult& estimate = *result_.estimate;
    writer_.StartObject();
    PutTime("total_ps", estimate.total_ps());
    PutTime("compute_ps", estimate.compute_ps);
    PutTime("tensor_ps", estimate.tensor_ps);
    PutTime("pipeline_ps", estimate.pipeline_ps);
    PutTime("data_ps", estimate.data_ps);
    PutTime("bubble_ps", estimate.bubble_ps);
    PutReal("difference", EstimateDifference(result_));
    writer_.EndObject();
  }

  void WriteTraffic() {
    const TrafficFigures traffic = TrafficOf(result_);
    Key("traffic");
    writer_.StartObject();
    PutReal("pair_entropy_bits", traffic.pair_entropy_bits);
    PutReal("pair_entropy_share", traffic.pair_entropy_share);
    Put("links_used", traffic.links_used);
    PutStretches(traffic.flow_entropy_bits, "flow_entropy_bits");
    PutDurations(traffic.link_periods, "link_period_ps");
    PutStretches(traffic.link_duty, "link_duty");
    PutSizes(traffic.message_sizes);
    Put("iterations", traffic.iterations);
    PutStretches(traffic.drift, "drift");
    writer_.EndObject();
  }

  void PutSizes(const std::optional<SizeStatistics>& sizes) {
    Key("message_bytes");
    writer_.StartObject();
    Put("count", sizes ? sizes->count : 0);
    PutReal("mean", sizes ? std::optional(sizes->mean) : std::nullopt);
    const auto put = [&](const char* key, uint64_t SizeStatistics::*figure) {
      Key(key);
      if (sizes) {
        writer_.Uint64((*sizes).*figure);
      } else {
        writer_.Null();
      }
    };
    put("min", &SizeStatistics::min);
    put("p50", &SizeStatistics::p50);
    put("p90", &SizeStatistics::p90);
    put("p99", &SizeStatistics::p99);
    put("p999", &SizeStatistics::p999);
    put("max", &SizeStatistics::max);
    writer_.EndObject();
  }

  void WriteConservation() {
    const Conservation& bytes = result_.conservation;
    Key("conservation");
    writer_.StartObject();
    Put("injected_bytes", bytes.injected_bytes);
    Put("replicated_bytes", bytes.replicated_bytes);
    Put("delivered_bytes", bytes.delivered_bytes);
    Put("reduced_bytes", bytes.reduced_bytes);
    Put("dropped_bytes", bytes.dropped_bytes);
    Put("in_flight_bytes", bytes.in_flight_bytes);
    Key("ok");
    writer_.Bool(bytes.Holds());
    writer_.EndObject();
  }

  const RunResult& result_;
  rapidjson::StringBuffer buffer_;
  rapidjson::PrettyWriter<rapidjson::StringBuffer> writer_;
};

}  // namespace

std::string SummaryJson(const RunResult& result) { return SummaryWriter(result).Write(); }

}  // namespace railyard
