/// What a run must have in common with the one that saved a state, for the state to be the same.
#pragma once

#include <string>
#include <vector>

#include "engine/engine_impl.h"

namespace forebay {

/// "model=0123456789abcdef", "kv=int8", ... Computed once per engine.
const std::vector<std::string>& session_facts(Engine::Impl& engine);

}  // namespace forebay
