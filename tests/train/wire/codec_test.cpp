// What holds for every codec: its two paths agree, its bytes are what it declares, its bits are the study's.
#include <cmath>

#include <gtest/gtest.h>

#include "support.h"
#include "train/wire/ledger.h"

namespace forebay::train {
namespace {

using testing::codec_of;
using testing::default_codec;
using testing::gaussian;

constexpr int64_t kStudyWidth = 1536;

TEST(Codecs, ViewIsEncodeThenDecodeToTheBitOnBothLegs) {
  for (const int64_t width : {64, 100, 1536})
    for (const std::string& name : testing::all_codecs())
      for (const MaskScope scope : {MaskScope::kStep, MaskScope::kMicroBatch, MaskScope::kToken})
        for (const int bits : {1, 3, 4, 8}) {
          if (bits != 4 && name != "sr" && name != "rn" && name != "prf-sr") continue;
          const CodecOptions options{.name = name, .scope = scope, .bits = bits};
          const std::unique_ptr<Codec> here = codec_of(options, width);
          const std::unique_ptr<Codec> there = codec_of(options, width);
          const std::unique_ptr<Codec> alone = codec_of(options, width);
          const WireKey key{.seed = 3, .step = 11, .boundary = 2, .micro_batch = 1, .first_row = 40};
          const torch::Tensor x = gaussian(7, width, 2) * 3;
          const torch::Tensor g = gaussian(7, width, 3) * 1e-7;

          torch::Tensor saved_alone, saved_here, saved_there;
          const torch::Tensor viewed = alone->view(x, key, &saved_alone);
          const Payload forward = here->encode(x, key, &saved_here);
          const Result<torch::Tensor> decoded = there->decode(forward, 7, width, key, &saved_there);
          ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
          EXPECT_TRUE(torch::equal(viewed, *decoded)) << name << " b=" << bits << " W=" << width;

          const torch::Tensor gradient = alone->gradient_view(g, key, saved_alone);
          const Payload backward = there->encode_gradient(g, key, saved_there);
          const Result<torch::Tensor> returned = here->decode_gradient(backward, 7, width, key, saved_here);
          ASSERT_TRUE(returned.has_value()) << returned.error().message;
          EXPECT_TRUE(torch::equal(gradient, *returned)) << name << " b=" << bits << " W=" << width;

          EXPECT_EQ(forward.bytes.size(), here->payload_bytes(7, width, Leg::kForward)) << name;
          EXPECT_EQ(backward.bytes.size(), here->payload_bytes(7, width, Leg::kBackward)) << name;
          EXPECT_EQ(forward.logical_bits, 7 * here->forward_bits(width)) << name;
          EXPECT_GE(static_cast<double>(forward.bytes.size()), std::ceil(forward.logical_bits / 8)) << name;
          EXPECT_GE(static_cast<double>(backward.bytes.size()), std::ceil(backward.logical_bits / 8)) << name;
        }
}

TEST(Codecs, CostWhatTheStudyCounts) {
  const auto bits = [](const CodecOptions& options) {
    const std::unique_ptr<Codec> codec = codec_of(options, kStudyWidth);
    return std::pair(codec->forward_bits(kStudyWidth), codec->backward_bits(kStudyWidth));
  };
  EXPECT_EQ(bits({.name = "dense"}), std::pair(24576.0, 24576.0));
  EXPECT_EQ(bits({.name = "prf"}), std::pair(1232.0, 1232.0));
  EXPECT_EQ(bits({.name = "prf-sr", .bits = 2}), std::pair(1232.5, 1232.5));
  EXPECT_EQ(bits({.name = "frlr"}), std::pair(1232.0, 1216.0));
  EXPECT_EQ(bits({.name = "frlr-unbiased"}), std::pair(1216.0, 1216.0));
  EXPECT_EQ(bits({.name = "powersgd"}), std::pair(1232.0, 1232.0));
  EXPECT_EQ(bits({.name = "sr", .bits = 4}), std::pair(4.5 * 1536, 4.5 * 1536));
  EXPECT_EQ(bits({.name = "rn", .bits = 1}), std::pair(1.5 * 1536, 1.5 * 1536));
  EXPECT_EQ(default_codec("prf", kStudyWidth)->name(), "prf k=77");
  EXPECT_EQ(codec_of({.name = "prf-sr", .bits = 2}, kStudyWidth)->name(), "prf-sr k=493 b=2");
  EXPECT_EQ(default_codec("frlr", kStudyWidth)->name(), "frlr r=48 k=28");
}

TEST(Codecs, EmptyAndZeroRowsComeBack) {
  for (const std::string& name : testing::all_codecs()) {
    const std::unique_ptr<Codec> codec = default_codec(name, 64);
    torch::Tensor saved;
    EXPECT_EQ(codec->view(torch::zeros({0, 64}), {}, &saved).size(0), 0) << name;
    const torch::Tensor zeros = codec->view(torch::zeros({3, 64}), {}, &saved);
    EXPECT_TRUE(torch::equal(zeros, torch::zeros({3, 64}))) << name;
    EXPECT_TRUE(torch::equal(codec->gradient_view(torch::zeros({3, 64}), {}, saved), zeros)) << name;
  }
}

TEST(Codecs, BrokenNumbersAreSeen) {
  for (const std::string& name : testing::all_codecs()) {
    if (name.starts_with("prf")) continue;  // may not send it
    torch::Tensor x = gaussian(2, 64);
    x[1][5] = std::nan("");
    const torch::Tensor seen = default_codec(name, 64)->view(x, {}, nullptr);
    EXPECT_TRUE(seen[0].isfinite().all().item<bool>()) << name;
    EXPECT_FALSE(seen[1].isfinite().all().item<bool>()) << name;
  }
}

TEST(Codecs, TakeOtherTypesAndIgnoreGradients) {
  for (const std::string& name : testing::all_codecs()) {
    const std::unique_ptr<Codec> codec = default_codec(name, 64);
    const torch::Tensor x = gaussian(4, 64).to(torch::kBFloat16);
    const torch::Tensor wide = x.to(torch::kFloat).requires_grad_(true);
    const torch::Tensor seen = codec->view(wide, {}, nullptr);
    EXPECT_FALSE(seen.requires_grad()) << name;
    EXPECT_TRUE(torch::equal(seen, codec->view(x, {}, nullptr))) << name;
    // Not contiguous.
    EXPECT_TRUE(torch::equal(seen, codec->view(x.t().contiguous().t(), {}, nullptr))) << name;
  }
}

TEST(Codecs, APayloadOfAnotherSizeIsRefused) {
  for (const std::string& name : testing::all_codecs()) {
    const std::unique_ptr<Codec> codec = default_codec(name, 64);
    torch::Tensor saved;
    Payload payload = codec->encode(gaussian(3, 64), {}, &saved);
    payload.bytes.pop_back();
    const Result<torch::Tensor> decoded = codec->decode(payload, 3, 64, {}, nullptr);
    ASSERT_FALSE(decoded.has_value()) << name;
    EXPECT_EQ(decoded.error().code, Code::kCorrupt);
    EXPECT_NE(decoded.error().message.find("3 rows of 64"), std::string::npos) << decoded.error().message;
    EXPECT_FALSE(codec->decode_gradient(payload, 4, 64, {}, saved).has_value()) << name;
  }
}

TEST(Codecs, ACodecThatDeclaresLessLosesOnlyItsOwnData) {
  const std::unique_ptr<Codec> codec = default_codec("dense", 8);
  const torch::Tensor x = gaussian(4, 8);
  Payload received = codec->encode(x, {}, nullptr);
  const size_t honest = received.bytes.size();
  EXPECT_EQ(meter_payload(received, honest), static_cast<int64_t>(honest));
  EXPECT_TRUE(torch::equal(codec->decode(received, 4, 8, {}, nullptr).value(), codec->view(x, {}, nullptr)));
  // Half is declared: the meter still counts all of it, and the second half arrives as zeros.
  EXPECT_EQ(meter_payload(received, honest / 2), static_cast<int64_t>(honest));
  const torch::Tensor seen = codec->decode(received, 4, 8, {}, nullptr).value();
  EXPECT_TRUE(torch::equal(seen.slice(0, 0, 2), codec->view(x, {}, nullptr).slice(0, 0, 2)));
  EXPECT_TRUE(torch::equal(seen.slice(0, 2, 4), torch::zeros({2, 8})));
}

TEST(Codecs, NoiseIsSharedByPassesOverTheSameRows) {
  for (const std::string& name : testing::all_codecs()) {
    const std::unique_ptr<Codec> codec = default_codec(name, 64);
    const torch::Tensor x = gaussian(6, 64);
    const WireKey key{.seed = 1, .step = 4, .boundary = 1, .first_row = 10};
    const torch::Tensor seen = codec->view(x, key, nullptr);
    EXPECT_TRUE(torch::equal(seen, codec->view(x, key, nullptr))) << name;
    // However the rows of a step are cut.
    WireKey second = key;
    second.first_row += 2;
    if (name == "powersgd" || name.starts_with("frlr")) continue;  // products of matrices of other shapes
    const torch::Tensor cut = torch::cat(
        {codec->view(x.slice(0, 0, 2), key, nullptr), codec->view(x.slice(0, 2, 6), second, nullptr)});
    EXPECT_TRUE(torch::equal(seen, cut)) << name;
  }
}

TEST(Codecs, WithoutSharingEveryPassDiffersAndResumes) {
  const CodecOptions options{.name = "sr", .bits = 2, .share = false};
  const std::unique_ptr<Codec> codec = codec_of(options, 64);
  const torch::Tensor x = gaussian(6, 64);
  const torch::Tensor first = codec->view(x, {}, nullptr);
  const std::map<std::string, torch::Tensor> state = codec->state();
  const torch::Tensor second = codec->view(x, {}, nullptr);
  EXPECT_FALSE(torch::equal(first, second));
  const std::unique_ptr<Codec> resumed = codec_of(options, 64);
  ASSERT_TRUE(resumed->restore(state).has_value());
  EXPECT_TRUE(torch::equal(resumed->view(x, {}, nullptr), second));
  EXPECT_FALSE(default_codec("sr", 64)->restore(state).has_value());
  EXPECT_FALSE(default_codec("dense", 64)->restore(state).has_value());
  EXPECT_FALSE(resumed->restore({}).has_value());
}

TEST(Codecs, TheKeyDecidesTheNoise) {
  const WireKey base{.seed = 1, .step = 4, .boundary = 1, .micro_batch = 2, .first_row = 10};
  const torch::Tensor x = gaussian(6, 256);
  const auto differs = [&](const CodecOptions& options, const WireKey& key) {
    const std::unique_ptr<Codec> codec = codec_of(options, 256);
    return !torch::equal(codec->view(x, base, nullptr), codec->view(x, key, nullptr));
  };
  const auto with = [&](auto change) {
    WireKey key = base;
    change(key);
    return key;
  };
  for (const std::string name : {"prf", "sr"})
    for (const auto& key : {with([](WireKey& k) { ++k.seed; }), with([](WireKey& k) { ++k.step; }),
                            with([](WireKey& k) { ++k.boundary; })})
      EXPECT_TRUE(differs({.name = name}, key)) << name;
  const WireKey other_batch = with([](WireKey& k) { ++k.micro_batch; });
  const WireKey other_row = with([](WireKey& k) { ++k.first_row; });
  EXPECT_FALSE(differs({.name = "prf"}, other_batch));
  EXPECT_FALSE(differs({.name = "prf"}, other_row));
  EXPECT_TRUE(differs({.name = "prf", .scope = MaskScope::kMicroBatch}, other_batch));
  EXPECT_TRUE(differs({.name = "prf", .scope = MaskScope::kToken}, other_row));
  EXPECT_FALSE(differs({.name = "sr"}, other_batch));
  EXPECT_TRUE(differs({.name = "sr"}, other_row));
}

}  // namespace
}  // namespace forebay::train
