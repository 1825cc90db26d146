// SPDX-License-Identifier: GPL-2.0-only
#include <cstddef>
#include <vector>

#include "analysis/writers/cells.h"
#include "analysis/writers/result_tables.h"

namespace railyard {

ResultTable PairsTable(const RunResult& result) {
  return {.name = "pairs",
          .columns = {{"source_gpu", ColumnType::kInteger},
                      {"destination_gpu", ColumnType::kInteger},
                      {"tiers_crossed", ColumnType::kText},
                      {"payload_bytes", ColumnType::kInteger}},
          .row_count = result.pairs.size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            const PairResult& pair = result.pairs[row];
            cells.insert(cells.end(),
                         {IntegerCell(pair.source_gpu), IntegerCell(pair.destination_gpu),
                          TextCell(pair.tiers), IntegerCell(pair.payload_bytes)});
          }};
}

ResultTable InNetworkTable(const RunResult& result) {
  return {.name = "in_network",
          .columns = {{"gpu", ColumnType::kInteger},
                      {"switches", ColumnType::kText},
                      {"operation", ColumnType::kText},
                      {"tiers_crossed", ColumnType::kText},
                      {"sent_bytes", ColumnType::kInteger},
                      {"received_bytes", ColumnType::kInteger}},
          .row_count = result.in_network.size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            const InNetworkResult& of_gpu = result.in_network[row];
            cells.insert(cells.end(),
                         {IntegerCell(of_gpu.gpu), TextCell(of_gpu.switches),
                          TextCell(of_gpu.operation), TextCell(of_gpu.tiers),
                          IntegerCell(of_gpu.sent_bytes), IntegerCell(of_gpu.received_bytes)});
          }};
}

ResultTable LinksTable(const RunResult& result) {
  return {.name = "links",
          .columns = {{"link", ColumnType::kText},
                      {"tier", ColumnType::kText},
                      {"rate_bps", ColumnType::kInteger},
                      {"payload_bytes", ColumnType::kInteger},
                      {"header_bytes", ColumnType::kInteger},
                      {"retransmitted_bytes", ColumnType::kInteger},
                      {"packets", ColumnType::kInteger},
                      {"dropped_packets", ColumnType::kInteger}},
          .row_count = result.links.size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            const LinkResult& link = result.links[row];
            cells.insert(cells.end(),
                         {TextCell(link.name), TextCell(link.tier), IntegerCell(link.rate_bps),
                          IntegerCell(link.payload_bytes), IntegerCell(link.header_bytes),
                          IntegerCell(link.retransmitted_bytes), IntegerCell(link.packets),
                          IntegerCell(link.dropped_packets)});
          }};
}

ResultTable TrafficTable(const RunResult& result) {
  return {.name = "traffic",
          .columns = {{"link", ColumnType::kText},
                      {"tier", ColumnType::kText},
                      {"flows", ColumnType::kInteger},
                      {"flow_entropy_bits", ColumnType::kReal},
                      {"bursts", ColumnType::kInteger},
                      {"on_ps", ColumnType::kInteger},
                      {"period_ps", ColumnType::kInteger},
                      {"duty", ColumnType::kReal}},
          .row_count = result.links.size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            const LinkResult& link = result.links[row];
            cells.insert(cells.end(),
                         {TextCell(link.name), TextCell(link.tier), IntegerCell(link.flows),
                          link.flow_entropy_bits, IntegerCell(link.load.bursts), link.load.on_ps,
                          SignedCell(link.load.period_ps), RealCell(link.load.duty)});
          }};
}

ResultTable MessageSizesTable(const RunResult& result) {
  return {.name = "message_sizes",
          .columns = {{"bytes", ColumnType::kInteger}, {"messages", ColumnType::kInteger}},
          .row_count = result.traffic.message_sizes.size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            const MessageSizeResult& size = result.traffic.message_sizes[row];
            cells.insert(cells.end(), {IntegerCell(size.bytes), IntegerCell(size.count)});
          }};
}

ResultTable IterationsTable(const RunResult& result) {
  return {.name = "iterations",
          .columns = {{"job", ColumnType::kText},
                      {"iteration", ColumnType::kInteger},
                      {"drift", ColumnType::kReal},
                      {"all_to_all_drift", ColumnType::kReal},
                      {"all_to_all_imbalance", ColumnType::kReal}},
          .row_count = result.traffic.iterations.size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            const IterationResult& iteration = result.traffic.iterations[row];
            cells.insert(cells.end(), {TextCell(result.jobs[iteration.job].name),
                                       IntegerCell(iteration.iteration), RealCell(iteration.drift),
                                       RealCell(iteration.all_to_all_drift),
                                       RealCell(iteration.all_to_all_imbalance)});
          }};
}

ResultTable IterationPairsTable(const RunResult& result) {
  return {.name = "iteration_pairs",
          .columns = {{"job", ColumnType::kText},
                      {"iteration", ColumnType::kInteger},
                      {"kind", ColumnType::kText},
                      {"layer", ColumnType::kInteger},
                      {"source_gpu", ColumnType::kInteger},
                      {"destination_gpu", ColumnType::kInteger},
                      {"payload_bytes", ColumnType::kInteger}},
          .row_count = result.traffic.iteration_pairs.size(),
          .append_row = [&result](size_t row, std::vector<Cell>& cells) {
            const IterationPairResult& pair = result.traffic.iteration_pairs[row];
            const bool has_layer = pair.layer != IterationPairResult::kNoLayer;
            cells.insert(cells.end(),
                         {TextCell(result.jobs[pair.job].name), IntegerCell(pair.iteration),
                          TextCell(pair.kind), has_layer ? IntegerCell(pair.layer) : Cell(),
                          IntegerCell(pair.source_gpu), IntegerCell(pair.destination_gpu),
                          IntegerCell(pair.payload_bytes)});
          }};
}

}  // namespace railyard
