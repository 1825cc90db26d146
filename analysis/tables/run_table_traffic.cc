// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/tables/run_table_traffic.h"

#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "analysis/metrics/run_metrics.h"
#include "analysis/metrics/traffic_metrics.h"
#include "analysis/tables/figure_text.h"
#include "analysis/tables/text_table.h"
#include "simulator/diagnostics/utf8.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

std::string InNetworkText(const InNetworkTotals& total) {
  return fmt::format("{} {} {} that GPUs sent, and handed out {}.",
                     total.switches == "NVSWITCH" ? "NVSwitches" : "The network's switches",
                     total.operation == "REDUCE" ? "reduced" : "multicast",
                     FormatBytes(total.sent_bytes), FormatBytes(total.received_bytes));
}

void PrintTiers(const RunResult& result, TerminalText& text) {
  text.Section("Bytes per tier, counted once per link crossed");
  TextTable table({{"tier", Align::kLeft},
                   {"links"},
                   {"payload"},
                   {"share"},
                   {"headers and control"},
                   {"payload sent again"}});
  for (const TierTotals& tier : TotalsByTier(result)) {
    table.AddRow({ToTerminalText(tier.tier, 16), CountText(tier.links),
                  FormatBytes(tier.payload_bytes), PercentText(tier.payload_share),
                  FormatBytes(tier.header_bytes), FormatBytes(tier.retransmitted_bytes)});
  }
  text.Table(table);
  text.Paragraph(
      fmt::format("Of {} that went from GPU to GPU, {} left its server and {} reached the spine.",
                  FormatBytes(result.payload_bytes),
                  PercentText(Share(result.payload_left_server_bytes, result.payload_bytes)),
                  PercentText(Share(result.payload_reached_spine_bytes, result.payload_bytes))));
  for (const InNetworkTotals& total : TotalsInNetwork(result)) {
    text.Paragraph(InNetworkText(total));
  }
  const PairCounts pairs = CountPairs(result);
  text.Paragraph(fmt::format("{} of {} possible pairs of GPUs talked ({}).",
                             CountText(pairs.active), CountText(pairs.possible),
                             PercentText(Share(pairs.active, pairs.possible))));
}

void PrintFigures(const RunResult& result, TerminalText& text) {
  const TrafficFigures traffic = TrafficOf(result);
  if (traffic.pair_entropy_share) {
    text.Paragraph(fmt::format("The pair matrix has {:.2f} bits of entropy, {} of an even one's.",
                               traffic.pair_entropy_bits,
                               PercentText(*traffic.pair_entropy_share)));
  }
  if (traffic.flow_entropy_bits) {
    std::string flows =
        fmt::format("{} carried flows of {:.2f} bits of entropy (median)",
                    PluralText(traffic.links_used, "link"), traffic.flow_entropy_bits->p50);
    if (traffic.link_periods && traffic.link_duty) {
      flows += fmt::format(", in bursts every {} that lasted {} of the time",
                           FormatDuration(traffic.link_periods->p50_ps),
                           PercentText(traffic.link_duty->p50));
    }
    text.Paragraph(flows + ".");
  }
  if (traffic.message_sizes) {
    const SizeStatistics& sizes = *traffic.message_sizes;
    text.Paragraph(fmt::format("Messages: {}, {} to {}, median {}.", CountText(sizes.count),
                               FormatBytes(sizes.min), FormatBytes(sizes.max),
                               FormatBytes(sizes.p50)));
  }
  if (traffic.drift) {
    text.Paragraph(
        fmt::format("Over {} the pair matrix drifted by {} from one to the next, at most "
                    "by {}.",
                    PluralText(traffic.iterations, "iteration"), PercentText(traffic.drift->mean),
                    PercentText(traffic.drift->max)));
  }
  if (traffic.all_to_all_imbalance) {
    const auto& imbalance = *traffic.all_to_all_imbalance;
    std::string text_of = fmt::format(
        "The busiest rank of an AllToAll has {:.2f} times the mean rank's bytes", imbalance.mean);
    if (traffic.all_to_all_drift) {
      text_of += fmt::format(
          "; from one iteration to the next the AllToAlls' matrix drifted by {}, at most by {}",
          PercentText(traffic.all_to_all_drift->mean), PercentText(traffic.all_to_all_drift->max));
    }
    text.Paragraph(text_of + ".");
  }
}

}  // namespace

void PrintTraffic(const RunResult& result, TerminalText& text) {
  PrintTiers(result, text);
  PrintFigures(result, text);
}

}  // namespace railyard
