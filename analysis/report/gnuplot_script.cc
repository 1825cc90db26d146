// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "analysis/report/figures.h"
#include "simulator/diagnostics/utf8.h"

namespace railyard {
namespace {

// Returns a text as gnuplot's single-quoted string, in which nothing has a meaning but the quote.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : ToTerminalText(text, 120)) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

size_t ColumnOf(const ChartTable& table, std::string_view name) {
  const auto at = std::find(table.columns.begin(), table.columns.end(), name);
  return static_cast<size_t>(at - table.columns.begin()) + 1;  // gnuplot counts from 1
}

// Returns the texts of a column, each once, in the order in which they occur.
std::vector<std::string> TextsOf(const ChartTable& table, std::string_view column) {
  std::vector<std::string> texts;
  for (const auto& row : table.rows) {
    const auto* text = std::get_if<std::string>(&row[ColumnOf(table, column) - 1]);
    if (text != nullptr && std::find(texts.begin(), texts.end(), *text) == texts.end()) {
      texts.push_back(*text);
    }
  }
  return texts;
}

bool IsWide(const ChartTable& table, std::string_view column) {
  double least = HUGE_VAL;
  double greatest = 0;
  for (const auto& row : table.rows) {
    const StoredValue& value = row[ColumnOf(table, column) - 1];
    double number = 0;
    if (const auto* integer = std::get_if<int64_t>(&value)) number = static_cast<double>(*integer);
    if (const auto* real = std::get_if<double>(&value)) number = *real;
    least = std::min(least, number);
    greatest = std::max(greatest, number);
  }
  return least > 0 && greatest / least > 20;
}

// Says how gnuplot draws a group's values. The colour comes first: gnuplot takes what overrides it
// only after it.
constexpr const char* kAsPoints = "points ls {} pt 7 ps 0.5";
constexpr const char* kAsSteps = "steps ls {} lw 1.5";

// Returns the commands that draw `y` over `x`, in one colour for each text of `group`. `with` is
// one of the two above.
std::string Grouped(const ChartTable& table, const char* group, const std::string& x,
                    const std::string& y, const char* with) {
  std::string plots;
  size_t style = 0;
  for (const std::string& text : TextsOf(table, group)) {
    plots +=
        fmt::format("{} data using (strcol({}) eq {} ? {} : NaN):({}) with {} title {}",
                    plots.empty() ? "plot" : ", \\\n    ", ColumnOf(table, group), Quoted(text), x,
                    y, fmt::format(fmt::runtime(with), 1 + style++ % 8), Quoted(text));
  }
  return plots + "\n";
}

std::string Column(const ChartTable& table, const char* name) {
  return fmt::format("(column({}))", ColumnOf(table, name));
}
std::string Seconds(const ChartTable& table, const char* name) {
  return fmt::format("(column({})*1e-12)", ColumnOf(table, name));
}

// Returns the commands that draw horizontal bars, one row below the other, which the text of a
// column labels. Each bar is a stack of `parts`.
std::string Bars(const std::string& label,
                 const std::vector<std::pair<std::string, std::string>>& parts) {
  std::string script =
      "set style fill solid 0.9\nset yrange [*:*] reverse\nset offsets 0, 0, 0.6, 0.6\n";
  std::string plots;
  std::string from = "0";
  size_t style = 1;
  for (const auto& [title, value] : parts) {
    plots += fmt::format(
        "{} data using ({}):0:({}):(({}) + ({})):($0-0.36):($0+0.36):ytic({}) with boxxyerror ls "
        "{} "
        "title {}",
        plots.empty() ? "plot" : ", \\\n    ", from, from, from, value, label, style++,
        Quoted(title));
    from = fmt::format("({}) + ({})", from, value);
  }
  return script + plots + "\n";
}

std::string OverTime(const ChartTable& table, const char* ratio) {
  return fmt::format(
      "set xlabel 'time (s)'\nset ylabel {}\n{}{}", Quoted(ratio),
      IsWide(table, ratio) ? "set logscale y\n" : "",
      Grouped(table, "kind", Seconds(table, "start_ps"), Column(table, ratio), kAsPoints));
}

std::string Distribution(const ChartTable& table, const char* ratio) {
  return fmt::format(
      "set xlabel {}\nset ylabel 'share'\nset yrange [0:1]\nset key bottom right\n{}{}",
      Quoted(ratio), IsWide(table, ratio) ? "set logscale x\n" : "",
      Grouped(table, "kind", Column(table, ratio), Column(table, "share"), kAsSteps));
}

std::string Durations(const ChartTable& table) {
  return fmt::format(
      "set logscale x\nset xlabel 'duration (s)'\nset yrange [*:*] reverse\n"
      "set offsets 0, 0, 0.6, 0.6\n"
      "label(k, b, r) = sprintf('%s, %.0f B, %.0f ranks', k, b, r)\n"
      "plot data using {}:0:{}:{}:ytic(label(strcol({}), {}, {})) with xerrorbars ls 1 pt 7 title "
      "'shortest, median, longest', \\\n     data using {}:0 with points ls 2 pt 2 title 'bound'\n",
      Seconds(table, "p50_ps"), Seconds(table, "min_ps"), Seconds(table, "max_ps"),
      ColumnOf(table, "kind"), Column(table, "bytes"), Column(table, "ranks"),
      Seconds(table, "bound_ps"));
}

std::string Matrix(const ChartTable& table) {
  return fmt::format(
      "set size square\nset xlabel 'to GPU'\nset ylabel 'from GPU'\nset yrange [*:*] reverse\n"
      "set logscale cb\nset cblabel 'payload (bytes)'\nset palette defined (0 '#cfe5f0', 0.5 "
      "'#2a82b0', 1 '#10245c')\nset offsets 1, 1, 1, 1\nunset key\nplot data using {}:{}:{} with "
      "points pt 5 ps 0.6 lc palette\n",
      Column(table, "destination_gpu"), Column(table, "source_gpu"),
      Column(table, "payload_bytes"));
}

std::string Fabric(const Chart& chart) {
  const ChartTable& cables = chart.tables[0];
  return fmt::format(
      "unset tics\nunset border\nunset grid\nunset key\nset cblabel 'in use (share of the run)'\n"
      "set palette defined (0 '#cfe5f0', 0.5 '#2a82b0', 1 '#10245c')\nset offsets 0.02, 0.02, 0.3, "
      "0.3\nset colorbox horizontal user origin 0.3, 0.06 size 0.4, 0.025\n"
      "plot data using {0}:{1}:({2} - {0}):({3} - {1}):{4} with vectors nohead lw 1 lc palette, "
      "\\\n"
      "     'fabric_devices.csv' using 3:4 with points pt 5 ps 0.3 lc rgb '#566069', \\\n"
      "     data using ({5} > 0 ? ({0} + {2}) / 2 : NaN):(({1} + {3}) / 2) with points pt 2 ps 1.5 "
      "lw "
      "2 "
      "lc rgb '#d55e00'\n",
      Column(cables, "x1"), Column(cables, "y1"), Column(cables, "x2"), Column(cables, "y2"),
      Column(cables, "utilization"), Column(cables, "has_fault"));
}

std::string Faults(const ChartTable& table) {
  const std::string from = Seconds(table, "from_ps");
  // A fault that is not over lasts to the end of the run.
  const std::string until = fmt::format("(strcol({}) eq '' ? {} : {})", ColumnOf(table, "until_ps"),
                                        Seconds(table, "run_ps"), Seconds(table, "until_ps"));
  return fmt::format(
      "set xlabel 'time (s)'\nset yrange [*:*] reverse\nset offsets 0, 0, 0.6, 0.6\n"
      "plot data using {0}:0:{0}:{1}:($0-0.2):($0+0.2):ytic({2}) with boxxyerror ls 2 fs solid 0.6 "
      "title 'held', \\\n     data using {3}:0 with points ls 1 pt 7 title 'noticed', \\\n"
      "     data using {4}:0 with points ls 3 pt 9 title 'first sent again', \\\n"
      "     data using {5}:0 with points ls 4 pt 13 title 'traffic flowed again'\n",
      from, until, ColumnOf(table, "name"), Seconds(table, "detected_ps"),
      Seconds(table, "first_retransmission_ps"), Seconds(table, "recovered_ps"));
}

// Returns the commands that draw the time that each cause has added. A cause is a row of the table,
// and its bar's label begins with its kind.
std::string AddedTime(const ChartTable& table) {
  return fmt::format(
      "set xlabel 'added time (s)'\nset style fill solid 0.9\nset yrange [*:*] reverse\n"
      "set offsets 0, 0, 0.6, 0.6\nunset key\n"
      "plot data using (0):0:(0):{}:($0-0.36):($0+0.36):ytic(sprintf('%s: %s', strcol({}), "
      "strcol({}))) with boxxyerror ls 1\n",
      Seconds(table, "added_ps"), ColumnOf(table, "kind"), ColumnOf(table, "cause"));
}

std::string Series(const ChartTable& table, const char* figure, const char* label) {
  return fmt::format(
      "set xlabel 'time (s)'\nset ylabel {}\n{}", Quoted(label),
      Grouped(table, "tier", Seconds(table, "begin_ps"), Column(table, figure), kAsSteps));
}

std::string Marks(const ChartTable& table) {
  std::string plots = "set xlabel 'time (s)'\nplot";
  size_t style = 1;
  for (const char* column : {"ecn_marked", "cnp", "nacks", "timeouts", "retransmitted_packets"}) {
    plots += fmt::format("{} data using {}:{} with steps ls {} lw 1.5 title {}",
                         style == 1 ? "" : ", \\\n    ", Seconds(table, "begin_ps"),
                         Column(table, column), style, Quoted(column));
    ++style;
  }
  return plots + "\n";
}

std::string Body(const Chart& chart) {
  const ChartTable& table = chart.tables[0];
  const std::string_view id = chart.id;
  for (const char* ratio : {"stretch", "slowdown", "interference"}) {
    if (id == fmt::format("{}_over_time", ratio)) return OverTime(table, ratio);
    if (id == fmt::format("{}_distribution", ratio)) return Distribution(table, ratio);
  }
  const auto strcol = [&](const char* name) {
    return fmt::format("strcol({})", ColumnOf(table, name));
  };
  if (id == "durations") return Durations(table);
  if (id == "pairs") return Matrix(table);
  if (id == "iteration_pairs") {
    const ChartTable& last = chart.tables[1];
    return fmt::format("data = '{}.csv'\n", last.name) + Matrix(last);
  }
  if (id == "tiers") {
    return "set xlabel 'bytes'\n" +
           Bars(strcol("tier"), {{"payload", Column(table, "payload_bytes")},
                                 {"headers and control", Column(table, "header_bytes")},
                                 {"sent again", Column(table, "retransmitted_bytes")}});
  }
  if (id == "links") {
    return "set xlabel 'in use (share of the run)'\n" +
           Bars(strcol("link"), {{"in use", Column(table, "utilization")}});
  }
  if (id == "bursts") {
    return "set xlabel 'period (s)'\nset ylabel 'on (share)'\n" +
           Grouped(table, "tier", Seconds(table, "period_ps"), Column(table, "duty"), kAsPoints);
  }
  if (id == "fabric") return Fabric(chart);
  if (id == "utilization") return Series(table, "greatest", "busiest link (share in use)");
  if (id == "queues") return Series(table, "queue_max_bytes", "longest queue (bytes)");
  if (id == "marks") return Marks(table);
  if (id == "faults") return Faults(table);
  if (id == "added_time") return AddedTime(table);
  if (id == "slowest") {
    return "set xlabel 'time (s)'\n" + Bars(strcol("part"), {{"time", Seconds(table, "time_ps")}});
  }
  // The chart is that of waits.
  return "set xlabel 'waited, all ranks (s)'\n" +
         Bars(fmt::format("sprintf('%.0f to %.0f', {}, {})", Column(table, "source_rank"),
                          Column(table, "destination_rank")),
              {{"waited", Seconds(table, "waited_ps")}});
}

}  // namespace

std::string GnuplotScript(const Chart& chart) {
  // These are Okabe and Ito's colours.
  static constexpr const char* kColors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                            "#e69f00", "#56b4e9", "#5b646c", "#7a5195"};
  std::string script = fmt::format(
      "# {}\n# gnuplot {}.gp draws {}.svg and {}.pdf from the data beside it.\n"
      "set datafile separator comma\nset datafile columnheaders\ndata = '{}.csv'\nset termoption "
      "noenhanced\n"
      "set title {}\nset grid lc rgb '#dfe3e8'\nset border 3\nset tics nomirror\nset key outside "
      "bottom horizontal\n",
      chart.title, chart.id, chart.id, chart.id, chart.tables[0].name, Quoted(chart.title));
  for (size_t i = 0; i < std::size(kColors); ++i) {
    script += fmt::format("set style line {} lc rgb '{}'\n", i + 1, kColors[i]);
  }
  const std::string body = Body(chart);
  for (const char* format : {"svg", "pdf"}) {
    const bool is_svg = std::string_view(format) == "svg";
    script +=
        fmt::format("\nset terminal {}\nset output '{}.{}'\n{}unset output\n",
                    is_svg ? "svg size 860,520 font 'Helvetica,13' background '#ffffff' noenhanced"
                           : "pdfcairo size 17cm,10.3cm font 'Helvetica,9' noenhanced",
                    chart.id, format, body);
  }
  return script;
}

}  // namespace railyard
