// SPDX-License-Identifier: GPL-2.0-only
// <regex>, without GCC 12's false alarm about its std::function under AddressSanitizer (GCC bug
// 105562).
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <regex>
#pragma GCC diagnostic pop
#else
#include <regex>
#endif
