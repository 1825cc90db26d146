// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/report/verdict.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "analysis/tables/figure_text.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

constexpr size_t kDetailBytesMax = 300;

std::string OfRun(std::string_view key) {
  return fmt::format("SELECT value FROM run WHERE key = '{}'", key);
}

double NumberOf(const StoredValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return 0;
}

// A stored number may be any; it becomes the nearest of the type.
uint64_t ToUnsigned(double number) {
  constexpr double kBeyond = 18'446'744'073'709'551'616.0;  // 2^64
  if (!(number > 0)) return 0;
  return number < kBeyond ? static_cast<uint64_t>(number) : std::numeric_limits<uint64_t>::max();
}
int64_t ToSigned(double number) {
  constexpr double kBeyond = 9'223'372'036'854'775'808.0;  // 2^63
  if (number < 0) return -ToSigned(-number);
  return number < kBeyond ? std::llround(number) : std::numeric_limits<int64_t>::max();
}

std::string TextOf(FigureUnit unit, const StoredValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return std::string(kAbsentText);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  const double number = NumberOf(value);
  switch (unit) {
    case FigureUnit::kTime:
      return FormatDuration(std::get_if<int64_t>(&value) != nullptr ? std::get<int64_t>(value)
                                                                    : ToSigned(number));
    case FigureUnit::kBytes:
      return FormatBytes(ToUnsigned(number));
    case FigureUnit::kRatio:
      return StretchText(number);
    case FigureUnit::kShare:
      return PercentText(number);
    case FigureUnit::kCount:
    case FigureUnit::kText:
      return CountText(ToUnsigned(number));
  }
  return {};
}

// Puts sentences together.
class VerdictWriter {
 public:
  explicit VerdictWriter(const ResultStore& store) : store_(store) {}

  std::vector<Phrase> Take() {
    SayOutcome();
    SayCost();
    if (store_.Count("SELECT COUNT(*) FROM faults WHERE begins > 0") > 0) SayFaults();
    SayLimit();
    return std::move(phrases_);
  }

 private:
  struct Cause {
    const char* column;
    const char* words;
    double sum_ps = 0;
  };
  static std::string SumOf(const Cause& cause) {
    return fmt::format("SELECT SUM({}) FROM collectives", cause.column);
  }

  void Say(std::string words) { phrases_.push_back({.text = std::move(words)}); }
  StoredValue Say(FigureUnit unit, std::string sql) {
    phrases_.push_back(FigureOf(store_, unit, std::move(sql)));
    return phrases_.back().value;
  }
  // "3 packets", "1 packet".
  void SayCount(const std::string& sql, const char* noun) {
    const double number = NumberOf(Say(FigureUnit::kCount, sql));
    Say(fmt::format(" {}{}", noun, number == 1 ? "" : "s"));
  }

  void SayOutcome() {
    Say(FigureUnit::kText, OfRun("scenario"));
    const StoredValue stored = store_.First(OfRun("status"));
    const auto* status = std::get_if<std::string>(&stored);
    if (status == nullptr) throw UnreadableResult{"its table run has no status"};
    if (*status == "COMPLETED") Say(" completed in ");
    if (*status == "JOB_ABORTED") Say(" was aborted after ");
    if (*status == "STALLED") Say(" stood still after ");
    if (*status == "INTERRUPTED") Say(" was interrupted after ");
    if (*status == "RUNNING") Say(" goes on; by now it has simulated ");
    if (*status == "TIME_ENDED") Say(" had not ended when its simulated time did, after ");
    Say(FigureUnit::kTime, OfRun("simulated_time_ps"));
    is_complete_ = *status == "COMPLETED";
  }

  void SayCost() {
    const double baseline_ps = NumberOf(store_.First(OfRun("baseline_simulated_time_ps")));
    if (!is_complete_) {
      SayDetail();
    } else if (baseline_ps == 0) {
      Say(".");
    } else {
      const std::string difference = fmt::format("SELECT ({}) - ({})", OfRun("simulated_time_ps"),
                                                 OfRun("baseline_simulated_time_ps"));
      const double longer_ps = NumberOf(store_.First(difference));
      if (longer_ps == 0) {
        Say(", exactly as long as without its faults.");
      } else {
        Say(", ");
        Say(FigureUnit::kTime,
            longer_ps > 0 ? difference
                          : fmt::format("SELECT ({}) - ({})", OfRun("baseline_simulated_time_ps"),
                                        OfRun("simulated_time_ps")));
        Say(longer_ps > 0 ? " longer than the " : " shorter than the ");
        Say(FigureUnit::kTime, OfRun("baseline_simulated_time_ps"));
        Say(" it takes without its faults.");
      }
    }
  }

  void SayDetail() {
    std::string detail = FigureOf(store_, FigureUnit::kText, OfRun("status_detail")).text;
    detail = detail.substr(0, std::min(detail.find('\n'), kDetailBytesMax));
    if (detail.empty()) {
      Say(".");
      return;
    }
    Say(": " + detail);
    if (!detail.ends_with('.')) Say(".");
  }

  void SayFaults() {
    const int64_t faults = store_.Count("SELECT COUNT(*) FROM faults WHERE begins > 0");
    if (faults == 1) {
      Say(" Its fault ");
      Say(FigureUnit::kText, "SELECT name FROM faults WHERE begins > 0");
      Say(" (");
      Say(FigureUnit::kText, "SELECT kind FROM faults WHERE begins > 0");
      Say(" on ");
      Say(FigureUnit::kText, "SELECT target FROM faults WHERE begins > 0");
      Say(")");
    } else {
      Say(" Its ");
      Say(FigureUnit::kCount, "SELECT COUNT(*) FROM faults WHERE begins > 0");
      Say(" faults");
    }
    Say(" lost ");
    SayCount("SELECT SUM(dropped_packets) FROM faults", "packet");
    Say(" and hit ");
    Say(FigureUnit::kCount, "SELECT COUNT(*) FROM collectives WHERE hit_by_fault");
    Say(" of ");
    SayCount("SELECT COUNT(*) FROM collectives", "collective");
    const std::string stretch = "SELECT MAX(stretch) FROM collectives";
    if (NumberOf(store_.First(stretch)) > 0) {
      Say("; the one that suffered most took ");
      Say(FigureUnit::kRatio, stretch);
      Say(" times as long");
    }
    Say(".");
    SayRestarts();
  }

  void SayRestarts() {
    const std::string restarts = "SELECT SUM(restarts) FROM jobs";
    if (NumberOf(store_.First(restarts)) == 0) return;
    Say(" ");
    SayCount(restarts, "restart");
    Say(" took ");
    Say(FigureUnit::kTime, "SELECT SUM(rework_ps + detection_ps + requeue_ps + load_ps) FROM jobs");
    Say(" of the jobs' time.");
  }

  // States what collectives lost most time to; without faults, how far from the bound they are and
  // which link was used most.
  void SayLimit() {
    std::vector<Cause> causes = {{"added_timeout_ps", "time-outs"},
                                 {"added_slow_peer_ps", "slow or late peers"},
                                 {"added_queueing_ps", "queueing"},
                                 {"added_retransmission_ps", "repetition of what was lost"},
                                 {"added_rerouting_ps", "longer ways around"},
                                 {"added_other_ps", "other causes"}};
    double added_ps = 0;
    if (store_.HasBaseline()) {
      std::string sums;
      for (const Cause& cause : causes) {
        sums += fmt::format("{}SUM({})", sums.empty() ? "" : ", ", cause.column);
      }
      StoredRows rows = store_.Rows(fmt::format("SELECT {} FROM collectives", sums));
      rows.Next();
      for (size_t i = 0; i < causes.size(); ++i) {
        causes[i].sum_ps = NumberOf(rows.Value(static_cast<int>(i)));
        added_ps += std::max(0.0, causes[i].sum_ps);
      }
    }
    std::stable_sort(causes.begin(), causes.end(),
                     [](const Cause& a, const Cause& b) { return a.sum_ps > b.sum_ps; });
    if (added_ps > 0) {
      Say(" What collectives lost, summed over all of them, was ");
      Say(FigureUnit::kTime, SumOf(causes[0]));
      Say(fmt::format(" to {}", causes[0].words));
      if (causes[1].sum_ps > 0.05 * added_ps) {
        Say(" and ");
        Say(FigureUnit::kTime, SumOf(causes[1]));
        Say(fmt::format(" to {}", causes[1].words));
      }
      Say(".");
    } else {
      SaySlowdown();
      SayBusiestLink();
    }
  }

  void SaySlowdown() {
    Phrase median;
    median.sql =
        "SELECT slowdown FROM collectives WHERE slowdown IS NOT NULL ORDER BY slowdown LIMIT 1 "
        "OFFSET (SELECT (COUNT(slowdown) - 1) / 2 FROM collectives)";
    // The database sorts the rows for it, in more than twice as many instructions.
    std::vector<double> slowdowns;
    StoredRows rows = store_.Rows("SELECT slowdown FROM collectives WHERE slowdown IS NOT NULL");
    while (rows.Next()) slowdowns.push_back(rows.Real(0));
    if (slowdowns.empty()) return;
    const auto middle = slowdowns.begin() + static_cast<std::ptrdiff_t>((slowdowns.size() - 1) / 2);
    std::nth_element(slowdowns.begin(), middle, slowdowns.end());
    median.value = *middle;
    median.text = TextOf(FigureUnit::kRatio, median.value);
    if (NumberOf(median.value) == 0) return;
    Say(" Half of its collectives took more than ");
    phrases_.push_back(std::move(median));
    Say(" times the least time their bytes need on these links.");
  }

  void SayBusiestLink() {
    const std::string busiest =
        "FROM links WHERE rate_bps > 0 ORDER BY 1.0 * (payload_bytes + retransmitted_bytes + "
        "header_bytes) / rate_bps DESC, link LIMIT 1";
    const std::string load = fmt::format(
        "SELECT 8e12 * (payload_bytes + retransmitted_bytes + header_bytes) / rate_bps / ({}) {}",
        OfRun("simulated_time_ps"), busiest);
    if (NumberOf(store_.First(load)) == 0) return;
    Say(" Its busiest link, ");
    Say(FigureUnit::kText, "SELECT link " + busiest);
    Say(", was in use ");
    Say(FigureUnit::kShare, load);
    Say(" of the time.");
  }

  const ResultStore& store_;
  std::vector<Phrase> phrases_;
  bool is_complete_ = false;
};

}  // namespace

Phrase FigureOf(const ResultStore& store, FigureUnit unit, std::string sql) {
  StoredValue value = store.First(sql);
  std::string text = TextOf(unit, value);
  return {.text = std::move(text), .sql = std::move(sql), .value = std::move(value)};
}

std::vector<Phrase> VerdictOf(const ResultStore& store) { return VerdictWriter(store).Take(); }

std::vector<KeyFigure> KeyFiguresOf(const ResultStore& store) {
  std::vector<KeyFigure> figures;
  const auto put = [&](const char* label, FigureUnit unit, std::string sql) {
    figures.push_back({label, FigureOf(store, unit, std::move(sql))});
  };
  // A figure that is zero is left out.
  const auto put_if_any = [&](const char* label, FigureUnit unit, std::string sql) {
    KeyFigure figure{label, FigureOf(store, unit, std::move(sql))};
    if (NumberOf(figure.figure.value) > 0) figures.push_back(std::move(figure));
  };
  put("Status", FigureUnit::kText, OfRun("status"));
  put("Simulated time", FigureUnit::kTime, OfRun("simulated_time_ps"));
  put_if_any("Without faults", FigureUnit::kTime, OfRun("baseline_simulated_time_ps"));
  put("GPUs", FigureUnit::kCount, OfRun("gpus"));
  put("Servers", FigureUnit::kCount, OfRun("servers"));
  put("Collectives", FigureUnit::kCount, "SELECT COUNT(*) FROM collectives");
  if (store.Count("SELECT COUNT(*) FROM faults") > 0) {
    put_if_any("Hit by a fault", FigureUnit::kCount,
               "SELECT COUNT(*) FROM collectives WHERE hit_by_fault");
    put_if_any("Largest stretch", FigureUnit::kRatio, "SELECT MAX(stretch) FROM collectives");
  }
  put_if_any("Longest collective", FigureUnit::kTime, "SELECT MAX(duration_ps) FROM collectives");
  put("Payload", FigureUnit::kBytes, OfRun("payload_bytes"));
  const auto share = [](const char* part) {
    return fmt::format("SELECT 1.0 * ({}) / ({})", OfRun(part), OfRun("payload_bytes"));
  };
  put_if_any("Left its server", FigureUnit::kShare, share("payload_left_server_bytes"));
  put_if_any("Reached the spine", FigureUnit::kShare, share("payload_reached_spine_bytes"));
  put_if_any("Packets lost", FigureUnit::kCount,
             "SELECT SUM(packets) FROM drops WHERE reason NOT IN ('OUT_OF_SEQUENCE', 'DUPLICATE')");
  put_if_any("Sent again", FigureUnit::kCount, OfRun("retransmitted_packets"));
  put_if_any("Time-outs", FigureUnit::kCount, OfRun("timeouts"));
  put_if_any("NACKs", FigureUnit::kCount, OfRun("nacks"));
  put_if_any("ECN marks", FigureUnit::kCount, OfRun("ecn_marked"));
  put_if_any("CNPs", FigureUnit::kCount, OfRun("cnp"));
  put_if_any("Paused by PFC", FigureUnit::kTime, OfRun("pfc_pause_ps"));
  put_if_any("Broken queue pairs", FigureUnit::kCount, OfRun("qp_errors"));
  put_if_any("Moved to another port", FigureUnit::kCount, OfRun("port_failovers"));
  put_if_any("Moved to another NIC", FigureUnit::kCount, OfRun("nic_failovers"));
  put_if_any("Restarts", FigureUnit::kCount, "SELECT SUM(restarts) FROM jobs");
  if (NumberOf(store.First("SELECT SUM(restarts) FROM jobs")) > 0) {
    put_if_any("Least goodput", FigureUnit::kShare, "SELECT MIN(goodput) FROM jobs");
  }
  put_if_any("From the replay cache", FigureUnit::kCount, OfRun("replayed_collectives"));
  return figures;
}

}  // namespace railyard
