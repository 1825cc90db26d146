// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/run_table.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analysis/job_metrics.h"
#include "analysis/run_metrics.h"
#include "analysis/text_table.h"
#include "analysis/traffic_metrics.h"
#include "analysis/utf8.h"
#include "simulator/units/units.h"

namespace railyard {

namespace {

constexpr size_t kColumnsMax = 100;
constexpr size_t kSlowestShown = 8;
constexpr size_t kAlgorithmsShown = 8;
constexpr size_t kFaultsShown = 16;
constexpr size_t kJobsShown = 16;
constexpr double kShareShown = 0.01;
constexpr size_t kPartsShown = 3;
constexpr size_t kNotesShown = 12;
constexpr std::string_view kAbsent = "-";

// 1234567 → "1,234,567"
std::string Count(uint64_t value) {
  std::string digits = std::to_string(value);
  for (size_t end = digits.size(); end > 3; end -= 3) digits.insert(end - 3, 1, ',');
  return digits;
}

std::string Plural(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", Count(count), noun, count == 1 ? "" : "s");
}

std::string Percent(double share) { return fmt::format("{:.1f} %", share * 100); }

// "1" only if it is exactly 1, ">1.000" if it is hardly more.
std::string StretchText(std::optional<double> stretch) {
  if (!stretch) return std::string(kAbsent);
  if (*stretch == 1) return "1";
  if (*stretch >= 1e7) return fmt::format("{:.2e}", *stretch);
  if (*stretch >= 100) return Count(static_cast<uint64_t>(std::llround(*stretch)));
  std::string rounded = fmt::format("{:.3f}", *stretch);
  if (rounded != "1.000") return rounded;
  return fmt::format("{}{}", *stretch > 1 ? ">" : "<", rounded);
}

std::string SecondsText(double seconds) {
  return fmt::format("{:.{}f}", seconds, seconds < 10 ? 2 : 1);
}

std::string BusbwText(std::optional<double> busbw_GBps) {
  if (!busbw_GBps) return std::string(kAbsent);
  if (*busbw_GBps >= 1e6) return fmt::format("{:.2e}", *busbw_GBps);
  if (*busbw_GBps >= 100) return fmt::format("{:.0f}", *busbw_GBps);
  if (*busbw_GBps >= 10) return fmt::format("{:.1f}", *busbw_GBps);
  return fmt::format("{:.3f}", *busbw_GBps);
}

std::string TimeText(int64_t time_ps) {
  return time_ps == kNeverPs ? std::string(kAbsent) : FormatDuration(time_ps);
}

// One paragraph: breaks lines at spaces so that they fit, indents all but the first.
std::string Wrap(std::string_view text, std::string_view first_indent, std::string_view indent) {
  std::string wrapped;
  std::string line(first_indent);
  size_t begun = line.size();
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    const std::string word = ToTerminalText(text.substr(0, space), kColumnsMax - indent.size());
    text.remove_prefix(std::min(space + 1, text.size()));
    if (line.size() > begun && line.size() + 1 + word.size() > kColumnsMax) {
      wrapped += line + "\n";
      line = indent;
      begun = line.size();
    }
    if (line.size() > begun) line += ' ';
    line += word;
  }
  return wrapped + line + "\n";
}

class RunTable {
 public:
  explicit RunTable(const RunResult& result) : result_(result) {}

  std::string Print() {
    PrintHeader();
    PrintJobs();
    PrintKinds();
    PrintAlgorithms();
    PrintSlowest();
    PrintTiers();
    PrintTraffic();
    PrintFaults();
    PrintTransport();
    PrintConservation();
    PrintNotes();
    return std::move(text_);
  }

 private:
  void Paragraph(std::string_view text) { text_ += Wrap(text, "", "    "); }
  void Item(std::string_view text) { text_ += Wrap(text, "  ", "    "); }
  void Section(std::string_view title) { text_ += fmt::format("\n{}\n", title); }

  void PrintHeader() {
    const RunResult& r = result_;
    Paragraph(fmt::format("{}: {}", r.scenario, RunStatusName(r.status)));
    std::string_view detail = r.status_detail;
    while (!detail.empty()) {
      const size_t end = std::min(detail.find('\n'), detail.size());
      Item(detail.substr(0, end));
      detail.remove_prefix(std::min(end + 1, detail.size()));
    }
    Paragraph(fmt::format("Fabric {}: {} in {}, {}. Seed {}.", r.fabric, Plural(r.gpu_count, "GPU"),
                          Plural(r.server_count, "server"), Plural(r.links.size() / 2, "cable"),
                          r.seed));
    std::string cost = fmt::format("Simulated {} in {} s of run time (CPU {} s",
                                   FormatDuration(r.simulated_time_ps), SecondsText(r.wall_seconds),
                                   SecondsText(r.cpu_seconds));
    if (r.baseline_cpu_seconds > 0) {
      cost += fmt::format(", {} {} s more", PairedRuns(), SecondsText(r.baseline_cpu_seconds));
    }
    cost += fmt::format("; memory {}).", FormatBytes(r.peak_rss_bytes));
    Paragraph(cost);
    Paragraph(fmt::format("{} made {} hops, control packets another {}.",
                          Plural(r.packets, "data packet"), Count(r.packet_hops),
                          Count(r.control_hops)));
    if (r.replayed_collectives > 0) {
      Paragraph(
          fmt::format("{} of {} began when the network was in a state that had led to the same "
                      "before: taken from the replay cache.",
                      Count(r.replayed_collectives), Plural(r.collectives.size(), "collective")));
    }
    Paragraph(StretchMeaning());
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

  void PrintJobs() {
    if (result_.jobs.size() < 2) return;
    Section("Jobs");
    TextTable table({{"job", Align::kLeft},
                     {"status", Align::kLeft},
                     {"GPUs"},
                     {"start"},
                     {"end"},
                     {"time alone"},
                     {"interference"},
                     {"of collectives: median"},
                     {"largest"}});
    for (uint32_t i = 0; i < std::min(result_.jobs.size(), kJobsShown); ++i) {
      const JobResult& job = result_.jobs[i];
      const auto alone_ps = AloneTimePs(job);
      const auto of_collectives = InterferenceOfCollectives(result_, i);
      table.AddRow(
          {ToTerminalText(job.name, 20), std::string(RunStatusName(job.status)),
           Count(job.gpu_count), TimeText(job.start_ps), TimeText(job.end_ps),
           alone_ps ? FormatDuration(*alone_ps) : std::string(kAbsent),
           StretchText(Interference(result_, job)),
           StretchText(of_collectives ? std::optional(of_collectives->p50) : std::nullopt),
           StretchText(of_collectives ? std::optional(of_collectives->max) : std::nullopt)});
    }
    text_ += table.ToString();
    if (result_.jobs.size() > kJobsShown) {
      Item(fmt::format("and {} more; all are in results.sqlite",
                       Plural(result_.jobs.size() - kJobsShown, "job")));
    }
    Paragraph(HasAloneRuns() ? "Interference: time beside the other jobs over time alone on the "
                               "same GPUs, both without faults."
                             : "No job was run alone, so interference is unknown.");
  }

  void PrintEstimate() {
    if (!result_.estimate) return;
    const EstimateResult& e = *result_.estimate;
    std::string text = fmt::format(
        "Estimated {}: {} of computation, {} of calls it waits for, {} of pipeline transfers, {} "
        "of "
        "other calls that outlast it, {} of bubble.",
        FormatDuration(e.total_ps()), FormatDuration(e.compute_ps), FormatDuration(e.tensor_ps),
        FormatDuration(e.pipeline_ps), FormatDuration(e.data_ps), FormatDuration(e.bubble_ps));
    if (const auto difference = EstimateDifference(result_)) {
      text += fmt::format(" That is {:.1f} % {} than simulated.", 100 * std::abs(*difference),
                          *difference < 0 ? "less" : "more");
    }
    Paragraph(text);
  }

  std::string_view StretchMeaning() const {
    if (result_.has_baseline) {
      return "Stretch: duration in this run over duration in the same run without its faults.";
    }
    if (result_.faults.empty()) return "No faults: every stretch is 1.";
    return "No fault-free run was made, so stretch is unknown.";
  }

  void PrintKinds() {
    Section("Collectives by kind");
    TextTable table({{"kind", Align::kLeft},
                     {"count"},
                     {"bytes"},
                     {"median duration"},
                     {"longest"},
                     {"median busbw"},
                     {"median stretch"},
                     {"largest"}});
    for (const CollectiveTotals& totals : TotalsByKind(result_)) {
      const auto& durations = totals.durations;
      const auto& stretches = totals.stretches;
      table.AddRow(
          {ToTerminalText(totals.kind, 14), Count(totals.count), FormatBytes(totals.bytes),
           durations ? FormatDuration(durations->p50_ps) : std::string(kAbsent),
           durations ? FormatDuration(durations->max_ps) : std::string(kAbsent),
           totals.busbw_GBps ? BusbwText(totals.busbw_GBps->p50) + " GB/s" : std::string(kAbsent),
           StretchText(stretches ? std::optional(stretches->p50) : std::nullopt),
           StretchText(stretches ? std::optional(stretches->max) : std::nullopt)});
    }
    text_ += table.ToString();
    const auto unfinished =
        std::count_if(result_.collectives.begin(), result_.collectives.end(),
                      [](const CollectiveResult& collective) { return !collective.completed; });
    if (unfinished > 0) {
      Paragraph(fmt::format("{} did not complete: without duration, busbw and stretch.",
                            Plural(static_cast<uint64_t>(unfinished), "collective")));
    }
  }

  // Where the replay differs from the log, for all collectives.
  void PrintAlgorithms() {
    std::map<std::tuple<std::string_view, std::string_view, std::string_view>, uint64_t> counts;
    for (const CollectiveResult& collective : result_.collectives) {
      if (collective.logged.empty() || collective.logged == collective.replayed) continue;
      ++counts[{collective.kind, collective.logged, collective.replayed}];
    }
    if (counts.empty()) return;
    Section("Replayed otherwise than logged");
    size_t shown = 0;
    for (const auto& [key, count] : counts) {
      if (++shown > kAlgorithmsShown) {
        Item(fmt::format("and {} more; all are in collectives.csv",
                         Plural(counts.size() - kAlgorithmsShown, "combination")));
        break;
      }
      const auto& [kind, logged, replayed] = key;
      Item(fmt::format("{}: log: {}, replayed: {} ({})", kind, logged, replayed,
                       Plural(count, "collective")));
    }
  }

  std::vector<size_t> SlowestFirst() const {
    std::vector<std::tuple<double, int64_t, size_t>> order;
    for (size_t i = 0; i < result_.collectives.size(); ++i) {
      const CollectiveResult& collective = result_.collectives[i];
      if (!collective.completed) continue;
      order.emplace_back(-Stretch(result_, collective).value_or(0), -collective.duration_ps(), i);
    }
    const size_t shown = std::min(order.size(), kSlowestShown);
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown),
                      order.end());
    std::vector<size_t> indices;
    for (size_t i = 0; i < shown; ++i) indices.push_back(std::get<2>(order[i]));
    return indices;
  }

  void PrintSlowest() {
    const std::vector<size_t> slowest = SlowestFirst();
    if (slowest.empty()) return;
    Section("Slowest collectives, by stretch, then by duration");
    TextTable table({{"#"},
                     {"kind", Align::kLeft},
                     {"bytes"},
                     {"communicator", Align::kLeft},
                     {"start"},
                     {"duration"},
                     {"busbw GB/s"},
                     {"fault-free"},
                     {"stretch"}});
    for (const size_t index : slowest) {
      const CollectiveResult& c = result_.collectives[index];
      const bool has_baseline = result_.has_baseline && c.baseline_duration_ps != 0;
      table.AddRow({Count(index), ToTerminalText(c.kind, 14), FormatBytes(c.bytes),
                    ToTerminalText(c.communicator, 18), TimeText(c.first_start_ps),
                    FormatDuration(c.duration_ps()), BusbwText(BusbwGBps(c)),
                    has_baseline ? FormatDuration(c.baseline_duration_ps) : std::string(kAbsent),
                    StretchText(Stretch(result_, c))});
      if (!c.logged.empty() && c.logged != c.replayed) {
        const std::string line = fmt::format("    log: {}, replayed: {}", c.logged, c.replayed);
        table.AddLine(ToTerminalText(line, kColumnsMax));
      }
    }
    text_ += table.ToString();
  }

  void PrintTiers() {
    Section("Bytes per tier, counted once per link crossed");
    TextTable table({{"tier", Align::kLeft},
                     {"links"},
                     {"payload"},
                     {"share"},
                     {"headers and control"},
                     {"payload sent again"}});
    for (const TierTotals& tier : TotalsByTier(result_)) {
      table.AddRow({ToTerminalText(tier.tier, 16), Count(tier.links),
                    FormatBytes(tier.payload_bytes), Percent(tier.payload_share),
                    FormatBytes(tier.header_bytes), FormatBytes(tier.retransmitted_bytes)});
    }
    text_ += table.ToString();
    const RunResult& r = result_;
    Paragraph(fmt::format(
        "Of {} that went from GPU to GPU, {} left its server and {} reached the spine.",
        FormatBytes(r.payload_bytes), Percent(Share(r.payload_left_server_bytes, r.payload_bytes)),
        Percent(Share(r.payload_reached_spine_bytes, r.payload_bytes))));
    const PairCounts pairs = CountPairs(r);
    Paragraph(fmt::format("{} of {} possible pairs of GPUs talked ({}).", Count(pairs.active),
                          Count(pairs.possible), Percent(Share(pairs.active, pairs.possible))));
  }

  void PrintTraffic() {
    const TrafficFigures traffic = TrafficOf(result_);
    if (traffic.pair_entropy_share) {
      Paragraph(fmt::format("The pair matrix has {:.2f} bits of entropy, {} of an even one's.",
                            traffic.pair_entropy_bits, Percent(*traffic.pair_entropy_share)));
    }
    if (traffic.flow_entropy_bits) {
      std::string text =
          fmt::format("{} carried flows of {:.2f} bits of entropy (median)",
                      Plural(traffic.links_used, "link"), traffic.flow_entropy_bits->p50);
      if (traffic.link_periods && traffic.link_duty) {
        text += fmt::format(", in bursts every {} that lasted {} of the time",
                            FormatDuration(traffic.link_periods->p50_ps),
                            Percent(traffic.link_duty->p50));
      }
      Paragraph(text + ".");
    }
    if (traffic.message_sizes) {
      const SizeStatistics& sizes = *traffic.message_sizes;
      Paragraph(fmt::format("Messages: {}, {} to {}, median {}.", Count(sizes.count),
                            FormatBytes(sizes.min), FormatBytes(sizes.max),
                            FormatBytes(sizes.p50)));
    }
    if (traffic.drift) {
      Paragraph(
          fmt::format("Over {} the pair matrix drifted by {} from one to the next, at most "
                      "by {}.",
                      Plural(traffic.iterations, "iteration"), Percent(traffic.drift->mean),
                      Percent(traffic.drift->max)));
    }
  }

  static std::string WhenText(const FaultResult& fault) {
    if (fault.from_ps == kNeverPs) return "which never began";
    const std::string from = FormatDuration(fault.from_ps);
    if (fault.begins > 1) {
      return fmt::format("{} times from {} on", Count(fault.begins), from);
    }
    if (fault.until_ps == kNeverPs) return fmt::format("from {} for good", from);
    return fmt::format("from {} to {}", from, FormatDuration(fault.until_ps));
  }

  static std::string RecoveryText(const FaultResult& fault) {
    if (fault.dropped_packets == 0) return "nothing to recover from";
    const std::string retransmission =
        fault.first_retransmission_ps < 0
            ? "nothing sent again"
            : "first retransmission at " + FormatDuration(fault.first_retransmission_ps);
    if (fault.time_to_recover_ps < 0) return retransmission + ", never recovered";
    return fmt::format("{}, recovered {} after the fault began", retransmission,
                       FormatDuration(fault.time_to_recover_ps));
  }

  // Of collectives before, during and after the fault; empty without a fault-free run.
  std::string StretchesText(const FaultResult& fault) const {
    const StretchesAroundFault around = StretchesAround(result_, fault);
    std::string text;
    const auto add = [&text](const char* when, const std::optional<StretchStatistics>& stretches) {
      if (!stretches) return;
      text += fmt::format("{}{} {}", text.empty() ? "    largest stretch " : ", ", when,
                          StretchText(stretches->max));
    };
    add("before it", around.before);
    add("during", around.during);
    add("after", around.after);
    return text.empty() ? text : text + "\n";
  }

  // What the collectives took longer, and for what; empty where nothing was added.
  static std::string AddedText(const AddedTime& added) {
    struct Part {
      const char* name;
      int64_t time_ps;
    };
    std::vector<Part> parts = {{"queueing", added.queueing_ps},
                               {"retransmission", added.retransmission_ps},
                               {"time-outs", added.timeout_ps},
                               {"rerouting", added.rerouting_ps},
                               {"slow or late peers", added.slow_peer_ps},
                               {"other", added.other_ps}};
    int64_t sum_ps = 0;
    for (const Part& part : parts) sum_ps += part.time_ps;
    if (sum_ps <= 0) return "";
    std::sort(parts.begin(), parts.end(),
              [](const Part& a, const Part& b) { return a.time_ps > b.time_ps; });
    std::string text = "    collectives took " + FormatDuration(sum_ps) + " longer:";
    // What matters most is enough here; all parts are in the files.
    for (const Part& part : std::span(parts).first(kPartsShown)) {
      const double share = static_cast<double>(part.time_ps) / static_cast<double>(sum_ps);
      if (share < kShareShown) break;
      text += fmt::format("{} {} {}", text.back() == ':' ? "" : ",", part.name, Percent(share));
    }
    return text + "\n";
  }

  void PrintFaults() {
    if (result_.faults.empty() && result_.drops.empty()) return;
    Section("Faults and losses");
    const size_t shown = std::min(result_.faults.size(), kFaultsShown);
    const std::vector<AddedTime> added = AddedByFaults(result_);
    for (size_t i = 0; i < shown; ++i) {
      const FaultResult& fault = result_.faults[i];
      Item(fmt::format("{}: {} on {}, {}", fault.name, fault.kind, fault.target, WhenText(fault)));
      text_ += fmt::format("    lost {}, hit {} and {}\n    {}\n",
                           Plural(fault.dropped_packets, "packet"),
                           Plural(fault.collectives.size(), "collective"),
                           Plural(fault.ranks_hit, "rank"), RecoveryText(fault));
      text_ += StretchesText(fault);
      if (!added.empty()) text_ += AddedText(added[i]);
    }
    if (shown < result_.faults.size()) {
      Item(fmt::format("and {} more; all are in results.sqlite",
                       Plural(result_.faults.size() - shown, "fault")));
    }
    for (const DropResult& drop : result_.drops) {
      Item(fmt::format("dropped for {}: {} ({})", drop.reason, Plural(drop.packets, "packet"),
                       FormatBytes(drop.bytes)));
    }
    if (result_.drops.empty()) Item("no packet was dropped");
  }

  void PrintTransport() {
    const TransportCounters& t = result_.transport;
    std::vector<std::string> counters;
    const auto add = [&](uint64_t count, std::string_view noun) {
      if (count > 0) counters.push_back(Plural(count, noun));
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
                                     Plural(t.missing_packets, "packet"),
                                     FormatBytes(t.missing_bytes)));
    }
    const int64_t reliable_ps = result_.reliable_simulated_time_ps;
    if (counters.empty() && reliable_ps == 0) return;
    Section("Transport");
    if (!counters.empty()) Item(fmt::format("{}", fmt::join(counters, ", ")));
    if (reliable_ps == 0) return;
    const int64_t saved_ps = reliable_ps - result_.simulated_time_ps;
    Item(fmt::format("with everything sent again the run takes {}: tolerated loss {} {}",
                     FormatDuration(reliable_ps), saved_ps < 0 ? "costs" : "saves",
                     FormatDuration(std::abs(saved_ps))));
  }

  void PrintConservation() {
    const Conservation& b = result_.conservation;
    Section(b.Holds() ? "Every byte is accounted for" : "BYTES ARE NOT ACCOUNTED FOR");
    std::string sources = fmt::format("{} injected", Count(b.injected_bytes));
    if (b.replicated_bytes > 0)
      sources += fmt::format(" + {} replicated", Count(b.replicated_bytes));
    std::string sinks = fmt::format("{} delivered", Count(b.delivered_bytes));
    if (b.reduced_bytes > 0) sinks += fmt::format(" + {} reduced", Count(b.reduced_bytes));
    sinks += fmt::format(" + {} dropped + {} in flight", Count(b.dropped_bytes),
                         Count(b.in_flight_bytes));
    Item(fmt::format("{} {} {}", sources, b.Holds() ? "=" : "IS NOT", sinks));
  }

  void PrintNotes() {
    if (result_.notes.empty()) return;
    Section("Notes");
    const size_t shown = std::min(result_.notes.size(), kNotesShown);
    for (size_t i = 0; i < shown; ++i) Item(result_.notes[i]);
    if (shown < result_.notes.size()) {
      Item(fmt::format("and {} more; all are in results.sqlite",
                       Plural(result_.notes.size() - shown, "note")));
    }
  }

  const RunResult& result_;
  std::string text_;
};

}  // namespace

std::string PrintRunTable(const RunResult& result) { return RunTable(result).Print(); }

}  // namespace railyard
