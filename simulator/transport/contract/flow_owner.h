// SPDX-License-Identifier: GPL-2.0-only
// Declares what users of flows need whatever carries the flows' payload: messages between servers
// (transport.h), stores inside a server, or operands of sums in switches.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/units/identifier.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Identifies a flow of a transport by its number.
using FlowId = Identifier<struct FlowIdTag>;

// Names a link, and the share of a flow's payload that crosses it.
struct LinkShare {
  LinkId link{0};
  double share = 1;
};

// Holds the total time of a flow's recoveries from losses so far.
struct RecoveryTimes {
  // The time from a loss, or from the previous retransmission, until the timer expired.
  int64_t timeout_ps = 0;
  // The time from the expiry, or from the loss to the request for retransmission, until the loss
  // was repaired.
  int64_t retransmission_ps = 0;
  RecoveryTimes& operator+=(const RecoveryTimes& other) {
    timeout_ps += other.timeout_ps;
    retransmission_ps += other.retransmission_ps;
    return *this;
  }
};

// Declares an owner of flows, which are numbered densely from 0.
class FlowOwner {
 public:
  virtual ~FlowOwner() = default;

  // Must be called when the flow is no longer used. Messages that were posted may still arrive;
  // users must ignore callbacks of flows that they have closed.
  virtual void Close(FlowId /*flow*/) {}
  // Must be called when a program begins to use a flow that earlier ones used, so that what the
  // flow does by turns begins as for a new one.
  virtual void StartOver(FlowId /*flow*/) {}

  // Returns the links that the payload crosses on one of the flow's paths, from first to last.
  virtual std::vector<LinkId> LinksOf(FlowId flow) const = 0;
  // Returns the links that the payload crosses on all of the flow's paths, with their shares.
  virtual std::vector<LinkShare> LinkSharesOf(FlowId flow) const = 0;
  // Returns the recovery times of the flow's data or, with false, of its grants.
  virtual RecoveryTimes RecoveryOf(FlowId /*flow*/, bool /*of_data*/) const { return {}; }
};

}  // namespace railyard
