// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/traffic/background_load.h"

#include <algorithm>
#include <utility>

#include "simulator/event_order/event_order.h"
#include "simulator/units/mix64.h"

namespace railyard {

BackgroundLoad::BackgroundLoad(const FabricGraph& graph, const std::vector<FaultSpec>& faults,
                               Transport& transport, FabricSimulatorImpl& engine,
                               std::function<bool()> does_job_run)
    : graph_(graph),
      faults_(faults),
      transport_(transport),
      engine_(engine),
      does_job_run_(std::move(does_job_run)),
      flows_of_fault_(faults.size()),
      runs_(faults.size()) {
  engine.Register(
      event_order::kLoad,
      {.name = "background messages",
       .state = {.why_none = "a load that has not ended has a pending event or message"}},
      &BackgroundLoad::HandleLoad, this);
}

void BackgroundLoad::MakeFlows(FaultIndex fault) {
  const LoadSpec& load = faults_[fault].load;
  const auto nic_of = [this](GpuIndex gpu) { return graph_.NicOfGpu(graph_.gpus()[gpu]); };
  for (const GpuIndex sender : load.senders) {
    for (const GpuIndex receiver : load.receivers) {
      if (nic_of(sender) == nic_of(receiver)) continue;
      Flow flow;
      flow.sender = sender;
      flow.receiver = receiver;
      flow.entropy = Mix64(faults_[fault].seed ^ (uint64_t{sender} << 32 | receiver));
      flow.message_bytes = load.message_bytes;
      flow.period_ps = TransferTimePs(load.message_bytes, load.rate_bps);
      const auto id = static_cast<uint32_t>(flows_.size());
      flow.number = transport_.Open({this, id}, sender, receiver, flow.entropy);
      transport_.CountPayload(flow.number);
      flows_of_fault_[fault].push_back(id);
      flows_.push_back(flow);
    }
  }
}

void BackgroundLoad::Set(FaultIndex fault, bool runs) {
  runs_[fault] = runs;
  Go(fault);
}

void BackgroundLoad::GoOn() {
  for (FaultIndex fault{}; fault < runs_.size(); ++fault) {
    if (faults_[fault].kind == FaultKind::kBackgroundLoad) Go(fault);
  }
}

void BackgroundLoad::Go(FaultIndex fault) {
  if (flows_of_fault_[fault].empty() && runs_[fault]) MakeFlows(fault);
  for (const uint32_t id : flows_of_fault_[fault]) {
    Flow& flow = flows_[id];
    flow.runs = runs_[fault];
    flow.next_ps = std::max(flow.next_ps, engine_.NowPs());
    if (flow.runs) SendWhenDue(id);
  }
}

void BackgroundLoad::SendWhenDue(uint32_t id) {
  Flow& flow = flows_[id];
  if (!flow.runs || flow.is_broken || flow.is_scheduled || !does_job_run_()) return;
  const int64_t now_ps = engine_.NowPs();
  if (flow.next_ps <= now_ps) {
    if (flow.under_way == kUnderWayMax) return;  // until one is complete
    ++flow.under_way;
    transport_.Grant(flow.number, false);
    transport_.Post(flow.number, PostedMessage::OfData(flow.message_bytes));
    flow.next_ps = now_ps + flow.period_ps;
  }
  flow.is_scheduled = true;
  engine_.ScheduleFabric(flow.next_ps, event_order::kLoad, id, id);
}

void BackgroundLoad::HandleLoad(void* self, uint32_t id) {
  auto& load = *static_cast<BackgroundLoad*>(self);
  load.flows_[id].is_scheduled = false;
  load.SendWhenDue(id);
}

void BackgroundLoad::OnCompleted(uint32_t flow) {
  --flows_[flow].under_way;
  SendWhenDue(flow);
}

void BackgroundLoad::OnFailed(uint32_t flow, bool /*at_sender*/, const FlowError& /*error*/) {
  flows_[flow].is_broken = true;
}

}  // namespace railyard
