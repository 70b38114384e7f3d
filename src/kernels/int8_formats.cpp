// The definition: layouts are those of quant/, weight by weight, with the scale left outside.
#include "kernels/int8_formats.h"

#include <array>
#include <bit>
#include <cstring>

#include "quant/code_values.h"
#include "quant/iq_tables.h"
#include "tensor/half.h"

namespace forebay {
namespace {

uint16_t load_u16(const uint8_t* p) {
  uint16_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
uint32_t load_u32(const uint8_t* p) {
  uint32_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
float load_half(const uint8_t* p) {
  return f32_from_f16(load_u16(p));
}
int nibble(int byte, int high) {
  return byte >> 4 * high & 15;
}
int two_bits(int byte, int position) {
  return byte >> 2 * position & 3;
}

void set_scale(WeightRun& w, float scale, float minimum = 0) {
  w.scale[0] = w.scale[1] = scale;
  w.minimum[0] = w.minimum[1] = minimum;
}
void set_half(WeightRun& w, int half, float scale, float minimum = 0) {
  w.scale[half] = scale;
  w.minimum[half] = minimum;
}

// ---- simple blocks ----

/// 32 codes: low nibbles of 16 bytes, then high nibbles.
void set_nibbles(WeightRun& w, const uint8_t* nibbles, int offset) {
  for (int i = 0; i < 32; ++i) w.code[i] = static_cast<int8_t>(nibble(nibbles[i % 16], i / 16) - offset);
}
void add_fifth_bits(WeightRun& w, uint32_t bits) {
  for (int i = 0; i < 32; ++i) w.code[i] = static_cast<int8_t>(w.code[i] + (bits >> i & 1) * 16);
}
void set_table(WeightRun& w, const uint8_t* nibbles, const int8_t* values) {
  for (int i = 0; i < 32; ++i) w.code[i] = values[nibble(nibbles[i % 16], i / 16)];
}

void q4_0(const uint8_t* b, int, WeightRun& w) {
  set_scale(w, load_half(b));
  set_nibbles(w, b + 2, 8);
}
void q4_1(const uint8_t* b, int, WeightRun& w) {
  set_scale(w, load_half(b), load_half(b + 2));
  set_nibbles(w, b + 4, 0);
}
void q5_0(const uint8_t* b, int, WeightRun& w) {
  set_scale(w, load_half(b));
  set_nibbles(w, b + 6, 16);
  add_fifth_bits(w, load_u32(b + 2));
}
void q5_1(const uint8_t* b, int, WeightRun& w) {
  set_scale(w, load_half(b), load_half(b + 2));
  set_nibbles(w, b + 8, 0);
  add_fifth_bits(w, load_u32(b + 4));
}
void q8_0(const uint8_t* b, int, WeightRun& w) {
  set_scale(w, load_half(b));
  std::memcpy(w.code, b + 2, 32);
}
void q2_0(const uint8_t* b, int run, WeightRun& w) {
  set_scale(w, load_half(b));
  for (int i = 0; i < 32; ++i) w.code[i] = static_cast<int8_t>(two_bits(b[2 + 8 * run + i / 4], i % 4) - 1);
}

// ---- K-quants ----

/// Scale and minimum codes of run j of a Q4_K or Q5_K block.
void set_k_affine(WeightRun& w, const uint8_t* b, int j) {
  const uint8_t* s = b + 4;
  const int scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
  const int minimum = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4;
  set_scale(w, load_half(b) * static_cast<float>(scale), -(load_half(b + 2) * static_cast<float>(minimum)));
}

void q2_k(const uint8_t* b, int run, WeightRun& w) {
  for (int half = 0; half < 2; ++half) {
    const int codes = b[2 * run + half];
    set_half(w, half, load_half(b + 80) * static_cast<float>(codes & 15),
             -(load_half(b + 82) * static_cast<float>(codes >> 4)));
  }
  for (int i = 0; i < 32; ++i) w.code[i] = static_cast<int8_t>(two_bits(b[16 + 32 * (run / 4) + i], run % 4));
}
void q3_k(const uint8_t* b, int run, WeightRun& w) {
  for (int half = 0; half < 2; ++half) {
    const int j = 2 * run + half;
    const int scale = nibble(b[96 + j % 8], j / 8) | two_bits(b[104 + j % 4], j / 4) << 4;
    set_half(w, half, load_half(b + 108) * static_cast<float>(scale - 32));
  }
  for (int i = 0; i < 32; ++i)
    w.code[i] =
        static_cast<int8_t>(two_bits(b[32 + 32 * (run / 4) + i], run % 4) - (b[i] >> run & 1 ? 0 : 4));
}
void q4_k(const uint8_t* b, int run, WeightRun& w) {
  set_k_affine(w, b, run);
  for (int i = 0; i < 32; ++i) w.code[i] = static_cast<int8_t>(nibble(b[16 + 32 * (run / 2) + i], run % 2));
}
void q5_k(const uint8_t* b, int run, WeightRun& w) {
  set_k_affine(w, b, run);
  for (int i = 0; i < 32; ++i)
    w.code[i] =
        static_cast<int8_t>(nibble(b[48 + 32 * (run / 2) + i], run % 2) | (b[16 + i] >> run & 1) << 4);
}
void q6_k(const uint8_t* b, int run, WeightRun& w) {
  for (int half = 0; half < 2; ++half)
    set_half(w, half, load_half(b + 208) * static_cast<float>(static_cast<int8_t>(b[192 + 2 * run + half])));
  const int part = run / 4, k = 32 * (run % 4);
  for (int i = 0; i < 32; ++i) {
    const int low = nibble(b[64 * part + (k + i) % 64], (k + i) / 64);
    w.code[i] = static_cast<int8_t>((low | two_bits(b[128 + 32 * part + i], run % 4) << 4) - 32);
  }
}

// ---- code tables ----

float half_e8m0(int e) {
  return std::bit_cast<float>(e < 2 ? 0x00200000u << e : static_cast<uint32_t>(e - 1) << 23);
}

void iq4_nl(const uint8_t* b, int, WeightRun& w) {
  set_scale(w, load_half(b));
  set_table(w, b + 2, kIq4Values);
}
void iq4_xs(const uint8_t* b, int run, WeightRun& w) {
  const int scale = nibble(b[4 + run / 2], run % 2) | (load_u16(b + 2) >> 2 * run & 3) << 4;
  set_scale(w, load_half(b) * static_cast<float>(scale - 32));
  set_table(w, b + 8 + 16 * run, kIq4Values);
}
void mxfp4(const uint8_t* b, int, WeightRun& w) {
  set_scale(w, half_e8m0(b[0]));
  set_table(w, b + 1, kFp4Values);
}
void nvfp4(const uint8_t* b, int run, WeightRun& w) {
  for (int half = 0; half < 2; ++half) {
    const int r = 2 * run + half;
    // The E4M3 fields in the place of a half's: the value is 2^-8 of the number, of which a half is wanted.
    const auto bits = static_cast<uint16_t>(b[r] == 0x7f ? 0 : (b[r] & 0x7f) << 7);
    set_half(w, half, f32_from_f16(bits) * 0x1p7f);
    for (int i = 0; i < 16; ++i) w.code[16 * half + i] = kFp4Values[nibble(b[4 + 8 * r + i % 8], i / 8)];
  }
}

// ---- codebooks ----

template <typename Row>
void set_signed(int8_t* code, Row row, int signs) {
  for (int j = 0; j < static_cast<int>(sizeof(Row)); ++j)
    code[j] = static_cast<int8_t>(signs >> j & 1 ? -grid_value(row, j) : grid_value(row, j));
}

void iq2_xxs(const uint8_t* b, int run, WeightRun& w) {
  const uint8_t* group = b + 2 + 8 * run;
  const uint32_t word = load_u32(group + 4);
  set_scale(w, load_half(b) * (0.5f + static_cast<float>(word >> 28)) * 0.25f);
  for (int l = 0; l < 4; ++l)
    set_signed(w.code + 8 * l, kIq2xxsGrid.rows[group[l]], even_sign_mask(word >> 7 * l & 127));
}
/// IQ2_XS, IQ2_S: a nibble for each half.
void set_iq2_scales(WeightRun& w, const uint8_t* b, int scales) {
  for (int half = 0; half < 2; ++half)
    set_half(w, half, load_half(b) * (0.5f + static_cast<float>(nibble(scales, half))) * 0.25f);
}
void iq2_xs(const uint8_t* b, int run, WeightRun& w) {
  set_iq2_scales(w, b, b[66 + run]);
  for (int l = 0; l < 4; ++l) {
    const int word = load_u16(b + 2 + 8 * run + 2 * l);
    set_signed(w.code + 8 * l, kIq2xsGrid.rows[word & 511], even_sign_mask(static_cast<uint32_t>(word >> 9)));
  }
}
void iq2_s(const uint8_t* b, int run, WeightRun& w) {
  set_iq2_scales(w, b, b[74 + run]);
  for (int l = 0; l < 4; ++l) {
    const int index = b[2 + 4 * run + l] | two_bits(b[66 + run], l) << 8;
    set_signed(w.code + 8 * l, kIq2sGrid.rows[index], b[34 + 4 * run + l]);
  }
}
void iq3_xxs(const uint8_t* b, int run, WeightRun& w) {
  const uint32_t word = load_u32(b + 66 + 4 * run);
  set_scale(w, load_half(b) * (0.5f + static_cast<float>(word >> 28)) * 0.5f);
  for (int quad = 0; quad < 8; ++quad) {
    const int signs = even_sign_mask(word >> 7 * (quad / 2) & 127);
    set_signed(w.code + 4 * quad, kIq3xxsGrid.rows[b[2 + 8 * run + quad]], signs >> 4 * (quad % 2));
  }
}
void iq3_s(const uint8_t* b, int run, WeightRun& w) {
  set_scale(w, load_half(b) * static_cast<float>(1 + 2 * nibble(b[106 + run / 2], run % 2)));
  for (int quad = 0; quad < 8; ++quad) {
    const int index = b[2 + 8 * run + quad] | (b[66 + run] >> quad & 1) << 8;
    set_signed(w.code + 4 * quad, kIq3sGrid.rows[index], b[74 + 4 * run + quad / 2] >> 4 * (quad % 2));
  }
}
/// The shift of an eighth goes into the code: eight times the grid, plus or minus one.
void set_shifted(int8_t* code, uint64_t row, bool shift_down) {
  for (int j = 0; j < 8; ++j) code[j] = static_cast<int8_t>(8 * grid_value(row, j) + (shift_down ? -1 : 1));
}
void iq1_s(const uint8_t* b, int run, WeightRun& w) {
  const int word = load_u16(b + 34 + 2 * run);
  set_scale(w, load_half(b) * static_cast<float>(2 * (word >> 12 & 7) + 1) * 0.125f);
  for (int l = 0; l < 4; ++l) {
    const int index = b[2 + 4 * run + l] | (word >> 3 * l & 7) << 8;
    set_shifted(w.code + 8 * l, kIq1Grid.rows[index], (word & 0x8000) != 0);
  }
}
void iq1_m(const uint8_t* b, int run, WeightRun& w) {
  int bits = 0;
  for (int k = 0; k < 4; ++k) bits |= (load_u16(b + 48 + 2 * k) >> 12) << 4 * k;
  const float d = f32_from_f16(static_cast<uint16_t>(bits));
  for (int half = 0; half < 2; ++half) {
    const int j = 2 * run + half;
    const int scale = load_u16(b + 48 + 2 * (j / 4)) >> 3 * (j % 4) & 7;
    set_half(w, half, d * static_cast<float>(2 * scale + 1) * 0.125f);
    for (int l = 0; l < 2; ++l) {
      const int octet = 2 * j + l;
      const int high = nibble(b[32 + octet / 2], octet % 2);
      set_shifted(w.code + 16 * half + 8 * l, kIq1Grid.rows[b[octet] | (high & 7) << 8], (high & 8) != 0);
    }
  }
}

constexpr std::array kFormats = {
    Int8Format{DType::kQ4_0, false, false, q4_0},       Int8Format{DType::kQ4_1, false, true, q4_1},
    Int8Format{DType::kQ5_0, false, false, q5_0},       Int8Format{DType::kQ5_1, false, true, q5_1},
    Int8Format{DType::kQ8_0, false, false, q8_0},       Int8Format{DType::kQ2_0, false, false, q2_0},
    Int8Format{DType::kQ2_K, true, true, q2_k},         Int8Format{DType::kQ3_K, true, false, q3_k},
    Int8Format{DType::kQ4_K, false, true, q4_k},        Int8Format{DType::kQ5_K, false, true, q5_k},
    Int8Format{DType::kQ6_K, true, false, q6_k},        Int8Format{DType::kIQ4_NL, false, false, iq4_nl},
    Int8Format{DType::kIQ4_XS, false, false, iq4_xs},   Int8Format{DType::kMXFP4, false, false, mxfp4},
    Int8Format{DType::kNVFP4, true, false, nvfp4},      Int8Format{DType::kIQ2_XXS, false, false, iq2_xxs},
    Int8Format{DType::kIQ2_XS, true, false, iq2_xs},    Int8Format{DType::kIQ2_S, true, false, iq2_s},
    Int8Format{DType::kIQ3_XXS, false, false, iq3_xxs}, Int8Format{DType::kIQ3_S, false, false, iq3_s},
    Int8Format{DType::kIQ1_S, false, false, iq1_s},     Int8Format{DType::kIQ1_M, true, false, iq1_m}};

}  // namespace

const Int8Format* find_int8_format(DType type) {
  for (const Int8Format& format : kFormats)
    if (format.type == type) return &format;
  return nullptr;
}

}  // namespace forebay
