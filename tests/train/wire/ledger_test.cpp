// The ledger's accounts.
#include "train/wire/ledger.h"

#include <gtest/gtest.h>

namespace forebay::train {
namespace {

WireLedger some_traffic() {
  WireLedger ledger;
  for (int64_t boundary = 0; boundary < 7; ++boundary)
    for (int micro_batch = 0; micro_batch < 3; ++micro_batch) {
      // 5 rows of 493 codes of 2 bits and 16 scales: 1232.5 bits a row, whole bytes are a few more.
      ledger.record(boundary, Leg::kForward, 5, 617 + 160, 5 * 1232.5);
      ledger.record(boundary, Leg::kBackward, 5, 5 * 154, 5 * 1232.0);
    }
  ledger.record(SideAccount::kSlow, 1000, 8000);
  ledger.record(SideAccount::kRefresh, 1536 * 48 * 4, 1536 * 48 * 32);
  ledger.record(SideAccount::kTied, 64, 512);
  return ledger;
}

TEST(WireLedger, BoundariesTimesRowsTimesLegsAreTheTotal) {
  const WireLedger ledger = some_traffic();
  ASSERT_TRUE(ledger.check().has_value()) << ledger.check().error().message;
  EXPECT_EQ(ledger.total(Leg::kForward).rows, 7 * 3 * 5);
  EXPECT_EQ(ledger.total(Leg::kForward).bytes, 7 * 3 * 777);
  EXPECT_EQ(ledger.total().logical_bits, 7 * 3 * 5 * (1232.5 + 1232.0));
  EXPECT_EQ(ledger.bits_per_row(Leg::kForward), 1232.5);
  EXPECT_EQ(ledger.bits_per_row(Leg::kBackward), 1232.0);
  EXPECT_EQ(ledger.at(6, Leg::kBackward).bytes, 3 * 5 * 154);
  EXPECT_EQ(ledger.at(7, Leg::kBackward), WireCount{});
  // Accounts apart.
  EXPECT_EQ(ledger.total(SideAccount::kSlow).bytes, 1000);
  EXPECT_EQ(ledger.total(SideAccount::kRefresh).bytes, 294912);
}

TEST(WireLedger, AddsOtherProcesses) {
  WireLedger sum = some_traffic();
  sum.add(some_traffic());
  ASSERT_TRUE(sum.check().has_value());
  EXPECT_EQ(sum.total().bytes, 2 * some_traffic().total().bytes);
  EXPECT_EQ(sum.total(SideAccount::kSlow).messages, 2);
}

TEST(WireLedger, WhatCameIsWhatWasSent) {
  WireLedger received = some_traffic();
  EXPECT_TRUE(some_traffic().check_received(received));
  received.record(3, Leg::kBackward, 0, 1, 0);
  const Result<void> more = some_traffic().check_received(received);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().message,
            "wire ledger: boundary 3 backward: 2310 bytes of 15 rows in 3 messages were sent, 2311 of 15 in "
            "4 came");
  EXPECT_FALSE(some_traffic().check_received(WireLedger()));
  EXPECT_FALSE(WireLedger().check_received(received));
}

TEST(WireLedger, RoundTripsThroughJson) {
  const WireLedger ledger = some_traffic();
  const Result<WireLedger> again = WireLedger::from_json(ledger.to_json());
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(again->to_json(), ledger.to_json());
  EXPECT_TRUE(again->check().has_value());
  for (const char* broken : {"", "{", "[]", R"({"boundaries":[]})", R"({"boundaries":[{"forward":{}}]})"})
    EXPECT_FALSE(WireLedger::from_json(broken).has_value()) << broken;
}

TEST(WireLedger, RefusesWhatDoesNotAddUp) {
  WireLedger short_of_bytes;
  short_of_bytes.record(2, Leg::kForward, 1, 153, 1232);
  const Result<void> checked = short_of_bytes.check();
  ASSERT_FALSE(checked.has_value());
  EXPECT_NE(checked.error().message.find("boundary 2 forward: 153 bytes"), std::string::npos)
      << checked.error().message;

  std::string json = some_traffic().to_json();
  const std::string total = R"("total":{"forward":{"messages":21,"rows":105)";
  ASSERT_NE(json.find(total), std::string::npos) << json;
  json.replace(json.find(total), total.size(), R"("total":{"forward":{"messages":21,"rows":104)");
  const Result<void> tampered = WireLedger::from_json(json)->check();
  ASSERT_FALSE(tampered.has_value());
  EXPECT_NE(tampered.error().message.find("the total is"), std::string::npos) << tampered.error().message;
}

}  // namespace
}  // namespace forebay::train
