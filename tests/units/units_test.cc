// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/units/units.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "simulator/units/quantity_errors.h"

namespace railyard {
namespace {

TEST(TransferTimeTest, SixtyFourBytesAt400GbpsTake1280Ps) {
  EXPECT_EQ(TransferTimePs(64, 400'000'000'000), 1'280);
}

TEST(TransferTimeTest, LargeMessagesDoNotOverflow) {
  // 512 MiB = 2^29 B; 2^32 bits at 0.4 bits per ps.
  EXPECT_EQ(TransferTimePs(1ULL << 29, 400'000'000'000), 10'737'418'240);
  // 1 PiB at 8 Gb/s: one byte per ns.
  EXPECT_EQ(TransferTimePs(1ULL << 50, 8'000'000'000), (int64_t{1} << 50) * 1'000);
}

TEST(TransferTimeTest, RoundsUpToThePicosecond) {
  EXPECT_EQ(TransferTimePs(1, 3'000'000'000'000), 3);   // 2.67 ps
  EXPECT_EQ(TransferTimePs(1, 8'000'000'000'000), 1);   // exactly 1
  EXPECT_EQ(TransferTimePs(1, 80'000'000'000'000), 1);  // 0.1 ps
  EXPECT_EQ(TransferTimePs(0, 1), 0);
}

TEST(ParseDurationTest, EveryUnitIsItsNumberOfPicoseconds) {
  EXPECT_EQ(ParseDurationPs("7ps"), 7);
  EXPECT_EQ(ParseDurationPs("7ns"), 7'000);
  EXPECT_EQ(ParseDurationPs("7us"), 7'000'000);
  EXPECT_EQ(ParseDurationPs("300ms"), 300'000'000'000);
  EXPECT_EQ(ParseDurationPs("7s"), 7'000'000'000'000);
  EXPECT_EQ(ParseDurationPs("2min"), 120'000'000'000'000);
  EXPECT_EQ(ParseDurationPs("1h"), 3'600'000'000'000'000);
  EXPECT_EQ(ParseDurationPs("0s"), 0);
}

TEST(ParseDurationTest, DecimalsAreExact) {
  EXPECT_EQ(ParseDurationPs("4.096us"), 4'096'000);
  EXPECT_EQ(ParseDurationPs("0.001ns"), 1);
  EXPECT_EQ(ParseDurationPs("0.100000000000000000000000ns"), 100);
  EXPECT_EQ(ParseDurationPs("1234567.890123456789s"), 1'234'567'890'123'456'789);
  EXPECT_EQ(ParseDurationPs("0000000000000000000000000007ps"), 7);
}

TEST(ParseDurationTest, OneSpaceMayStandBeforeTheUnit) {
  EXPECT_EQ(ParseDurationPs("300 ms"), 300'000'000'000);
  EXPECT_EQ(ParseDurationPs("300  ms"), std::nullopt);
  EXPECT_EQ(ParseDurationPs(" 300ms"), std::nullopt);
  EXPECT_EQ(ParseDurationPs("300ms "), std::nullopt);
}

TEST(ParseDurationTest, RefusesWhatIsNotADuration) {
  for (const char* text : {"", "ms", "300", "0", "300 ", "-3ms", "+3ms", "3.ms", ".5ms", "1.2.3s",
                           "1e3ms", "3MS", "3m", "3 potatoes", "0x10s", "1,000ms", "3msms"}) {
    EXPECT_EQ(ParseDurationPs(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(ParseDurationTest, RefusesMorePrecisionThanAPicosecond) {
  EXPECT_EQ(ParseDurationPs("0.5ps"), std::nullopt);
  EXPECT_EQ(ParseDurationPs("4.0961234us"), std::nullopt);
  EXPECT_EQ(ParseDurationPs("0.000000000000000000000000000001s"), std::nullopt);
}

TEST(ParseDurationTest, TheLargestIsOnePicosecondBelowNever) {
  EXPECT_EQ(ParseDurationPs("9223372036854775806ps"), kNeverPs - 1);
  EXPECT_EQ(ParseDurationPs("9223372036854775807ps"), std::nullopt);
  EXPECT_EQ(ParseDurationPs("10000000s"), std::nullopt);
  EXPECT_EQ(ParseDurationPs("99999999999999999999h"), std::nullopt);
  EXPECT_EQ(ParseDurationPs("340282366920938463463374607431768211457ps"), std::nullopt);
}

TEST(ParseRateTest, BitsAndBytesPerSecondDifferByEight) {
  EXPECT_EQ(ParseRateBps("1bps"), 1u);
  EXPECT_EQ(ParseRateBps("1Kbps"), 1'000u);
  EXPECT_EQ(ParseRateBps("1kbps"), 1'000u);
  EXPECT_EQ(ParseRateBps("1Mbps"), 1'000'000u);
  EXPECT_EQ(ParseRateBps("400Gbps"), 400'000'000'000u);
  EXPECT_EQ(ParseRateBps("1.6Tbps"), 1'600'000'000'000u);
  EXPECT_EQ(ParseRateBps("1Bps"), 8u);
  EXPECT_EQ(ParseRateBps("1KBps"), 8'000u);
  EXPECT_EQ(ParseRateBps("1MBps"), 8'000'000u);
  EXPECT_EQ(ParseRateBps("450GBps"), 3'600'000'000'000u);
  EXPECT_EQ(ParseRateBps("1TBps"), 8'000'000'000'000u);
  EXPECT_EQ(ParseRateBps("20.6 GB/s"), 164'800'000'000u);
  EXPECT_EQ(ParseRateBps("400 Gb/s"), 400'000'000'000u);
}

TEST(ParseRateTest, RefusesWhatIsNotARate) {
  for (const char* text : {"", "400", "400G", "400Gb", "400GBPS", "400gbps", "400mbps", "400Gibps",
                           "-1bps", "4 potatoes", "ps", "1ps", "0.5bps", "1.5b/s", "400Gbps/s"}) {
    EXPECT_EQ(ParseRateBps(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(ParseRateTest, TheLargestRateIsWhat64BitsHold) {
  EXPECT_EQ(ParseRateBps("18446744073709551615bps"), UINT64_MAX);
  EXPECT_EQ(ParseRateBps("18446744073709551616bps"), std::nullopt);
  EXPECT_EQ(ParseRateBps("99999999999999999999TBps"), std::nullopt);
}

TEST(ParseBytesTest, PrefixesArePowersOf1024HoweverTheyAreWritten) {
  for (const char* text : {"64M", "64MB", "64MiB", "64m", "64 MiB", "65536K", "0.0625G"}) {
    EXPECT_EQ(ParseBytes(text), 67'108'864u) << text;
  }
  EXPECT_EQ(ParseBytes("1K"), 1'024u);
  EXPECT_EQ(ParseBytes("1GiB"), 1'073'741'824u);
  EXPECT_EQ(ParseBytes("1TB"), 1'099'511'627'776u);
  for (const char* text : {"1P", "1p", "1PB", "1PiB"}) EXPECT_EQ(ParseBytes(text), 1ULL << 50);
}

TEST(ParseBytesTest, ABareNumberIsBytes) {
  EXPECT_EQ(ParseBytes("4096"), 4'096u);
  EXPECT_EQ(ParseBytes("4096B"), 4'096u);
  EXPECT_EQ(ParseBytes("0"), 0u);
}

TEST(ParseBytesTest, RefusesWhatIsNotASize) {
  for (const char* text : {"", "B", "M", "-1", "64b", "64Mb", "64Mib", "64iB", "1.5", "1.5B",
                           "0.0001K", "64 potatoes", "64 ", "64MiBs", "16777216T"}) {
    EXPECT_EQ(ParseBytes(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(QuantityErrorsTest, FormUnitSizeAndFinenessAreDistinguished) {
  EXPECT_EQ(WhyNoDuration("soon"),
            "is not a duration (expected a duration with its unit, e.g. \"300ms\")");
  EXPECT_EQ(WhyNoDuration("300"), WhyNoDuration("soon"));
  EXPECT_EQ(WhyNoDuration("1day"), "has an unknown unit (expected ps, ns, us, ms, s, min or h)");
  EXPECT_EQ(WhyNoDuration("99999999s"), "is too large (expected at most 2562h)");
  EXPECT_EQ(WhyNoDuration("0.5ps"), "is too fine (expected whole picoseconds)");
  EXPECT_EQ(WhyNoDuration("123456789012345678901ps"),
            "has more than 20 significant digits (expected at most 2562h, in whole picoseconds)");
  EXPECT_EQ(WhyNoRate("400"),
            "is not a data rate (expected a data rate with its unit, e.g. \"400Gbps\")");
  EXPECT_EQ(WhyNoRate("1Pbps"),
            "has an unknown unit (expected bps, Kbps, Mbps, Gbps or Tbps, or for bytes Bps to "
            "TBps)");
  EXPECT_EQ(WhyNoRate("99999999Tbps"), "is too large (expected at most 18446744Tbps)");
  EXPECT_EQ(WhyNoRate("0.5bps"), "is too fine (expected whole bits per second)");
  EXPECT_EQ(WhyNoBytes("M"),
            "is not a size (expected a size, e.g. \"64MiB\" (K, M, G are powers of 1,024))");
  EXPECT_EQ(WhyNoBytes("1EiB"), "has an unknown unit (expected B, KiB, MiB, GiB, TiB or PiB)");
  EXPECT_EQ(WhyNoBytes("16384PiB"), "is too large (expected at most 16383PiB)");
  EXPECT_EQ(WhyNoBytes("1.5B"), "is too fine (expected whole bytes)");
}

TEST(QuantityErrorsTest, TheLargestThatTheyNameAreRead) {
  EXPECT_TRUE(ParseDurationPs("2562h").has_value());
  EXPECT_TRUE(ParseRateBps("18446744Tbps").has_value());
  EXPECT_TRUE(ParseBytes("16383PiB").has_value());
}

TEST(FormatTest, DurationsHaveThreeSignificantDigits) {
  EXPECT_EQ(FormatDuration(0), "0 s");
  EXPECT_EQ(FormatDuration(7), "7 ps");
  EXPECT_EQ(FormatDuration(1'250'000), "1.25 us");
  EXPECT_EQ(FormatDuration(4'294'967'296'000), "4.29 s");
  EXPECT_EQ(FormatDuration(34'359'738'368'000), "34.4 s");
  EXPECT_EQ(FormatDuration(300 * kPsPerMs), "300 ms");
  EXPECT_EQ(FormatDuration(999'600), "1 us");
  EXPECT_EQ(FormatDuration(9'996'000), "10 us");
  EXPECT_EQ(FormatDuration(1'004), "1 ns");
  EXPECT_EQ(FormatDuration(1'005), "1.01 ns");
  EXPECT_EQ(FormatDuration(12'345 * kPsPerSecond), "12345 s");
  EXPECT_EQ(FormatDuration(-1'250'000), "-1.25 us");
  EXPECT_EQ(FormatDuration(INT64_MIN), "-9223372 s");
}

TEST(FormatTest, SizesArePowersOf1024) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1'023), "1023 B");
  EXPECT_EQ(FormatBytes(64ULL << 20), "64 MiB");
  EXPECT_EQ(FormatBytes(1'536), "1.5 KiB");
  EXPECT_EQ(FormatBytes((1ULL << 20) - 1), "1 MiB");
  EXPECT_EQ(FormatBytes(UINT64_MAX), "16 EiB");
}

TEST(FormatTest, RatesAreBytesPerSecond) {
  EXPECT_EQ(FormatRate(400'000'000'000), "50 GB/s");
  EXPECT_EQ(FormatRate(3'128'000'000'000), "391 GB/s");
  EXPECT_EQ(FormatRate(4), "0.5 B/s");
  EXPECT_EQ(FormatRate(0), "0 B/s");
  EXPECT_EQ(FormatRate(8'000'000'000'000), "1 TB/s");
}

TEST(FormatTest, WhatIsFormattedCanBeRead) {
  EXPECT_EQ(ParseDurationPs(FormatDuration(1'250'000)), 1'250'000);
  EXPECT_EQ(ParseBytes(FormatBytes(64ULL << 20)), 64ULL << 20);
  EXPECT_EQ(ParseRateBps(FormatRate(400'000'000'000)), 400'000'000'000u);
}

}  // namespace
}  // namespace railyard
