#include "kernels/kv_rows.h"

#include <iterator>
#include <utility>

#include "core/ensure.h"

namespace forebay {
namespace {

constexpr std::pair<KvType, std::string_view> kNames[] = {
    {KvType::kF32, "f32"}, {KvType::kF16, "f16"}, {KvType::kBf16, "bf16"}, {KvType::kInt8, "int8"}};

}  // namespace

std::string_view name_of(KvType type) {
  for (const auto& [value, name] : kNames)
    if (value == type) return name;
  return "unknown";
}

std::optional<KvType> kv_type_from_name(std::string_view wanted) {
  for (const auto& [value, name] : kNames)
    if (name == wanted) return value;
  return std::nullopt;
}

void write_rows(Isa isa, const KvRows& rows, int64_t first_cell, TensorView<const float> x) {
  ENSURE(x.cols == rows.width(), "write_rows width");
  const auto write =
      isa == Isa::kReference ? kv_rows_detail::write_head_ref : kv_rows_detail::write_head_avx2;
  for (int64_t t = 0; t < x.rows; ++t)
    for (int h = 0; h < rows.n_heads; ++h)
      write(rows, first_cell + t, h, x.row(t) + static_cast<int64_t>(h) * rows.head_dim);
}

void read_head(Isa isa, const KvRows& rows, int64_t cell, int head, float* out) {
  if (isa == Isa::kReference)
    kv_rows_detail::read_head_ref(rows, cell, head, out);
  else
    kv_rows_detail::read_head_avx2(rows, cell, head, out);
}

void rewrite_head(const KvRows& rows, int64_t cell, int head, int n_dims, const float* x) {
  ENSURE(n_dims >= 0 && n_dims <= rows.head_dim, "rewrite_head dimensions");
  kv_rows_detail::write_dims_ref(rows, cell, head, n_dims, x);
}

}  // namespace forebay
