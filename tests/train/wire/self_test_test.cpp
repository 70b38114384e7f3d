// The launch test: who passes, who is refused, and with what.
#include "train/wire/self_test.h"

#include <cmath>

#include <gtest/gtest.h>

#include "support.h"

namespace forebay::train {
namespace {

using testing::codec_of;
using testing::default_codec;

/// Says the opposite of what the codec below says.
class Liar : public Codec {
 public:
  explicit Liar(std::unique_ptr<Codec> below) : below_(std::move(below)) {}
  std::string name() const override { return "liar " + below_->name(); }
  Bias bias() const override { return below_->bias() == Bias::kBiased ? Bias::kUnbiased : Bias::kBiased; }
  double forward_bits(int64_t width) const override { return below_->forward_bits(width); }
  double backward_bits(int64_t width) const override { return below_->backward_bits(width); }
  size_t payload_bytes(int64_t n, int64_t width, Leg leg) const override {
    return below_->payload_bytes(n, width, leg) - n_hidden_;
  }
  torch::Tensor view(const torch::Tensor& x, const WireKey& key, torch::Tensor* saved) override {
    return below_->view(x, key, saved);
  }
  torch::Tensor gradient_view(const torch::Tensor& g, const WireKey& key, const torch::Tensor& s) override {
    return below_->gradient_view(g, key, s);
  }
  Payload encode(const torch::Tensor& x, const WireKey& key, torch::Tensor* saved) override {
    return below_->encode(x, key, saved);
  }
  Result<torch::Tensor> decode(const Payload& p, int64_t n, int64_t width, const WireKey& key,
                               torch::Tensor* saved) override {
    return below_->decode(p, n, width, key, saved);
  }
  Payload encode_gradient(const torch::Tensor& g, const WireKey& key, const torch::Tensor& s) override {
    return below_->encode_gradient(g, key, s);
  }
  Result<torch::Tensor> decode_gradient(const Payload& p, int64_t n, int64_t width, const WireKey& key,
                                        const torch::Tensor& s) override {
    return below_->decode_gradient(p, n, width, key, s);
  }
  size_t n_hidden_ = 0;

 private:
  std::unique_ptr<Codec> below_;
};

TEST(SelfTest, EveryCodecIsWhatItSays) {
  for (const int64_t width : {64, 384, 1536})
    for (const std::string& name : testing::all_codecs())
      for (const int bits : {1, 4, 8}) {
        if (bits != 4 && name != "sr" && name != "rn" && name != "prf-sr") continue;
        const Result<std::unique_ptr<Codec>> made = make_codec({.name = name, .bits = bits}, width);
        EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().message);
      }
  EXPECT_TRUE(make_codec({.name = "prf", .scope = MaskScope::kToken}, 64).has_value());
  EXPECT_TRUE(make_codec({.name = "sr", .share = false}, 64).has_value());
}

TEST(SelfTest, RefusesWhoSaysTheOppositeWithTheNumbers) {
  for (const std::string& name : testing::all_codecs())
    for (const int bits : {4, 8}) {
      if (bits == 8 && name != "sr" && name != "rn") continue;
      Liar liar(codec_of({.name = name, .bits = bits}, 384));
      const Result<void> tested = self_test(liar, 384);
      ASSERT_FALSE(tested.has_value()) << liar.name();
      EXPECT_NE(tested.error().message.find("bias energy of"), std::string::npos) << tested.error().message;
      EXPECT_NE(tested.error().message.find(liar.name()), std::string::npos) << tested.error().message;
    }
}

TEST(SelfTest, TellsTheStudysGainFromTheExactOne) {
  const CodecOptions study{.name = "prf", .gain = Gain::kKeepRate};
  const std::unique_ptr<Codec> codec = codec_of(study, 1536);
  EXPECT_EQ(codec->bias(), Bias::kBiased);
  // 20 x 77 / 1536.
  EXPECT_NEAR(measure_bias(*codec, 1536, 200).flat_slope, 1.002604, 1e-6);
  EXPECT_NEAR(measure_bias(*default_codec("prf", 1536), 1536, 200).flat_slope, 1, 1e-6);
  EXPECT_TRUE(make_codec(study, 1536).has_value());
  // Where keep * W is whole, 1 / keep is exact.
  EXPECT_EQ(codec_of({.name = "prf", .keep = 0.25, .gain = Gain::kKeepRate}, 64)->bias(), Bias::kUnbiased);
  EXPECT_TRUE(make_codec({.name = "prf", .keep = 0.25, .gain = Gain::kKeepRate}, 64).has_value());
}

TEST(SelfTest, RefusesBytesThatAreNotDeclared) {
  Liar liar(default_codec("sr", 64));
  liar.n_hidden_ = 3;
  const Result<void> tested = self_test(liar, 64);
  ASSERT_FALSE(tested.has_value());
  EXPECT_EQ(tested.error().code, Code::kInternal);
}

TEST(SelfTest, TheBiasOfRoundingToNearestDoesNotAverageOut) {
  const BiasMeasure sr = measure_bias(*codec_of({.name = "sr", .bits = 2}, 1536), 1536, 200);
  const BiasMeasure rn = measure_bias(*codec_of({.name = "rn", .bits = 2}, 1536), 1536, 200);
  EXPECT_LT(std::abs(sr.bias_energy), 2e-4);  // without the draws' own 0.412 / 200
  EXPECT_NEAR(rn.bias_energy, 0.207, 0.01);
}

TEST(MakeCodec, NamesWhatIsWrong) {
  const auto message = [](const CodecOptions& options, int64_t width = 64) {
    const Result<std::unique_ptr<Codec>> made = make_codec(options, width);
    return made ? std::string() : made.error().message;
  };
  EXPECT_EQ(message({.name = "zip"}),
            "codec: name is zip, wanted one of dense, prf, sr, rn, prf-sr, powersgd, frlr, frlr-unbiased");
  EXPECT_EQ(message({.name = "sr", .bits = 9}), "codec: bits is 9, wanted 1 to 8");
  EXPECT_EQ(message({.name = "prf", .k = 65}), "codec: k is 65, wanted 0 to 64");
  EXPECT_EQ(message({.name = "prf", .keep = 0}), "codec: keep is 0, wanted above 0, at most 1");
  EXPECT_EQ(message({.name = "frlr", .rank = -1}), "codec: rank is -1, wanted 0 to 64");
  EXPECT_EQ(message({}, 0), "codec: width is 0, wanted 1 to 1048576");
  EXPECT_EQ(message({.name = "prf", .k = 5, .gain = Gain::kKeepRate}),
            "codec: k is 5, wanted round(keep * W) = 3 when the gain is 1/keep");
}

}  // namespace
}  // namespace forebay::train
