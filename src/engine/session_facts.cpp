#include "engine/session_facts.h"

#include <fmt/format.h>

#include "gguf/fingerprint.h"

namespace forebay {

const std::vector<std::string>& session_facts(Engine::Impl& engine) {
  if (!engine.session_facts.empty()) return engine.session_facts;
  const EngineOptions& o = engine.options;
  const ModelConfig& c = engine.model->config();
  std::vector<std::string>& facts = engine.session_facts;
  facts = {fmt::format("model={:016x}", fingerprint(*engine.file)),
           "name=" + c.name,
           "architecture=" + c.architecture,
           fmt::format("kv={}", name_of(engine.info.kv)),
           fmt::format("activations={}", o.int8_activations ? "int8" : "f32"),
           fmt::format("kernels={}", o.reference_kernels ? "reference" : "fast"),
           fmt::format("rope={:g}/{}", c.attention.rope_theta, c.attention.n_rot),
           fmt::format("draft={}", !engine.model->has_mtp() ? "none"
                                   : engine.mtp_file ? fmt::format("{:016x}", fingerprint(*engine.mtp_file))
                                                     : "in the model")};
  // With these on, rows hang on what was in memory when they were computed.
  if (o.route_bias > 0) facts.push_back(fmt::format("route-bias={:g}", o.route_bias));
  if (o.route_bias_prompt > 0) facts.push_back(fmt::format("route-bias-prompt={:g}", o.route_bias_prompt));
  return facts;
}

}  // namespace forebay
