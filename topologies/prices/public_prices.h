// SPDX-License-Identifier: GPL-2.0-only
#pragma once

namespace railyard {

// The text of topologies/prices/public-2024.textproto, embedded by the build.
extern const char* const kPublicPrices;

}  // namespace railyard
