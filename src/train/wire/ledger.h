/// What crossed the wire, counted twice: the bytes that were sent, and the bits that a stream without
/// rounding up would take. Legs of the boundaries, the slow circuit, refreshes of bases and tied
/// gradients are accounts apart.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "forebay/result.h"

#include "train/wire/payload.h"

namespace forebay::train {

struct WireCount {
  int64_t messages = 0;
  int64_t rows = 0;
  int64_t bytes = 0;
  double logical_bits = 0;

  WireCount& operator+=(const WireCount& other);
  bool operator==(const WireCount&) const = default;
};

/// What is not a leg of a boundary.
enum class SideAccount {
  kSlow,     // the anchor's circuit
  kRefresh,  // bases that are sent when they change
  kTied,     // gradients of an embedding that is the head too, from one end of the pipeline to the other
};

/// Confined.
class WireLedger {
 public:
  /// One payload: what it really took and what was declared for its rows.
  void record(int64_t boundary, Leg leg, int64_t rows, int64_t bytes, double logical_bits);
  void record(SideAccount account, int64_t bytes, double logical_bits);
  /// Another process's counts.
  void add(const WireLedger& other);

  /// Zero where nothing crossed.
  WireCount at(int64_t boundary, Leg leg) const;
  WireCount total(Leg leg) const;
  WireCount total(SideAccount account) const { return side_[static_cast<size_t>(account)]; }
  /// All of both legs.
  WireCount total() const;

  /// Bits of one row across one boundary, as accounted; 0 before the first row.
  double bits_per_row(Leg leg) const;

  /// The accounts of the boundaries add up to the totals, which are kept beside them, and nowhere are fewer
  /// bytes sent than its bits take. Errors: kInternal, naming the first account that disagrees.
  Result<void> check() const;

  /// What the receivers counted, of the same payloads. Errors: kInternal, naming the first account in which
  /// messages, rows or bytes that came are not those that were sent.
  Result<void> check_received(const WireLedger& received) const;

  /// {"boundaries":[{"boundary":0,"forward":{...},"backward":{...}}],"total":{...},"slow":{...},
  /// "refresh":{...},"tied":{...}}, each count {"messages","rows","bytes","logical_bits"}.
  std::string to_json() const;
  /// Errors: kCorrupt.
  static Result<WireLedger> from_json(std::string_view json);

 private:
  std::map<std::pair<int64_t, Leg>, WireCount> accounts_;
  std::array<WireCount, 2> legs_;  // kept beside accounts_, so that check() has two sides
  std::array<WireCount, 3> side_;  // by SideAccount
};

/// What the receiver's meter does with a payload: whatever lies past the declared length is zeroed, so a
/// codec that declares less than it sends loses only its own data. The bytes that came.
int64_t meter_payload(Payload& received, size_t declared_bytes);

}  // namespace forebay::train
