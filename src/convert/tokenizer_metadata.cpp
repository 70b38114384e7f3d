#include "convert/tokenizer_metadata.h"

#include <algorithm>

#include <fmt/format.h>

#include "tokenizer/hf_vocabulary.h"
#include "tokenizer/tokenizer.h"

namespace forebay::convert {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kChatEnd = "<|im_end|>";

/// The JSON files around tokenizer.json; each may be missing.
struct SideFiles {
  std::optional<JsonObject> generation, tokenizer_config;
};

/// A token that tokenizer_config.json names by text: "eos_token": "</s>" or {"content": "</s>"}.
std::optional<TokenId> named_token(const SideFiles& files, const Vocabulary& vocabulary,
                                   std::string_view key) {
  if (!files.tokenizer_config) return std::nullopt;
  const Json* value = files.tokenizer_config->find(key);
  if (value != nullptr && value->is_object() && value->contains("content")) value = &(*value)["content"];
  if (value == nullptr || !value->is_string()) return std::nullopt;
  const auto at = std::ranges::find(vocabulary.tokens, value->get<std::string>());
  if (at == vocabulary.tokens.end()) return std::nullopt;
  return static_cast<TokenId>(at - vocabulary.tokens.begin());
}

/// Ids under `key` in a config file, which must be tokens.
Result<std::vector<TokenId>> listed_tokens(const std::optional<JsonObject>& json, std::string_view key,
                                           const Vocabulary& vocabulary) {
  std::vector<TokenId> ids;
  if (!json) return ids;
  for (const uint64_t id : TRY(json->integers(key))) {
    if (id >= vocabulary.tokens.size())
      return json->wrong(key, fmt::format("ids below {}", vocabulary.tokens.size()));
    ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

/// What ends an answer. generation_config.json knows best; of a list, the end of a chat turn, else the first.
Result<std::optional<TokenId>> find_eos(const SideFiles& files, const CheckpointConfig& config,
                                        const Vocabulary& vocabulary) {
  const std::vector<TokenId> generation = TRY(listed_tokens(files.generation, "eos_token_id", vocabulary));
  for (const TokenId id : generation)
    if (vocabulary.tokens[id] == kChatEnd) return std::optional(id);
  if (!generation.empty()) return std::optional(generation[0]);
  if (const auto named = named_token(files, vocabulary, "eos_token")) return std::optional(*named);
  const std::vector<TokenId> model = TRY(listed_tokens(config.json, "eos_token_id", vocabulary));
  return model.empty() ? std::nullopt : std::optional(model[0]);
}

Result<std::optional<TokenId>> find_token(const SideFiles& files, const CheckpointConfig& config,
                                          const Vocabulary& vocabulary, const std::string& name) {
  if (const auto named = named_token(files, vocabulary, name)) return std::optional(*named);
  for (const auto& json : {files.generation, std::optional(config.json)}) {
    const std::vector<TokenId> ids = TRY(listed_tokens(json, name + "_id", vocabulary));
    if (!ids.empty()) return std::optional(ids[0]);
  }
  return std::optional<TokenId>();
}

/// Whether texts start with bos: said outright, or by a post-processor template that begins with it.
Result<bool> adds_bos(const SideFiles& files, const JsonObject& tokenizer) {
  if (files.tokenizer_config && files.tokenizer_config->has("add_bos_token"))
    return files.tokenizer_config->boolean_or("add_bos_token", false);
  const Json* processor = tokenizer.find("post_processor");
  if (processor == nullptr) return false;
  // Members of any kind may be missing or of another one; then this is no such template.
  const auto member = [](const Json& object, const char* name) {
    return object.is_object() ? object.value(name, Json()) : Json();
  };
  Json steps = Json::array({*processor});
  if (member(*processor, "type") == "Sequence") steps = member(*processor, "processors");
  for (const Json& step : steps) {
    const Json single = member(step, "single");
    if (member(step, "type") == "TemplateProcessing" && single.is_array() && !single.empty() &&
        single[0].is_object() && single[0].contains("SpecialToken"))
      return true;
  }
  return false;
}

void set_token(GgufMetadata& metadata, const char* key, std::optional<TokenId> id) {
  if (id) metadata.set(key, GgufValue::u32(static_cast<uint32_t>(*id)));
}

Result<void> add_vocabulary(const SideFiles& files, const JsonObject& tokenizer, const std::string& text,
                            const CheckpointConfig& config, GgufMetadata& metadata) {
  Vocabulary v = TRY(vocabulary_from_hf_json(text, {.n_vocab = static_cast<int>(config.n_vocab)}));
  v.eos = TRY(find_eos(files, config, v));
  v.pad = TRY(find_token(files, config, v, "pad_token"));
  v.add_bos = TRY(adds_bos(files, tokenizer));
  // The Qwen families have no bos; their configs name a padding token for it.
  if (config.family == Family::kLlama || v.add_bos) v.bos = TRY(find_token(files, config, v, "bos_token"));
  v.add_bos = v.add_bos && v.bos;
  TRY(Tokenizer::create(v));  // what the engine cannot load is not written

  metadata.set("tokenizer.ggml.model", GgufValue::string("gpt2"));
  metadata.set("tokenizer.ggml.pre", GgufValue::string(v.pre));
  std::vector<int64_t> kinds;
  for (const TokenKind kind : v.kinds) kinds.push_back(static_cast<int64_t>(kind));
  metadata.set("tokenizer.ggml.tokens", GgufValue::string_array(std::move(v.tokens)));
  metadata.set("tokenizer.ggml.token_type", GgufValue::i32_array(std::move(kinds)));
  metadata.set("tokenizer.ggml.merges", GgufValue::string_array(std::move(v.merges)));
  set_token(metadata, "tokenizer.ggml.bos_token_id", v.bos);
  set_token(metadata, "tokenizer.ggml.eos_token_id", v.eos);
  set_token(metadata, "tokenizer.ggml.padding_token_id", v.pad);
  metadata.set("tokenizer.ggml.add_bos_token", GgufValue::boolean(v.add_bos));
  // The usual keys do not say whether text is normalised first, and checkpoints of one family differ.
  if (v.nfc) metadata.set("forebay.tokenizer.nfc", GgufValue::boolean(*v.nfc));
  return {};
}

/// chat_template.jinja, else tokenizer_config.json's chat_template: one text, or a list of named ones.
Result<void> add_chat_template(Storage& storage, const Path& directory, const SideFiles& files,
                               GgufMetadata& metadata, std::vector<std::string>& notes) {
  const Path path = directory / "chat_template.jinja";
  if (storage.exists(path)) {
    std::string text = TRY(read_text(storage, path));
    metadata.set("tokenizer.chat_template", GgufValue::string(std::move(text)));
    return {};
  }
  const Json* value = files.tokenizer_config ? files.tokenizer_config->find("chat_template") : nullptr;
  if (value == nullptr) {
    notes.push_back("no chat template in the checkpoint");
    return {};
  }
  if (value->is_string()) {
    metadata.set("tokenizer.chat_template", GgufValue::string(value->get<std::string>()));
    return {};
  }
  std::vector<std::string> names;
  const Json templates = value->is_array() ? *value : Json::array({*value});
  for (const Json& named : templates) {
    if (!named.is_object() || !named.contains("name") || !named.contains("template") ||
        !named["name"].is_string() || !named["template"].is_string())
      return files.tokenizer_config->wrong("chat_template", "a string or a list of {name, template}");
    const std::string name = named["name"].get<std::string>();
    if (name != "default") names.push_back(name);
    metadata.set(name == "default" ? "tokenizer.chat_template" : "tokenizer.chat_template." + name,
                 GgufValue::string(named["template"].get<std::string>()));
  }
  if (!names.empty()) metadata.set("tokenizer.chat_templates", GgufValue::string_array(std::move(names)));
  return {};
}

Result<void> add_sampling(const std::optional<JsonObject>& generation, GgufMetadata& metadata) {
  if (!generation || !TRY(generation->boolean_or("do_sample", true))) return {};
  for (const auto& [json_key, key] :
       {std::pair("temperature", "general.sampling.temp"), std::pair("top_p", "general.sampling.top_p")})
    if (generation->has(json_key)) {
      const double value = TRY(generation->number_or(json_key, 0));
      metadata.set(key, GgufValue::f32(static_cast<float>(value)));
    }
  if (generation->has("top_k")) {
    const uint64_t top_k = TRY(generation->integer("top_k", 0, INT32_MAX));
    metadata.set("general.sampling.top_k", GgufValue::i32(static_cast<int32_t>(top_k)));
  }
  return {};
}

}  // namespace

Result<void> add_text_metadata(Storage& storage, const Path& directory, const CheckpointConfig& config,
                               GgufMetadata& metadata, std::vector<std::string>& notes) {
  SideFiles files;
  files.generation = TRY(JsonObject::read_if_exists(storage, directory / "generation_config.json"));
  files.tokenizer_config = TRY(JsonObject::read_if_exists(storage, directory / "tokenizer_config.json"));
  TRY(add_sampling(files.generation, metadata));

  const Path path = directory / "tokenizer.json";
  if (!storage.exists(path)) {
    notes.push_back("no tokenizer.json in the checkpoint: the model can be run on token ids only");
    // What other readers want to see before they load a model without a vocabulary.
    metadata.set("tokenizer.ggml.model", GgufValue::string("none"));
    metadata.set(config.architecture + ".vocab_size", GgufValue::u32(static_cast<uint32_t>(config.n_vocab)));
    return {};
  }
  const std::string text = TRY(read_text(storage, path));
  const JsonObject tokenizer = TRY(JsonObject::parse(path.string(), text));
  if (Result<void> added = add_vocabulary(files, tokenizer, text, config, metadata); !added)
    return std::move(added).error().in(directory.string());
  return add_chat_template(storage, directory, files, metadata, notes);
}

}  // namespace forebay::convert
