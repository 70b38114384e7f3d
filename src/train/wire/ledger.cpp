#include "train/wire/ledger.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace forebay::train {
namespace {

constexpr std::string_view kSideNames[] = {"slow", "refresh", "tied"};  // by SideAccount

size_t index_of(Leg leg) {
  return static_cast<size_t>(leg);
}
std::string_view name_of(Leg leg) {
  return leg == Leg::kForward ? "forward" : "backward";
}

nlohmann::ordered_json json_of(const WireCount& count) {
  return {{"messages", count.messages},
          {"rows", count.rows},
          {"bytes", count.bytes},
          {"logical_bits", count.logical_bits}};
}

WireCount count_from(const nlohmann::json& json) {
  return {json.at("messages").get<int64_t>(), json.at("rows").get<int64_t>(), json.at("bytes").get<int64_t>(),
          json.at("logical_bits").get<double>()};
}

/// Bytes are whole and bits may not be: the bits must fit.
Result<void> check_fits(const std::string& what, const WireCount& count) {
  if (static_cast<double>(count.bytes) * 8 >= std::ceil(count.logical_bits)) return {};
  return Error{Code::kInternal, fmt::format("wire ledger: {}: {} bytes sent for {} logical bits", what,
                                            count.bytes, count.logical_bits)};
}

}  // namespace

WireCount& WireCount::operator+=(const WireCount& other) {
  messages += other.messages;
  rows += other.rows;
  bytes += other.bytes;
  logical_bits += other.logical_bits;
  return *this;
}

void WireLedger::record(int64_t boundary, Leg leg, int64_t rows, int64_t bytes, double logical_bits) {
  const WireCount count{1, rows, bytes, logical_bits};
  accounts_[{boundary, leg}] += count;
  legs_[index_of(leg)] += count;
}

void WireLedger::record(SideAccount account, int64_t bytes, double logical_bits) {
  side_[static_cast<size_t>(account)] += {1, 0, bytes, logical_bits};
}

void WireLedger::add(const WireLedger& other) {
  for (const auto& [where, count] : other.accounts_) accounts_[where] += count;
  for (size_t i = 0; i < legs_.size(); ++i) legs_[i] += other.legs_[i];
  for (size_t i = 0; i < side_.size(); ++i) side_[i] += other.side_[i];
}

WireCount WireLedger::at(int64_t boundary, Leg leg) const {
  const auto found = accounts_.find({boundary, leg});
  return found == accounts_.end() ? WireCount{} : found->second;
}

WireCount WireLedger::total(Leg leg) const {
  return legs_[index_of(leg)];
}

WireCount WireLedger::total() const {
  WireCount sum = legs_[0];
  return sum += legs_[1];
}

double WireLedger::bits_per_row(Leg leg) const {
  const WireCount& count = legs_[index_of(leg)];
  return count.rows == 0 ? 0 : count.logical_bits / static_cast<double>(count.rows);
}

Result<void> WireLedger::check() const {
  std::array<WireCount, 2> sums;
  for (const auto& [where, count] : accounts_) {
    sums[index_of(where.second)] += count;
    TRY(check_fits(fmt::format("boundary {} {}", where.first, name_of(where.second)), count));
  }
  for (const Leg leg : {Leg::kForward, Leg::kBackward}) {
    const WireCount& sum = sums[index_of(leg)];
    const WireCount& kept = legs_[index_of(leg)];
    const bool same = sum.messages == kept.messages && sum.rows == kept.rows && sum.bytes == kept.bytes &&
                      std::abs(sum.logical_bits - kept.logical_bits) <= 1e-9 * kept.logical_bits;
    if (!same)
      return Error{Code::kInternal,
                   fmt::format("wire ledger: the boundaries' {} legs add up to {} bytes of {} rows, "
                               "the total is {} bytes of {} rows",
                               name_of(leg), sum.bytes, sum.rows, kept.bytes, kept.rows)};
  }
  for (size_t i = 0; i < side_.size(); ++i) TRY(check_fits(std::string(kSideNames[i]), side_[i]));
  return {};
}

Result<void> WireLedger::check_received(const WireLedger& received) const {
  WireLedger both = *this;  // every account that either side has
  both.add(received);
  for (const auto& [where, unused] : both.accounts_) {
    const WireCount out = at(where.first, where.second), in = received.at(where.first, where.second);
    if (out.messages != in.messages || out.rows != in.rows || out.bytes != in.bytes)
      return Error{
          Code::kInternal,
          fmt::format("wire ledger: boundary {} {}: {} bytes of {} rows in {} messages were sent, {} of "
                      "{} in {} came",
                      where.first, name_of(where.second), out.bytes, out.rows, out.messages, in.bytes,
                      in.rows, in.messages)};
  }
  return {};
}

std::string WireLedger::to_json() const {
  nlohmann::ordered_json boundaries = nlohmann::ordered_json::array();
  for (const auto& [where, count] : accounts_) {
    if (boundaries.empty() || boundaries.back()["boundary"] != where.first)
      boundaries.push_back({{"boundary", where.first}});
    boundaries.back()[std::string(name_of(where.second))] = json_of(count);
  }
  nlohmann::ordered_json json;
  json["boundaries"] = std::move(boundaries);
  json["total"] = {{"forward", json_of(legs_[0])}, {"backward", json_of(legs_[1])}};
  for (size_t i = 0; i < side_.size(); ++i) json[std::string(kSideNames[i])] = json_of(side_[i]);
  return json.dump();
}

Result<WireLedger> WireLedger::from_json(std::string_view text) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    WireLedger ledger;
    for (const nlohmann::json& row : json.at("boundaries"))
      for (const Leg leg : {Leg::kForward, Leg::kBackward})
        if (const auto found = row.find(name_of(leg)); found != row.end())
          ledger.accounts_[{row.at("boundary").get<int64_t>(), leg}] = count_from(*found);
    for (const Leg leg : {Leg::kForward, Leg::kBackward})
      ledger.legs_[index_of(leg)] = count_from(json.at("total").at(std::string(name_of(leg))));
    for (size_t i = 0; i < ledger.side_.size(); ++i)
      ledger.side_[i] = count_from(json.at(std::string(kSideNames[i])));
    return ledger;
  } catch (const nlohmann::json::exception& e) {
    return Error{Code::kCorrupt, fmt::format("wire ledger: {}", e.what())};
  }
}

int64_t meter_payload(Payload& received, size_t declared_bytes) {
  if (received.bytes.size() > declared_bytes)
    std::fill(received.bytes.begin() + static_cast<int64_t>(declared_bytes), received.bytes.end(), 0);
  return static_cast<int64_t>(received.bytes.size());
}

}  // namespace forebay::train
