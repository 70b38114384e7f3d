// Bases: when they change, who counts it, what a crash leaves.
#include "train/wire/basis.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "support.h"
#include "train/wire/orthonormal.h"
#include "train/wire/view_epoch.h"

namespace forebay::train {
namespace {

using testing::codec_of;
using testing::default_codec;
using testing::gaussian;

constexpr int64_t kBasisWidth = 64;

torch::Tensor gram_error(const torch::Tensor& q) {
  return (q.t().matmul(q) - torch::eye(q.size(1))).abs().max();
}

/// Rows of spectrum i^-alpha (amplitudes), in random directions.
torch::Tensor coloured(int64_t n, int64_t width, double alpha) {
  torch::manual_seed(11);
  const torch::Tensor rotation = std::get<0>(torch::linalg_qr(torch::randn({width, width}), "reduced"));
  const torch::Tensor scale = torch::arange(1, width + 1, torch::kFloat).pow(-alpha);
  return (torch::randn({n, width}) * scale).matmul(rotation.t());
}

TEST(Orthonormal, IsQrWithAPositiveDiagonal) {
  const torch::Tensor y = gaussian(200, 20);
  const torch::Tensor q = orthonormal(y, 1);
  EXPECT_LT(gram_error(q).item<float>(), 1e-6f);
  const torch::Tensor r = q.t().matmul(y);
  EXPECT_TRUE((r.diagonal() > 0).all().item<bool>());
  EXPECT_LT(r.tril(-1).abs().max().item<float>(), 1e-5f);
  EXPECT_TRUE(torch::equal(q, orthonormal(y, 2)));  // `spare` only fills what is missing
}

TEST(Orthonormal, FillsWhatIsMissing) {
  torch::Tensor y = gaussian(50, 5);
  y.select(1, 3).copy_(y.select(1, 1) * 2);
  y.select(1, 4).zero_();
  const torch::Tensor q = orthonormal(y, 1);
  EXPECT_LT(gram_error(q).item<float>(), 1e-6f);
  EXPECT_TRUE(torch::equal(q, orthonormal(y, 1)));
  EXPECT_LT(gram_error(orthonormal(torch::zeros({8, 8}), 1)).item<float>(), 1e-6f);
}

TEST(Orthonormal, TheFirstFrameIsFixed) {
  const torch::Tensor q = random_frame(7, 64, 4);
  EXPECT_LT(gram_error(q).item<float>(), 1e-6f);
  EXPECT_TRUE(torch::equal(q, random_frame(7, 64, 4)));
  EXPECT_FALSE(torch::equal(q, random_frame(8, 64, 4)));
}

TEST(Basis, LearnsTheSpectrum) {
  // What 48 of 1536 directions capture after 20 refreshes; more rows of it: codec_bench spectrum.
  const struct { double alpha, captured; } table[] = {{0, 0.10}, {1, 0.58}, {2, 0.99}};
  for (const auto& row : table) {
    // Energies i^-alpha along the axes: a basis knows no axes.
    const torch::Tensor scale = torch::arange(1, 1537, torch::kFloat).pow(-row.alpha / 2);
    const torch::Tensor x = gaussian(1024, 1536) * scale;
    BasisBank bank(1536, 48, 1, true);
    for (int fire = 0; fire < 20; ++fire) {
      bank.harvest(x, {.step = fire});
      ASSERT_TRUE(bank.update(0).has_value());
      bank.activate();
    }
    const double c = captured_energy(x, bank.active(0, torch::kCPU));
    std::printf("spectrum i^-%.0f: captured %.2f\n", row.alpha, c);
    EXPECT_NEAR(c, row.captured, 0.05) << row.alpha;
  }
}

TEST(Basis, StagedPublishLeavesTheViewAlone) {
  for (const Publish publish : {Publish::kStaged, Publish::kAtOnce}) {
    const std::unique_ptr<Codec> codec = default_codec("frlr", kBasisWidth);
    const Codec* const codecs[] = {codec.get()};
    const torch::Tensor x = coloured(32, kBasisWidth, 1);
    const WireKey key{.seed = 1, .step = 20};
    const torch::Tensor old = codec->view(x, key, nullptr);
    const ViewEpoch made = view_epoch(1, 20, codecs);
    codec->basis()->harvest(x, key);
    ASSERT_TRUE(codec->basis()->update(0, publish).has_value());
    const torch::Tensor trained = codec->view(x, key, nullptr);
    const ViewEpoch used = view_epoch(1, 20, codecs);
    if (publish == Publish::kStaged) {
      EXPECT_TRUE(torch::equal(old, trained));
      EXPECT_TRUE(check_view(made, used).has_value());
      EXPECT_EQ(codec->basis()->activate(), 1);
      EXPECT_FALSE(check_view(made, view_epoch(1, 20, codecs)).has_value());
    } else {
      // The mistake: two forward passes of one step differ, and the epoch says so.
      EXPECT_FALSE(torch::equal(old, trained));
      const Result<void> checked = check_view(made, used);
      ASSERT_FALSE(checked.has_value());
      EXPECT_NE(checked.error().message.find("log-probs of view"), std::string::npos);
    }
  }
}

TEST(Basis, EveryThingThatChangesTheViewChangesTheEpoch) {
  const std::unique_ptr<Codec> a = default_codec("frlr", kBasisWidth);
  const std::unique_ptr<Codec> b = default_codec("prf", kBasisWidth);
  const Codec* const first[] = {a.get()};
  const Codec* const second[] = {b.get()};
  EXPECT_EQ(view_epoch(1, 2, first), view_epoch(1, 2, first));
  EXPECT_NE(view_epoch(1, 2, first), view_epoch(1, 3, first));
  EXPECT_NE(view_epoch(1, 2, first), view_epoch(2, 2, first));
  EXPECT_NE(view_epoch(1, 2, first), view_epoch(1, 2, second));
  EXPECT_NE(view_epoch(1, 2, first), view_epoch(1, 2, {}));
  // Making a first frame is no change.
  const ViewEpoch before = view_epoch(1, 2, first);
  a->view(gaussian(2, kBasisWidth), {.boundary = 5}, nullptr);
  EXPECT_EQ(view_epoch(1, 2, first), before);
}

TEST(Basis, RefreshesAreBoundariesTimesFires) {
  for (const auto& [cadence, at_20, at_100] : {std::tuple{20, 7, 35}, std::tuple{1, 140, 700}}) {
    BasisBank bank(16, 3, 1, true);
    for (int tick = 1; tick <= 100; ++tick) {
      for (int64_t boundary = 0; boundary < 7; ++boundary)
        bank.harvest(gaussian(8, 16, tick), {.step = tick, .boundary = boundary});
      if (tick % cadence == 0) {
        for (int64_t boundary = 0; boundary < 7; ++boundary) ASSERT_TRUE(bank.update(boundary).has_value());
        EXPECT_EQ(bank.activate(), 7);
      }
      if (tick == 20) {
        EXPECT_EQ(bank.n_refreshes(), at_20);
      }
    }
    EXPECT_EQ(bank.n_refreshes(), at_100);
  }
}

TEST(Basis, FailsClosed) {
  BasisBank bank(16, 3, 1, true);
  const torch::Tensor frame = bank.active(0, torch::kCPU).clone();
  const Result<void> empty = bank.update(0);
  ASSERT_FALSE(empty.has_value());
  EXPECT_EQ(empty.error().message, "basis of boundary 0: an update without a row harvested since the last");
  bank.harvest(torch::full({2, 16}, std::nan("")), {});
  EXPECT_EQ(bank.update(0).error().code, Code::kCorrupt);
  EXPECT_EQ(bank.activate(), 0);
  EXPECT_TRUE(torch::equal(bank.active(0, torch::kCPU), frame));
  BasisBank twice(16, 3, 1, true);
  twice.harvest(gaussian(8, 16), {});
  ASSERT_TRUE(twice.update(0).has_value());
  EXPECT_FALSE(twice.update(0).has_value());
  // After a refresh the sketch is empty again.
  twice.activate();
  EXPECT_FALSE(twice.update(0).has_value());
}

TEST(Basis, HarvestDoesNotAskWhetherGradientsAreOn) {
  BasisBank with(16, 3, 1, true);
  BasisBank without(16, 3, 1, true);
  const torch::Tensor x = gaussian(8, 16).requires_grad_(true);
  with.harvest(x, {});
  {
    const torch::NoGradGuard no_grad;
    without.harvest(x, {});
  }
  EXPECT_EQ(without.harvested_rows(0), 8);
  ASSERT_TRUE(with.update(0).has_value() && without.update(0).has_value());
  EXPECT_EQ(with.pending_bytes(0).value(), without.pending_bytes(0).value());
}

TEST(Basis, TheSketchIsOfAllStepsOrOfTheLast) {
  BasisBank all(16, 3, 1, true);
  BasisBank last(16, 3, 1, false);
  for (int step = 0; step < 3; ++step)
    for (BasisBank* bank : {&all, &last})
      for (int micro_batch = 0; micro_batch < 2; ++micro_batch)
        bank->harvest(gaussian(8, 16, 10 * step + micro_batch), {.step = step, .micro_batch = micro_batch});
  EXPECT_EQ(all.harvested_rows(0), 48);
  EXPECT_EQ(last.harvested_rows(0), 16);
}

TEST(Basis, DiscardKeepsTheSketch) {
  BasisBank bank(16, 3, 1, true);
  bank.harvest(gaussian(8, 16), {});
  ASSERT_TRUE(bank.update(0).has_value());
  const std::vector<uint8_t> first = bank.pending_bytes(0).value();
  const torch::Tensor active = bank.active(0, torch::kCPU).clone();
  bank.discard();
  EXPECT_FALSE(bank.has_pending());
  EXPECT_EQ(bank.activate(), 0);
  EXPECT_TRUE(torch::equal(bank.active(0, torch::kCPU), active));
  ASSERT_TRUE(bank.update(0).has_value());
  EXPECT_EQ(bank.pending_bytes(0).value(), first);
}

TEST(Basis, ACrashBetweenUpdateAndActivateRestoresTheActiveOne) {
  const std::unique_ptr<Codec> codec = default_codec("frlr", kBasisWidth);
  const torch::Tensor x = coloured(32, kBasisWidth, 1);
  for (int fire = 0; fire < 2; ++fire) {
    codec->basis()->harvest(x, {.step = fire});
    ASSERT_TRUE(codec->basis()->update(0).has_value());
    if (fire == 0) codec->basis()->activate();
  }
  ASSERT_TRUE(codec->basis()->has_pending());
  const std::map<std::string, torch::Tensor> saved = codec->state();
  const torch::Tensor seen = codec->view(x, {}, nullptr);

  const std::unique_ptr<Codec> resumed = default_codec("frlr", kBasisWidth);
  ASSERT_TRUE(resumed->restore(saved).has_value());
  EXPECT_FALSE(resumed->basis()->has_pending());
  EXPECT_TRUE(torch::equal(resumed->view(x, {}, nullptr), seen));
  EXPECT_EQ(resumed->state_id(), codec->state_id());
  EXPECT_EQ(resumed->basis()->n_refreshes(), 1);
  // From there on the same: the sketch is back too.
  ASSERT_TRUE(resumed->basis()->update(0).has_value());
  EXPECT_EQ(resumed->basis()->pending_bytes(0).value(), codec->basis()->pending_bytes(0).value());
  codec->basis()->activate();
  resumed->basis()->activate();
  EXPECT_TRUE(torch::equal(resumed->view(x, {}, nullptr), codec->view(x, {}, nullptr)));
  EXPECT_EQ(resumed->state_id(), codec->state_id());
}

TEST(Basis, ResumedEqualsUninterrupted) {
  for (const bool accumulate : {true, false}) {
    const auto step = [](BasisBank& bank, int tick) {
      for (int64_t boundary = 0; boundary < 2; ++boundary)
        bank.harvest(gaussian(8, 16, 3 * tick + boundary), {.step = tick, .boundary = boundary});
      if (tick % 4 != 3) return;
      for (int64_t boundary = 0; boundary < 2; ++boundary) ASSERT_TRUE(bank.update(boundary).has_value());
      bank.activate();
    };
    BasisBank whole(16, 3, 1, accumulate);
    for (int tick = 0; tick < 12; ++tick) step(whole, tick);
    for (int cut = 0; cut < 12; ++cut) {
      BasisBank first(16, 3, 1, accumulate);
      for (int tick = 0; tick < cut; ++tick) step(first, tick);
      BasisBank second(16, 3, 99,
                       accumulate);  // even with another seed: nothing is drawn after a first frame
      if (cut == 0) continue;
      ASSERT_TRUE(second.restore(first.state()).has_value());
      for (int tick = cut; tick < 12; ++tick) step(second, tick);
      for (int64_t boundary = 0; boundary < 2; ++boundary)
        EXPECT_TRUE(torch::equal(second.active(boundary, torch::kCPU), whole.active(boundary, torch::kCPU)));
      EXPECT_EQ(second.n_refreshes(), whole.n_refreshes());
    }
  }
}

TEST(Basis, RefusesTheStateOfAnother) {
  BasisBank bank(16, 3, 1, true);
  bank.harvest(gaussian(8, 16), {});
  std::map<std::string, torch::Tensor> state = bank.state();
  BasisBank wider(32, 3, 1, true);
  const Result<void> restored = wider.restore(state);
  ASSERT_FALSE(restored.has_value());
  EXPECT_NE(restored.error().message.find("boundary.0.active"), std::string::npos)
      << restored.error().message;
  state.erase("boundary.0.sketch");
  EXPECT_FALSE(bank.restore(state).has_value());
  EXPECT_FALSE(bank.restore({}).has_value());
  EXPECT_EQ(bank.harvested_rows(0), 8);
}

TEST(Basis, ArrivesAtTheOtherEnd) {
  BasisBank sender(16, 3, 1, true);
  BasisBank receiver(16, 3, 1, true);
  EXPECT_TRUE(torch::equal(sender.active(2, torch::kCPU), receiver.active(2, torch::kCPU)));
  EXPECT_EQ(sender.pending_bytes(2).error().code, Code::kNotFound);
  sender.harvest(gaussian(8, 16), {.boundary = 2});
  ASSERT_TRUE(sender.update(2).has_value());
  const std::vector<uint8_t> bytes = sender.pending_bytes(2).value();
  EXPECT_EQ(static_cast<int64_t>(bytes.size()), sender.refresh_bytes());
  ASSERT_TRUE(receiver.set_pending(2, bytes).has_value());
  sender.activate();
  receiver.activate();
  EXPECT_TRUE(torch::equal(sender.active(2, torch::kCPU), receiver.active(2, torch::kCPU)));
  EXPECT_EQ(sender.id(), receiver.id());
  EXPECT_EQ(receiver.set_pending(2, {1, 2}).error().code, Code::kCorrupt);
  EXPECT_EQ(receiver.set_pending(2, std::vector<uint8_t>(bytes.size(), 0)).error().code, Code::kCorrupt);
  EXPECT_FALSE(receiver.has_pending());
}

TEST(Basis, AHeldBasisErrsTheSameWayEveryStep) {
  const torch::Tensor x = gaussian(16, kBasisWidth);
  const auto mean_error = [&](const std::string& name, int n_steps) {
    const std::unique_ptr<Codec> codec = codec_of({.name = name, .keep = 0.25}, kBasisWidth);
    torch::Tensor sum = torch::zeros_like(x);
    for (int step = 0; step < n_steps; ++step) sum += codec->view(x, {.step = step}, nullptr) - x;
    return (sum / n_steps).square().sum().item<double>() / x.square().sum().item<double>();
  };
  // Averaging over steps helps the one, not the other.
  EXPECT_LT(mean_error("prf", 400), 0.02);
  EXPECT_NEAR(mean_error("powersgd", 400), mean_error("powersgd", 1), 1e-4);
  EXPECT_GT(mean_error("powersgd", 400), 0.6);
}

}  // namespace
}  // namespace forebay::train
