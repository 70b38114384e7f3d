#include "synth/text_metadata.h"

namespace forebay::synth {
namespace {

constexpr const char* kChatTemplate =
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}";

}  // namespace

void add_text_metadata(Vocabulary v, GgufMetadata& metadata) {
  // The likeliest token alone would soon run in a circle.
  metadata.set("general.sampling.temp", GgufValue::f32(1.0f));
  metadata.set("general.sampling.top_p", GgufValue::f32(0.95f));
  metadata.set("general.sampling.top_k", GgufValue::i32(20));

  std::vector<int64_t> kinds;
  kinds.reserve(v.kinds.size());
  for (const TokenKind kind : v.kinds) kinds.push_back(static_cast<int64_t>(kind));
  metadata.set("tokenizer.ggml.model", GgufValue::string("gpt2"));
  metadata.set("tokenizer.ggml.pre", GgufValue::string(v.pre));
  metadata.set("tokenizer.ggml.tokens", GgufValue::string_array(std::move(v.tokens)));
  metadata.set("tokenizer.ggml.token_type", GgufValue::i32_array(std::move(kinds)));
  metadata.set("tokenizer.ggml.merges", GgufValue::string_array(std::move(v.merges)));
  metadata.set("tokenizer.ggml.bos_token_id", GgufValue::u32(static_cast<uint32_t>(*v.bos)));
  metadata.set("tokenizer.ggml.eos_token_id", GgufValue::u32(static_cast<uint32_t>(*v.eos)));
  metadata.set("tokenizer.ggml.padding_token_id", GgufValue::u32(static_cast<uint32_t>(*v.pad)));
  metadata.set("tokenizer.ggml.add_bos_token", GgufValue::boolean(false));
  metadata.set("tokenizer.chat_template", GgufValue::string(kChatTemplate));
}

}  // namespace forebay::synth
