#include "scripted_model.h"

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <span>

#include "core/ensure.h"
#include "core/storage.h"
#include "gguf/gguf.h"
#include "support/temporary_directory.h"
#include "tokenizer/byte_map.h"

namespace forebay::cli {
namespace {

constexpr int kVocabulary = 261;
constexpr int kWidth = 264;  // of the residual: one dimension per token, and a few
constexpr int kHeadDim = 16, kHeads = 2;
constexpr int kExperts = 4, kUsed = 2, kExpertWidth = 8;

/// Logit of `to` after `from`.
float logit(int from, int to) {
  static const std::map<int, std::map<int, float>> kScript = {
      {kThink, {{'h', 20}}},    {'h', {{'m', 20}}}, {'m', {{kThinkEnd, 20}}},
      {kThinkEnd, {{'4', 20}}}, {'4', {{'2', 20}}}, {'2', {{kTurnEnd, 20}, {'4', 10}}},
      {'\n', {{kTurnEnd, 20}}},
  };
  const auto is_capital = [](int token) { return token >= 'A' && token <= 'Z'; };
  if (is_capital(from)) return is_capital(to) ? 4 * std::sin(7.13f * to + 3.7f * from) + 6 : -20;
  const auto row = kScript.find(from);
  if (row == kScript.end()) return to == '.' ? 5.0f : 0.0f;
  const auto entry = row->second.find(to);
  return entry == row->second.end() ? 0.0f : entry->second;
}

struct Tensor {
  std::string name;
  std::vector<uint64_t> ne;
  std::vector<float> values;
};

std::vector<Tensor> make_tensors(float sharpness) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const auto filled = [](std::string name, std::vector<uint64_t> ne, auto value) {
    Tensor tensor{std::move(name), std::move(ne), {}};
    uint64_t n = 1;
    for (const uint64_t size : tensor.ne) n *= size;
    for (uint64_t i = 0; i < n; ++i) tensor.values.push_back(value(i));
    return tensor;
  };
  const auto ones = [](uint64_t) { return 1.0f; };
  const auto noise = [&](float scale) { return [&, scale](uint64_t) { return scale * normal(random); }; };

  std::vector<Tensor> tensors;
  tensors.push_back(filled("token_embd.weight", {kWidth, kVocabulary},
                           [](uint64_t i) { return i % kWidth == i / kWidth ? 1.0f : 0.0f; }));
  tensors.push_back(filled("output_norm.weight", {kWidth}, ones));
  // The norm makes sqrt(width) of the 1.
  tensors.push_back(filled("output.weight", {kWidth, kVocabulary}, [&](uint64_t i) {
    const auto from = static_cast<int>(i % kWidth), to = static_cast<int>(i / kWidth);
    return from < kVocabulary ? sharpness * logit(from, to) / std::sqrt(static_cast<float>(kWidth)) : 0.0f;
  }));
  const std::string block = "blk.0.";
  constexpr uint64_t kInner = kHeads * kHeadDim;
  tensors.push_back(filled(block + "attn_norm.weight", {kWidth}, ones));
  tensors.push_back(filled(block + "ffn_norm.weight", {kWidth}, ones));
  for (const char* role : {"attn_q.weight", "attn_k.weight", "attn_v.weight"})
    tensors.push_back(filled(block + role, {kWidth, kInner}, noise(0.1f)));
  for (const char* role : {"attn_q_norm.weight", "attn_k_norm.weight"})
    tensors.push_back(filled(block + role, {kHeadDim}, ones));
  tensors.push_back(filled(block + "attn_output.weight", {kInner, kWidth}, noise(1e-5f)));
  tensors.push_back(filled(block + "ffn_gate_inp.weight", {kWidth, kExperts}, noise(0.1f)));
  for (const char* role : {"ffn_gate_exps.weight", "ffn_up_exps.weight"})
    tensors.push_back(filled(block + role, {kWidth, kExpertWidth, kExperts}, noise(0.1f)));
  tensors.push_back(filled(block + "ffn_down_exps.weight", {kExpertWidth, kWidth, kExperts}, noise(1e-5f)));
  return tensors;
}

void set_vocabulary(GgufWriter& writer, const ScriptedModel& model) {
  std::vector<std::string> tokens;
  std::vector<int64_t> kinds;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    tokens.push_back(to_byte_alphabet({&c, 1}));
    kinds.push_back(1);
  }
  for (const char* added : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
    tokens.emplace_back(added);
    kinds.push_back(3);
  }
  for (const char* added : {"<think>", "</think>"}) {
    tokens.emplace_back(added);
    kinds.push_back(4);
  }
  writer.set("tokenizer.ggml.model", GgufValue::string("gpt2"));
  writer.set("tokenizer.ggml.pre", GgufValue::string("qwen2"));
  writer.set("tokenizer.ggml.tokens", GgufValue::string_array(std::move(tokens)));
  writer.set("tokenizer.ggml.token_type", GgufValue::i32_array(std::move(kinds)));
  writer.set("tokenizer.ggml.merges", GgufValue::string_array({}));
  writer.set("tokenizer.ggml.eos_token_id", GgufValue::u32(kTurnEnd));
  writer.set("tokenizer.ggml.bos_token_id", GgufValue::u32(kEndOfText));
  writer.set("tokenizer.ggml.add_bos_token", GgufValue::boolean(model.add_bos));
}

void must(const Result<void>& result) {
  ENSURE(result.has_value(), result.error().message.c_str());
}

}  // namespace

const char* const ScriptedModel::kTemplate =
    "{%- for m in messages %}{{- '<|im_start|>' + m.role + '\\n' }}"
    "{%- if m.reasoning_content %}{{- '<think>' + m.reasoning_content + '</think>' }}{%- endif %}"
    "{{- m.content + '<|im_end|>\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n<think>' }}"
    "{%- if enable_thinking is defined and not enable_thinking %}{{- '</think>' }}{%- endif %}{%- endif %}";

void write_scripted_model(const Path& path, const ScriptedModel& model) {
  const std::unique_ptr<Storage> storage = make_posix_storage();
  Result<GgufWriter> created = GgufWriter::create(*storage, path);
  ENSURE(created.has_value(), "create");
  GgufWriter& writer = *created;
  const std::string prefix = model.architecture + ".";
  writer.set("general.architecture", GgufValue::string(model.architecture));
  writer.set("general.name", GgufValue::string("scripted"));
  writer.set(prefix + "block_count", GgufValue::u32(model.draft_block ? 2 : 1));
  if (model.draft_block) writer.set(prefix + "nextn_predict_layers", GgufValue::u32(1));
  writer.set(prefix + "context_length", GgufValue::u32(1 << 20));
  writer.set(prefix + "embedding_length", GgufValue::u32(kWidth));
  writer.set(prefix + "attention.head_count", GgufValue::u32(kHeads));
  writer.set(prefix + "attention.head_count_kv", GgufValue::u32(kHeads));
  writer.set(prefix + "attention.key_length", GgufValue::u32(kHeadDim));
  writer.set(prefix + "attention.value_length", GgufValue::u32(kHeadDim));
  writer.set(prefix + "attention.layer_norm_rms_epsilon", GgufValue::f32(1e-6f));
  writer.set(prefix + "rope.freq_base", GgufValue::f32(10000));
  writer.set(prefix + "expert_count", GgufValue::u32(kExperts));
  writer.set(prefix + "expert_used_count", GgufValue::u32(kUsed));
  writer.set(prefix + "expert_feed_forward_length", GgufValue::u32(kExpertWidth));
  if (model.vocabulary) set_vocabulary(writer, model);
  if (model.chat_template) writer.set("tokenizer.chat_template", GgufValue::string(*model.chat_template));

  std::vector<Tensor> tensors = make_tensors(model.sharpness);
  if (model.draft_block) tensors.push_back({"blk.1.nextn.hnorm.weight", {7}, std::vector<float>(7, 1.0f)});
  std::erase_if(tensors, [&](const Tensor& tensor) { return tensor.name == model.missing; });
  for (Tensor& tensor : tensors) {
    if (tensor.name == model.misshapen) {
      tensor.values.resize(tensor.values.size() / tensor.ne.back() * (tensor.ne.back() - 1));
      --tensor.ne.back();
    }
    if (tensor.name == model.poisoned) tensor.values.back() = std::numeric_limits<float>::quiet_NaN();
    must(writer.declare(tensor.name, DType::kF32, tensor.ne));
  }
  must(writer.write_headers());
  for (const Tensor& tensor : tensors) must(writer.write_data(std::as_bytes(std::span(tensor.values))));
  must(writer.finish());
}

const std::string& scripted_model() {
  static const TemporaryDirectory directory;
  static const std::string path = [] {
    const Path file = directory / "scripted.gguf";
    write_scripted_model(file);
    return file.string();
  }();
  return path;
}

}  // namespace forebay::cli
