// SPDX-License-Identifier: GPL-2.0-only
// Generates traffic of other jobs over the network: messages between GPUs over the plain transport
// of the job's stack (queue pairs, TCP streams or flows), with the job's window, congestion control
// and retransmission. Each pair of GPUs begins messages at the offered rate, and pauses while eight
// of its messages are in flight; messages that it could not begin meanwhile are omitted.
//
// Other activity of those GPUs is not modelled. A flow that breaks sends no more; no simulated job
// ends because of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/faults/fault_spec.h"
#include "simulator/transport/contract/transport.h"

namespace railyard {

class BackgroundLoad final : public MessageSink {
 public:
  // No message begins while `does_job_run` returns false, because it would have no effect. All
  // references must outlive this.
  BackgroundLoad(const FabricGraph& graph, const std::vector<FaultSpec>& faults,
                 Transport& transport, FabricSimulatorImpl& engine,
                 std::function<bool()> does_job_run);

  // Starts the traffic of a kBackgroundLoad, or stops it after the messages in flight.
  void Set(FaultIndex fault, bool runs);

  // Resumes the traffic when a job runs again.
  void GoOn();

  // Implements MessageSink.
  void OnDelivered(uint32_t /*flow*/) override {}
  void OnCompleted(uint32_t flow) override;
  void OnPacketLost(uint32_t /*flow*/, const FlowLoss& /*loss*/) override {}
  void OnFailed(uint32_t flow, bool at_sender, const FlowError& error) override;

 private:
  static constexpr uint32_t kUnderWayMax = 8;  // the number of slots of a connection of NCCL

  struct Flow {
    GpuIndex sender{0};
    GpuIndex receiver{0};
    uint64_t entropy = 0;
    FlowId number;  // in the transport
    uint64_t message_bytes = 0;
    int64_t period_ps = 0;  // between two messages at the offered rate
    int64_t next_ps = 0;    // when the next message is due
    bool runs = false;
    uint32_t under_way = 0;  // messages
    bool is_scheduled = false;
    bool is_broken = false;
  };

  static void HandleLoad(void* self, uint32_t flow);
  void MakeFlows(FaultIndex fault);
  void Go(FaultIndex fault);
  void SendWhenDue(uint32_t flow);

  const FabricGraph& graph_;
  const std::vector<FaultSpec>& faults_;
  Transport& transport_;
  FabricSimulatorImpl& engine_;
  std::function<bool()> does_job_run_;
  std::vector<Flow> flows_;
  std::vector<std::vector<uint32_t>> flows_of_fault_;
  std::vector<bool> runs_;  // by fault
};

}  // namespace railyard
