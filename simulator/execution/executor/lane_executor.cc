// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/executor/lane_executor.h"

#include "simulator/execution/executor/flow_sinks.h"
#include "simulator/transport/stacks/network_stack_settings.h"
#include "simulator/transport/stacks/network_stacks.h"
#include "workloads/layout/fabric_layout.h"

namespace railyard {
namespace {

std::vector<ProxyCosts> ProxyCostsOf(const FabricGraph& graph, const GpuCosts& costs) {
  std::vector<ProxyCosts> of_gpus;
  for (const DeviceId gpu : graph.gpus()) {
    of_gpus.push_back(costs.OfProxy(CpuOf(graph.device(gpu).cpu)));
  }
  return of_gpus;
}

}  // namespace

// The sinks refer to parts that are constructed after them, but are not called before a flow is
// used.
struct LaneExecutor::FlowSinks {
  explicit FlowSinks(LaneExecutor& of)
      : stores(of.table_, of.observer_, of.messages_, of.runner_),
        loads(of.table_, of.observer_, of.runner_),
        switch_sums(of.table_, of.observer_, of.runner_),
        network_sums(of.table_, of.observer_, of.proxies_, of.runner_),
        network(of.table_, of.observer_, of.proxies_, of.runner_),
        left_network(of.table_, of.observer_) {}

  StoreSink stores;
  LoadSink loads;
  SwitchSumSink switch_sums;
  NetworkSumSink network_sums;
  NetworkSink network;
  LeftNetworkSink left_network;
};

LaneExecutor::~LaneExecutor() = default;

LaneExecutor::LaneExecutor(const FabricGraph& graph, FabricNetwork& network, EcmpRouting& routing,
                           const GpuCosts& costs, const NetworkStackSettings& settings,
                           LaneObserver& observer)
    : graph_(graph),
      network_(network),
      observer_(observer),
      proxy_threads_(graph.gpus().size()),
      flows_(settings.uses_flows ? std::make_unique<FlowNetwork>(graph, network) : nullptr),
      load_store_(graph, network),
      stack_(MakeNetworkStack({.graph = graph,
                               .network = network,
                               .routing = routing,
                               .load_store = load_store_,
                               .proxies = proxy_threads_,
                               .flows = flows_.get()},
                              settings)),
      aggregation_(graph, network, routing, settings.nic),
      sinks_(std::make_unique<FlowSinks>(*this)),
      table_(graph, network, load_store_, *stack_, aggregation_,
             {.stores = &sinks_->stores,
              .loads = &sinks_->loads,
              .switch_sums = &sinks_->switch_sums,
              .network_sums = &sinks_->network_sums,
              .network = &sinks_->network}),
      nic_groups_(graph, table_, load_store_, *stack_),
      clock_(graph.gpus().size()),
      lanes_(table_, clock_),
      wakes_(network.engine()),
      network_sums_(aggregation_, table_),
      switch_sums_(load_store_.groups(), table_, sinks_->switch_sums, sinks_->stores),
      proxies_({.engine = network.engine(),
                .threads = proxy_threads_,
                .table = table_,
                .lanes = lanes_,
                .clock = clock_,
                .wakes = wakes_,
                .sums = network_sums_,
                .state = this},
               ProxyCostsOf(graph, costs)),
      claims_(table_, lanes_, wakes_, proxies_),
      messages_({.engine = network.engine(),
                 .table = table_,
                 .lanes = lanes_,
                 .clock = clock_,
                 .wakes = wakes_,
                 .proxies = proxies_,
                 .network_sums = network_sums_,
                 .switch_sums = switch_sums_,
                 .load_store = load_store_,
                 .observer = observer}),
      runner_({.engine = network.engine(),
               .table = table_,
               .lanes = lanes_,
               .clock = clock_,
               .wakes = wakes_,
               .claims = claims_,
               .messages = messages_,
               .load_store = load_store_,
               .observer = observer,
               .state = this}) {
  if (flows_) load_store_.CarryByFlows(*flows_);
  network_.SetSink(load_store_);
  network_.SetSinkOf({PacketKind::kAggregateOperand, PacketKind::kAggregateResult}, aggregation_);
  stack_->TakePackets(network_);
  network_.FetchFlowsAhead(load_store_.FlowTable());
}

void LaneExecutor::KeepPaths() {
  paths_.emplace(network_.engine(), table_);
  runner_.KeepPaths(*paths_);
  messages_.KeepPaths(*paths_);
  proxies_.KeepPaths(*paths_);
}

void LaneExecutor::FailOver(NicPolicy policy) {
  failover_.emplace(NicFailover::Parts{.graph = graph_,
                                       .network = network_,
                                       .table = table_,
                                       .stack = *stack_,
                                       .proxies = proxies_,
                                       .observer = observer_,
                                       .sink = sinks_->network,
                                       .left_sink = sinks_->left_network},
                    policy);
  sinks_->network.FailOver(*failover_);
  table_.SetDetours([this](ConnectionId connection) { return failover_->OpenAround(connection); });
}

void LaneExecutor::ResolvePaths() {
  table_.OnRoutesChanged();
  stack_->OnRoutesChanged();
  if (paths_) paths_->OnRoutesChanged();
}

std::vector<ConnectionId> LaneExecutor::Close(PartIndex part) {
  std::vector<ConnectionId> closed = table_.Close(part);
  if (failover_) failover_->Forget(part);
  claims_.Forget(closed);
  lanes_.EndPart(part);
  runner_.ForgetEnded();
  return closed;
}

void LaneExecutor::SetGpuSpeed(GpuIndex gpu, double speed) {
  clock_.SetSpeed(gpu, speed);
  if (speed != 0) runner_.ResumeGpu(gpu);
}

}  // namespace railyard
