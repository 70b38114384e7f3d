/// From settings to a codec that was held to what it says of itself.
#pragma once

#include <memory>

#include "forebay/result.h"

#include "train/wire/codec.h"
#include "train/wire/codec_options.h"

namespace forebay::train {

/// The options with every default of this width filled in. Errors: kInvalidArgument naming the setting, its
/// value and what would be right; an unknown name lists those there are.
Result<CodecOptions> resolve_codec_options(const CodecOptions& options, int64_t width);

/// For rows of `width`, after the self-test (self_test.h), which takes a fraction of a second. Errors: those
/// of resolve_codec_options and of the self-test.
Result<std::unique_ptr<Codec>> make_codec(const CodecOptions& options, int64_t width);

}  // namespace forebay::train
