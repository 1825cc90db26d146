// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/measured_table.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHeader =
    "source_id,collective,nodes,gpus_per_node,gpu,nic_gbps,nccl_version,algo_hint,bytes,time_us,"
    "algbw_GBps,busbw_GBps,notes\n";

class MeasuredTableTest : public ::testing::Test {
 protected:
  MeasuredTableTest() {
    std::string directory = (std::filesystem::temp_directory_path() / "measured-XXXXXX").string();
    directory_ = mkdtemp(directory.data());
  }
  ~MeasuredTableTest() override { std::filesystem::remove_all(directory_); }

  std::vector<MeasuredRow> Read(const std::string& text) {
    path_ = directory_ + "/table.csv";
    std::ofstream(path_) << text;
    Diagnostics diagnostics;
    std::vector<MeasuredRow> rows = ReadMeasuredTable(path_, diagnostics);
    findings_ = diagnostics.ToString();
    return rows;
  }

  std::string directory_;
  std::string path_;
  std::string findings_;
};

TEST_F(MeasuredTableTest, RowsHaveTheirColumnsAndQuotes) {
  const auto rows = Read(std::string(kHeader) +
                         "a,all_reduce,2,8,H100,8x400 IB,2.27.5,auto,1024,12.5,0.1,0.2,"
                         "\"said \"\"so\"\", twice\"\r\n\n"
                         "b,sendrecv,1,4,A100,,unknown,,8,1e1,0,0,\n");
  ASSERT_EQ(rows.size(), 2u) << findings_;
  EXPECT_EQ(rows[0].source_id, "a");
  EXPECT_EQ(rows[0].nodes, 2u);
  EXPECT_EQ(rows[0].gpus_per_node, 8u);
  EXPECT_EQ(rows[0].nics, "8x400 IB");
  EXPECT_EQ(rows[0].bytes, 1024u);
  EXPECT_EQ(rows[0].time_us, 12.5);
  EXPECT_EQ(rows[0].notes, "said \"so\", twice");
  EXPECT_EQ(rows[1].time_us, 10);
  EXPECT_EQ(rows[1].line, 4);
}

TEST_F(MeasuredTableTest, MistakesAreFoundWhereTheyAre) {
  const auto rows = Read(std::string(kHeader) +
                         "a,all_reduce,0,8,H100,,,,1024,12.5,0,0,\n"
                         "a,all_reduce,1,8,H100,,,,many,-1,0,0,\n"
                         "a,all_reduce,1\n"
                         "a,all_reduce,1,8,H100,,,,1024,5e-324,0,0,\n"
                         "a,\"all_reduce\n");
  EXPECT_TRUE(rows.empty());
  EXPECT_EQ(findings_,
            path_ + ":2:14: error: nodes: \"0\" (expected a whole number, 1 or more)\n" + path_ +
                ":3:26: error: bytes: \"many\" (expected a whole number of bytes)\n" + path_ +
                ":3:31: error: time_us: \"-1\" (expected microseconds, 0.001 to 1e12)\n" + path_ +
                ":4:1: error: 3 fields (expected 13)\n" + path_ +
                ":5:31: error: time_us: \"5e-324\" (expected microseconds, 0.001 to 1e12)\n" +
                path_ + ":6:1: error: a quote is not closed\n");
}

TEST_F(MeasuredTableTest, WhatIsNoTableIsRefusedOnce) {
  Read("size,time\n1,2\n3,4\n");
  EXPECT_THAT(findings_, HasSubstr(":1:1: error: not the column names of a table of measurements"));
  EXPECT_EQ(findings_.find("error:"), findings_.rfind("error:"));
  Read("");
  EXPECT_THAT(findings_, HasSubstr(":1:1: error: the file is empty"));
  Diagnostics diagnostics;
  ReadMeasuredTable(directory_, diagnostics);
  EXPECT_THAT(diagnostics.ToString(), HasSubstr("not a file that can be read"));
}

}  // namespace
}  // namespace railyard
