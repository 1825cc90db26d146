// SPDX-License-Identifier: GPL-2.0-only
// Ports in both forms, and what holds their data up: pauses and missing credit.
//
// A port that is a plain FIFO knows each packet's arrival at the far end when the packet joins it:
// one event per hop (short form). A port whose data may be paused, lacks credit or is overtaken
// takes an event for each departure, too (general form): control and data wait, one packet is in
// service, and its departure starts the next. Ports change between the two whenever they have to;
// no result depends on it.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/fabric/buffer/channel_accounts.h"
#include "simulator/fabric/buffer/pause_frames.h"
#include "simulator/fabric/buffer/shared_buffers.h"
#include "simulator/fabric/fabric_tables.h"
#include "simulator/fabric/link/hold_monitor.h"
#include "simulator/fabric/telemetry.h"

namespace railyard {

class EgressPorts {
 public:
  // All must outlive this.
  EgressPorts(FabricTables& tables, ChannelAccounts& accounts, SharedBuffers& buffers,
              HoldMonitor& holds, TelemetryTable& telemetry)
      : tables_(tables),
        accounts_(accounts),
        buffers_(buffers),
        holds_(holds),
        telemetry_(telemetry) {}

  // --- Packets
  // Puts an admitted packet behind what its port holds, in the form the port can take.
  void Send(uint32_t index);
  // The port takes departure events from now on. May move packets.
  void LeaveShortForm(LinkId link);
  // The same for every port of the buffer that has something to send.
  void LeaveShortForms(uint32_t buffer);
  // The packet in service has left its port; Resume() is to follow.
  void FinishService(LinkId link);
  // Something that held the port up has ended: goes on in the form it may take.
  void Resume(LinkId link);
  // The link's rate has changed: what waits takes another time. Resume() is to follow.
  void RetimeWaiting(LinkId link);

  // --- Holds. Those that end tell whether a NIC's or GPU's link is not held any more by anything.
  bool Obey(PauseFrame frame);
  // Data of the link is paused, in all its classes, from now on or no more, whatever frames say.
  bool SetStorm(LinkId link, bool storms);
  // Credit of a channel came back that its port waits for.
  bool WakeForCredit(VirtualChannelId channel);
  bool IsPaused(LinkId link) const {
    const Port* const port = tables_.FindPort(link);
    return port != nullptr && port->paused_classes != 0;
  }
  // Pauses up to now that have not ended.
  int64_t OpenPausePs(const Port& port) const;

 private:
  // Behind the packet in service, in a port of the short form.
  bool SomethingWaits(LinkId link) const;
  void SendInShortForm(uint32_t index) {
    Packet& packet = tables_.packets[index];
    tables_.SendInShortForm(index, packet, tables_.links[packet.link]);
  }
  bool MayReturn(LinkId link, const Port& port) const;
  void ReturnToShortForm(LinkId link, Port& port);
  void Append(Port& port, uint32_t index);
  uint32_t PopControl(Port& port);
  uint32_t PopData(Port& port, uint32_t lossless_class);
  // Starts the next packet that may. Precondition: none is in service.
  void StartNext(LinkId link, Port& port);
  void Start(LinkId link, Port& port, uint32_t index);
  bool SetPaused(LinkId link, uint32_t lossless_class, bool paused);
  void BeginHold(VirtualChannelId channel);
  bool EndHold(LinkId link);

  FabricTables& tables_;
  ChannelAccounts& accounts_;
  SharedBuffers& buffers_;
  HoldMonitor& holds_;
  TelemetryTable& telemetry_;
  std::vector<uint32_t> leaving_;  // LeaveShortForm's
};

}  // namespace railyard
