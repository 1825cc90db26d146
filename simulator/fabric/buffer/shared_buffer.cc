// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/buffer/shared_buffer.h"

#include <cmath>

#include "simulator/units/units.h"

namespace railyard {

SharedBuffer MakeSharedBuffer(DeviceId device, const BufferSettings& settings, bool is_lossless) {
  SharedBuffer buffer;
  buffer.device = device;
  buffer.is_lossless = is_lossless;
  buffer.bytes_max = static_cast<int64_t>(settings.buffer_bytes);
  buffer.alpha_128ths = std::llround(settings.alpha * SharedBuffer::kAlphaOne);
  // This follows from bytes <= alpha (max - bytes).
  buffer.calm_bytes =
      buffer.alpha_128ths * buffer.bytes_max / (SharedBuffer::kAlphaOne + buffer.alpha_128ths);
  buffer.xon_offset_bytes = static_cast<int64_t>(settings.xon_offset_bytes);
  return buffer;
}

uint64_t HeadroomBytes(const HeadroomCase& hop) {
  const int64_t reaction_ps =
      TransferTimePs(hop.mtu_bytes + 3 * kPauseFrameBytes, hop.reverse_rate_bps) +
      hop.reverse_propagation_ps + hop.pause_response_ps;
  const auto window_ps =
      static_cast<unsigned __int128>(reaction_ps) + static_cast<unsigned __int128>(hop.delay_ps);
  constexpr unsigned __int128 kBitsPsPerByteSecond =
      8 * static_cast<unsigned __int128>(kPsPerSecond);
  const unsigned __int128 on_the_way =
      (window_ps * hop.rate_bps + kBitsPsPerByteSecond - 1) / kBitsPsPerByteSecond;
  return static_cast<uint64_t>(on_the_way) + hop.mtu_bytes;
}

}  // namespace railyard
