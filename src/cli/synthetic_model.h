/// What a model that is not here would take: the file that `forebay synth` would write, without writing it.
#pragma once

#include <string_view>

#include "convert/type_plan.h"
#include "plan/model_footprint.h"
#include "synth/synth.h"

namespace forebay::cli {

class SyntheticModel {
 public:
  /// Its n-gram table, if any, has the published number of rows. Errors: kInvalidArgument for a name that is
  /// not known, with those that are.
  static Result<SyntheticModel> like(std::string_view name);

  /// With these types. Errors: kInvalidArgument when an entry of the plan matches no tensor.
  Result<ModelFootprint> footprint(const TypePlan& types) const;

 private:
  SynthPlan plan_;
  ModelConfig config_;
};

}  // namespace forebay::cli
