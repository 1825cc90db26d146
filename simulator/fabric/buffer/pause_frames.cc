// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/buffer/pause_frames.h"

#include <algorithm>

#include "simulator/fabric/buffer/shared_buffer.h"

namespace railyard {

int64_t PauseFrames::Send(PauseFrame frame) {
  const LinkId reverse = tables_.graph->ReverseLink(tables_.LinkOf(frame.channel));
  int64_t& end_ps = last_frame_end_ps_[frame.channel];
  const int64_t start_ps = std::max(tables_.ServiceEndPs(reverse), end_ps);
  end_ps = start_ps + tables_.TransmissionPs(reverse, kPauseFrameBytes);
  ++(frame.xoff ? tables_.counters.xoff_frames : tables_.counters.xon_frames);
  return end_ps + tables_.graph->link(reverse).propagation_ps + tables_.settings.pause_response_ps;
}

}  // namespace railyard
