#include "convert/type_plan.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "quant/quant.h"

namespace forebay {
namespace {

double bits_per_weight(DType type) {
  return 8.0 * info(type).block_bytes / info(type).block_weights;
}

bool can_write(DType type, WeightSource weights) {
  const Codec* codec = find_codec(type);
  return codec != nullptr && (codec->encode != nullptr || weights == WeightSource::kRandom);
}

std::string writable_types(WeightSource weights) {
  std::vector<std::string_view> names;
  for (uint32_t id = 0; id < 64; ++id) {
    const auto type = dtype_from_id(id);
    if (type && can_write(*type, weights)) names.push_back(name_of(*type));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<DType> parse_type(std::string_view text, WeightSource weights) {
  const auto type = dtype_from_name(text);
  if (!type)
    return Error{Code::kInvalidArgument,
                 fmt::format("'{}' is not a type, wanted one of {}", text, writable_types(weights))};
  if (!can_write(*type, weights))
    return Error{Code::kUnsupported, fmt::format("type {} cannot be written, wanted one of {}",
                                                 name_of(*type), writable_types(weights))};
  return *type;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// A type with blocks of 32 that stores about as much as one with larger blocks.
DType narrow_block_type(DType wanted) {
  switch (wanted) {
    case DType::kQ2_K:
    case DType::kQ3_K:
      return DType::kQ4_0;
    case DType::kQ4_K:
      return DType::kQ5_0;
    case DType::kQ5_K:
      return DType::kQ5_1;
    case DType::kQ6_K:
      return DType::kQ8_0;
    default:
      return DType::kIQ4_NL;
  }
}

}  // namespace

Result<TypePlan> parse_type_plan(std::string_view text, WeightSource weights) {
  TypePlan plan;
  bool has_default = false;
  while (!text.empty()) {
    const size_t line_end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, line_end);
    text.remove_prefix(std::min(line_end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    while (!line.empty()) {
      const size_t item_end = std::min(line.find(','), line.size());
      const std::string_view item = trimmed(line.substr(0, item_end));
      line.remove_prefix(std::min(item_end + 1, line.size()));
      if (item.empty()) continue;
      const size_t equals = item.rfind('=');
      if (equals == std::string_view::npos) {
        if (has_default)
          return Error{Code::kInvalidArgument,
                       fmt::format("'{}' is a second default type, wanted pattern=type", item)};
        plan.default_type = TRY(parse_type(item, weights));
        has_default = true;
        continue;
      }
      const std::string_view pattern = trimmed(item.substr(0, equals));
      if (pattern.empty())
        return Error{Code::kInvalidArgument, fmt::format("'{}' has no pattern, wanted pattern=type", item)};
      const DType type = TRY(parse_type(trimmed(item.substr(equals + 1)), weights));
      plan.entries.push_back({std::string(pattern), type});
    }
  }
  if (!has_default && plan.entries.empty())
    return Error{Code::kInvalidArgument,
                 fmt::format("no type given, wanted one of {}", writable_types(weights))};
  return plan;
}

bool matches_pattern(std::string_view pattern, std::string_view name) {
  // Greedy with one way back: to the last '*', which then takes one more character.
  size_t p = 0, n = 0, star = std::string_view::npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

DType type_for_rows(DType wanted, uint64_t n, bool from_f16) {
  const auto divides = [&](DType type) { return n % info(type).block_weights == 0; };
  if (divides(wanted)) return wanted;
  const DType narrow = narrow_block_type(wanted);
  if (info(wanted).block_weights > 32 && divides(narrow)) return narrow;
  return from_f16 ? DType::kF16 : DType::kBF16;
}

DType TypeChooser::choose(std::string_view name, TensorRole role, uint64_t row_length, bool from_f16) {
  const bool is_changeable = role == TensorRole::kBulk || role == TensorRole::kMatrix;
  DType wanted = plan_.default_type;
  if (role == TensorRole::kMatrix && bits_per_weight(wanted) < bits_per_weight(DType::kQ8_0))
    wanted = DType::kQ8_0;
  for (size_t i = 0; i < plan_.entries.size(); ++i) {
    if (!matches_pattern(plan_.entries[i].pattern, name)) continue;
    ++n_matches_[i].any;
    n_matches_[i].changeable += is_changeable;
    wanted = plan_.entries[i].type;
    break;
  }
  if (role == TensorRole::kStructure) return DType::kF32;
  if (role == TensorRole::kIndexer && bits_per_weight(wanted) < 16) wanted = DType::kBF16;

  const DType given = type_for_rows(wanted, row_length, from_f16);
  if (given != wanted) {
    Group& group = fallbacks_[{wanted, given, row_length}];
    if (group.n++ == 0) group.first = name;
  }
  return given;
}

Result<void> TypeChooser::check_all_matched() const {
  for (size_t i = 0; i < n_matches_.size(); ++i)
    if (n_matches_[i].any == 0)
      return Error{Code::kInvalidArgument,
                   fmt::format("plan entry {}={} matches no tensor that an earlier entry left",
                               plan_.entries[i].pattern, name_of(plan_.entries[i].type))};
  return {};
}

std::vector<std::string> TypeChooser::notes() const {
  std::vector<std::string> notes;
  for (size_t i = 0; i < n_matches_.size(); ++i)
    if (n_matches_[i].changeable == 0)
      notes.push_back(fmt::format("plan entry {}={} matches only tensors that keep their precision",
                                  plan_.entries[i].pattern, name_of(plan_.entries[i].type)));
  for (const auto& [types, group] : fallbacks_) {
    const auto& [wanted, given, row_length] = types;
    notes.push_back(fmt::format("{} instead of {} for {} with rows of {} values: {}{}", name_of(given),
                                name_of(wanted),
                                group.n == 1 ? "a tensor" : fmt::format("{} tensors", group.n), row_length,
                                group.first, group.n == 1 ? "" : ", ..."));
  }
  return notes;
}

}  // namespace forebay
