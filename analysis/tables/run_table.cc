// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/tables/run_table.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "analysis/metrics/job_metrics.h"
#include "analysis/metrics/run_metrics.h"
#include "analysis/tables/figure_text.h"
#include "analysis/tables/run_table_collectives.h"
#include "analysis/tables/run_table_faults.h"
#include "analysis/tables/run_table_restarts.h"
#include "analysis/tables/run_table_traffic.h"
#include "analysis/tables/terminal_text.h"
#include "analysis/tables/text_table.h"
#include "simulator/diagnostics/utf8.h"
#include "simulator/units/units.h"

namespace railyard {

namespace {

constexpr size_t kJobsShown = 16;
constexpr size_t kNotesShown = 12;

class RunTable {
 public:
  explicit RunTable(const RunResult& result) : result_(result) {}

  std::string Print() {
    PrintHeader();
    PrintJobs();
    PrintRestarts(result_, text_);
    PrintCollectives(result_, text_);
    PrintTraffic(result_, text_);
    PrintFaults(result_, text_);
    PrintTransport();
    PrintConservation();
    PrintNotes();
    return text_.Take();
  }

 private:
  void PrintHeader() {
    const RunResult& r = result_;
    const bool is_of_flows = r.mode == RunMode::kFlow;
    text_.Paragraph(fmt::format("{}: {}{}", r.scenario, RunStatusName(r.status),
                                is_of_flows ? " (flow mode: max-min fair flows, no packets)" : ""));
    std::string_view detail = r.status_detail;
    while (!detail.empty()) {
      const size_t end = std::min(detail.find('\n'), detail.size());
      text_.Item(detail.substr(0, end));
      detail.remove_prefix(std::min(end + 1, detail.size()));
    }
    text_.Paragraph(fmt::format(
        "Fabric {}: {} in {}, {}. Seed {}.", r.fabric, PluralText(r.gpu_count, "GPU"),
        PluralText(r.server_count, "server"), PluralText(r.links.size() / 2, "cable"), r.seed));
    std::string cost = fmt::format("Simulated {} in {} s of run time (CPU {} s",
                                   FormatDuration(r.simulated_time_ps), SecondsText(r.wall_seconds),
                                   SecondsText(r.cpu_seconds));
    if (r.baseline_cpu_seconds > 0) {
      cost += fmt::format(", {} {} s more", PairedRuns(), SecondsText(r.baseline_cpu_seconds));
    }
    cost += fmt::format("; memory {})", FormatBytes(r.peak_rss_bytes));
    if (r.threads > 1) cost += fmt::format(", on {} cores", r.threads);
    if (!r.threads_why.empty() && r.threads == 1) {
      cost += fmt::format(", on one core because {}", r.threads_why);
    }
    cost += ".";
    text_.Paragraph(cost);
    if (!is_of_flows) {
      text_.Paragraph(fmt::format("{} made {} hops, control packets another {}.",
                                  PluralText(r.packets, "data packet"), CountText(r.packet_hops),
                                  CountText(r.control_hops)));
    }
    if (r.replayed_collectives > 0) {
      text_.Paragraph(fmt::format(
          "{} of {} began when the network was in a state that had led to the same "
          "before: taken from the replay cache.",
          CountText(r.replayed_collectives), PluralText(r.collectives.size(), "collective")));
    }
    if (r.verified_episodes > 0) {
      text_.Paragraph(fmt::format("{} that the replay cache knew {} simulated, and found equal.",
                                  PluralText(r.verified_episodes, "episode"),
                                  r.verified_episodes == 1 ? "was" : "were"));
    }
    text_.Paragraph(StretchMeaning());
    PrintEstimate();
  }

  bool HasAloneRuns() const {
    return std::any_of(result_.jobs.begin(), result_.jobs.end(),
                       [](const JobResult& job) { return job.alone_end_ps != 0; });
  }

  std::string_view PairedRuns() const {
    if (!HasAloneRuns()) return "fault-free run";
    return result_.has_baseline ? "paired runs" : "each job alone";
  }

  void PrintEstimate() {
    if (!result_.estimate) return;
    const EstimateResult& estimate = *result_.estimate;
    std::string text = fmt::format("Estimated {}.", FormatDuration(estimate.parts.total_ps()));
    if (const auto difference = EstimateDifference(result_)) {
      text += fmt::format(" That is {:.1f} % {} than simulated.", 100 * std::abs(*difference),
                          *difference < 0 ? "less" : "more");
    }
    text_.Paragraph(text);
    PrintBreakdown(estimate);
  }

  // Per iteration, of the rank that is estimated.
  void PrintBreakdown(const EstimateResult& estimate) {
    const uint64_t iterations = estimate.iterations;
    text_.Section(
        fmt::format("Where the time of rank {} goes{}", estimate.rank,
                    iterations == 1 ? "" : fmt::format(", mean of {} iterations", iterations)));
    const bool is_simulated = !estimate.simulated.empty();
    const TimeBreakdown simulated = SimulatedParts(estimate);
    std::vector<TextColumn> columns = {{"part", Align::kLeft}, {"estimated"}};
    if (is_simulated) columns.push_back({"simulated"});
    TextTable table(columns);
    const auto add = [&](const char* name, const auto& text_of) {
      std::vector<std::string> cells = {name, text_of(estimate.parts)};
      if (is_simulated) cells.push_back(text_of(simulated));
      table.AddRow(std::move(cells));
    };
    const auto add_time = [&](const char* name, int64_t TimeBreakdown::*part) {
      if (estimate.parts.*part == 0 && simulated.*part == 0) return;
      add(name, [&](const TimeBreakdown& parts) {
        return FormatDuration(parts.*part / static_cast<int64_t>(iterations));
      });
    };
    add_time("computation", &TimeBreakdown::compute_ps);
    add_time("calls it waits for", &TimeBreakdown::tensor_ps);
    add_time("experts' exchanges", &TimeBreakdown::expert_ps);
    add_time("pipeline transfers", &TimeBreakdown::pipeline_ps);
    add_time("other calls, exposed", &TimeBreakdown::data_ps);
    add_time("late ranks", &TimeBreakdown::wait_ps);
    add_time("bubble", &TimeBreakdown::bubble_ps);
    add("together", [&](const TimeBreakdown& parts) {
      return FormatDuration(parts.total_ps() / static_cast<int64_t>(iterations));
    });
    add_time("other calls, hidden", &TimeBreakdown::overlap_ps);
    add("exposed communication",
        [](const TimeBreakdown& parts) { return PercentText(parts.CommunicationShare()); });
    text_.Table(table);
  }

  std::string_view StretchMeaning() const {
    if (result_.has_baseline) {
      return "Stretch: duration in this run over duration in the same run without its faults.";
    }
    if (result_.faults.empty()) return "No faults: every stretch is 1.";
    return "No fault-free run was made, so stretch is unknown.";
  }

  void PrintJobs() {
    if (result_.jobs.size() < 2) return;
    text_.Section("Jobs");
    TextTable table({{"job", Align::kLeft},
                     {"status", Align::kLeft},
                     {"GPUs"},
                     {"start"},
                     {"end"},
                     {"time alone"},
                     {"interference"},
                     {"of collectives: median"},
                     {"largest"}});
    const size_t shown = std::min(result_.jobs.size(), kJobsShown);
    for (uint32_t i = 0; i < shown; ++i) {
      const JobResult& job = result_.jobs[i];
      const auto alone_ps = AloneTimePs(job);
      const auto of_collectives = InterferenceOfCollectives(result_, i);
      table.AddRow(
          {ToTerminalText(job.name, 20), std::string(RunStatusName(job.status)),
           CountText(job.gpu_count), TimeText(job.start_ps), TimeText(job.end_ps),
           DurationText(alone_ps), StretchText(Interference(result_, job)),
           StretchText(of_collectives ? std::optional(of_collectives->p50) : std::nullopt),
           StretchText(of_collectives ? std::optional(of_collectives->max) : std::nullopt)});
    }
    text_.Table(table);
    text_.AndMore(result_.jobs.size() - shown, "job");
    text_.Paragraph(HasAloneRuns()
                        ? "Interference: time beside the other jobs over time alone on the "
                          "same GPUs, both without faults."
                        : "No job was run alone, so interference is unknown.");
  }

  void PrintTransport() {
    const TransportCounters& t = result_.transport;
    std::vector<std::string> counters;
    const auto add = [&](uint64_t count, std::string_view noun) {
      if (count > 0) counters.push_back(PluralText(count, noun));
    };
    add(t.retransmitted_packets, "packet retransmission");
    add(t.timeouts, "retransmission time-out");
    add(t.nacks, "NACK");
    add(t.ecn_marked, "ECN mark");
    add(t.cnp, "congestion notification");
    add(t.qp_errors, "queue-pair error");
    add(t.port_failovers, "port failover");
    if (t.port_recoveries > 0) {
      counters.push_back(fmt::format("{} of them back in use", t.port_recoveries));
    }
    add(t.nic_failovers, "NIC failover");
    if (t.pfc_pause_ps > 0) {
      counters.push_back(
          fmt::format("{} paused by PFC", FormatDuration(static_cast<int64_t>(t.pfc_pause_ps))));
    }
    if (t.missing_packets > 0) {
      counters.push_back(fmt::format("{} that receivers did without ({})",
                                     PluralText(t.missing_packets, "packet"),
                                     FormatBytes(t.missing_bytes)));
    }
    const int64_t reliable_ps = result_.reliable_simulated_time_ps;
    if (counters.empty() && reliable_ps == 0) return;
    text_.Section("Transport");
    if (!counters.empty()) text_.Item(fmt::format("{}", fmt::join(counters, ", ")));
    if (reliable_ps == 0) return;
    const int64_t saved_ps = reliable_ps - result_.simulated_time_ps;
    text_.Item(fmt::format("with everything sent again the run takes {}: tolerated loss {} {}",
                           FormatDuration(reliable_ps), saved_ps < 0 ? "costs" : "saves",
                           FormatDuration(std::abs(saved_ps))));
  }

  void PrintConservation() {
    const Conservation& b = result_.conservation;
    text_.Section(b.Holds() ? "Every byte is accounted for" : "BYTES ARE NOT ACCOUNTED FOR");
    std::string sources = fmt::format("{} injected", CountText(b.injected_bytes));
    if (b.replicated_bytes > 0)
      sources += fmt::format(" + {} replicated", CountText(b.replicated_bytes));
    std::string sinks = fmt::format("{} delivered", CountText(b.delivered_bytes));
    if (b.reduced_bytes > 0) sinks += fmt::format(" + {} reduced", CountText(b.reduced_bytes));
    sinks += fmt::format(" + {} dropped + {} in flight", CountText(b.dropped_bytes),
                         CountText(b.in_flight_bytes));
    text_.Item(fmt::format("{} {} {}", sources, b.Holds() ? "=" : "IS NOT", sinks));
  }

  void PrintNotes() {
    if (result_.notes.empty()) return;
    text_.Section("Notes");
    const size_t shown = std::min(result_.notes.size(), kNotesShown);
    for (size_t i = 0; i < shown; ++i) text_.Item(result_.notes[i]);
    text_.AndMore(result_.notes.size() - shown, "note");
  }

  const RunResult& result_;
  TerminalText text_;
};

}  // namespace

std::string PrintRunTable(const RunResult& result) { return RunTable(result).Print(); }

}  // namespace railyard
