/// The constructors of the codecs that make_codec() chooses among. One file each; what each trades is in
/// docs/codecs.md.
#pragma once

#include <memory>

#include "train/wire/codec.h"
#include "train/wire/codec_options.h"

namespace forebay::train {

// Options are checked and resolved (make_codec.cpp): no zeros that mean a default.

/// bf16, every coordinate.
std::unique_ptr<Codec> make_dense_codec();
/// k coordinates per row, drawn by the PRF, times a gain.
std::unique_ptr<Codec> make_prf_codec(const CodecOptions& options, int64_t width);
/// b bits per coordinate and a scale per group; rounded at random ("sr") or to the nearest level ("rn").
std::unique_ptr<Codec> make_rounding_codec(const CodecOptions& options);
/// k coordinates drawn by the PRF, those in b bits.
std::unique_ptr<Codec> make_prf_rounding_codec(const CodecOptions& options, int64_t width);
/// Coordinates in a held basis of `rank` directions.
std::unique_ptr<Codec> make_powersgd_codec(const CodecOptions& options, int64_t width);
/// The same, and k_residual coordinates of what the basis leaves, drawn by the PRF.
std::unique_ptr<Codec> make_frlr_codec(const CodecOptions& options, int64_t width);

}  // namespace forebay::train
