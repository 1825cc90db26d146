// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/nccl_tests_table.h"

#include <fmt/format.h>

#include "analysis/writers/json_writer.h"
#include "traces/trace/trace_check.h"
#include "workloads/collectives/collective_sizes.h"

namespace railyard {
namespace {

struct Bandwidths {
  double time_us = 0;
  double algbw = 0;  // GB/s
  double busbw = 0;
};
Bandwidths BandwidthsOf(const PerfReport& report, uint64_t bytes, const TimedRun& outcome) {
  Bandwidths result;
  result.time_us = static_cast<double>(outcome.time_ps) * 1e-6;
  result.algbw = static_cast<double>(bytes) / result.time_us * 1e-3;
  result.busbw = result.algbw * BusbwFactor(KindOf(report.collective), report.ranks);
  return result;
}

bool Reduces(PerfCollective collective) {
  return collective == PerfCollective::kAllReduce || collective == PerfCollective::kReduce ||
         collective == PerfCollective::kReduceScatter;
}

// As wide as nccl-tests has it: two, one or no decimals.
std::string Time(double us) {
  return us < 99.995    ? fmt::format("{:7.2f}", us)
         : us < 9999.95 ? fmt::format("{:7.1f}", us)
                        : fmt::format("{:7.0f}", us);
}

double AverageBusbw(const PerfReport& report) {
  double sum = 0;
  size_t count = 0;
  for (const PerfRow& row : report.rows) {
    if (!row.ran()) continue;
    for (const TimedRun* half : {&row.out_of_place, &row.in_place}) {
      sum += BandwidthsOf(report, row.bytes, *half).busbw;
      ++count;
    }
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

}  // namespace

std::string PerfHeader(const PerfReport& report) {
  return fmt::format(
      "# nThread 1 nGpus 1 minBytes {} maxBytes {} step: {}(factor) warmup iters: 0 iters: 1 agg "
      "iters: 1 validation: 0 graph: 0\n"
      "#\n"
      "# simulated: {} on {}, {} ranks; no machine was measured\n"
      "#\n"
      "#{:>52}{:>32}\n"
      "#{:>11}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6} {:>6}  {:>7}  {:>6}  {:>6} {:>6}\n"
      "#{:>11}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6} {:>6}  {:>7}  {:>6}  {:>6} "
      "{:>6}\n",
      report.bytes_min, report.bytes_max, report.factor, PerfCollectiveName(report.collective),
      report.fabric, report.ranks, "out-of-place", "in-place", "size", "count", "type", "redop",
      "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong", "(B)",
      "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
}

std::string PerfLine(const PerfReport& report, const PerfRow& row) {
  if (!row.ran()) return fmt::format("# {} B: {}\n", row.bytes, row.error());
  const auto half = [&](const TimedRun& outcome) {
    const Bandwidths is = BandwidthsOf(report, row.bytes, outcome);
    return fmt::format("{}  {:6.2f}  {:6.2f} {:>6}", Time(is.time_us), is.algbw, is.busbw, "N/A");
  };
  return fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}  {}  {}\n", row.bytes,
                     row.bytes / kPerfElementBytes / BlocksOf(report.collective, report.ranks),
                     "float", Reduces(report.collective) ? "sum" : "none",
                     HasRoot(KindOf(report.collective)) ? "0" : "-1", half(row.out_of_place),
                     half(row.in_place));
}

std::string PerfFooter(const PerfReport& report) {
  return fmt::format("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : {:g} \n#\n",
                     AverageBusbw(report));
}

std::string PerfJson(const PerfReport& report) {
  JsonWriter json;
  json.StartObject();
  json.Number("version", 1);
  json.Flag("simulated", true);
  json.StartObject("config");
  json.Text("test", PerfCollectiveName(report.collective));
  json.Text("fabric", report.fabric);
  json.Number("ranks", report.ranks);
  json.Number("min_bytes", report.bytes_min);
  json.Number("max_bytes", report.bytes_max);
  json.Number("step_factor", report.factor);
  json.EndObject();
  json.StartArray("results");
  for (const PerfRow& row : report.rows) {
    if (!row.ran()) continue;
    json.StartObject();
    json.Number("size", row.bytes);
    json.Number("count", row.bytes / kPerfElementBytes / BlocksOf(report.collective, report.ranks));
    json.Text("type", "float");
    json.Text("redop", Reduces(report.collective) ? "sum" : "none");
    json.Signed("root", HasRoot(KindOf(report.collective)) ? 0 : -1);
    for (const bool in_place : {false, true}) {
      const Bandwidths is =
          BandwidthsOf(report, row.bytes, in_place ? row.in_place : row.out_of_place);
      json.StartObject(in_place ? "in_place" : "out_of_place");
      json.Real("time", is.time_us);
      json.Real("alg_bw", is.algbw);
      json.Real("bus_bw", is.busbw);
      json.Null("nwrong");
      json.EndObject();
    }
    json.Text("replayed", row.out_of_place.replayed);
    json.Number("packet_hops", row.out_of_place.packet_hops);
    json.EndObject();
  }
  json.EndArray();
  json.StartObject("average_bus_bandwidth");
  json.Real("bandwidth", AverageBusbw(report));
  json.EndObject();
  json.EndObject();
  return json.Take();
}

}  // namespace railyard
