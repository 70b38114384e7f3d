// Codec calls are counted by path; those that should not be are seen.
#include "train/anchor/confinement.h"

#include <gtest/gtest.h>

namespace forebay::train {
namespace {

TEST(Confinement, CallsBelongToPaths) {
  Confinement confinement;
  {
    const Confinement::Tag train(confinement, StepPath::kTrain);
    confinement.codec_called();
    confinement.codec_called();
    {
      const Confinement::Tag reference(confinement, StepPath::kReference);
      confinement.codec_called();
    }
    confinement.codec_called();
  }
  EXPECT_TRUE(confinement.clean());
  EXPECT_EQ(confinement.calls(StepPath::kTrain), 3);
  EXPECT_EQ(confinement.calls(StepPath::kReference), 1);
}

TEST(Confinement, StrayCallsAreSeen) {
  for (const StepPath path :
       {StepPath::kNone, StepPath::kProbe, StepPath::kAnchorReplay, StepPath::kValidation}) {
    Confinement confinement;
    const Confinement::Tag tag(confinement, path);
    confinement.codec_called();
    EXPECT_FALSE(confinement.clean());
    EXPECT_EQ(confinement.stray_calls(), 1);
  }
}

}  // namespace
}  // namespace forebay::train
