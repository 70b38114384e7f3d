/// What a model is trained on: documents as token ids, each token with a mark whether it is to be learnt.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/result.h"

#include "core/storage.h"
#include "core/thread_pool.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace forebay::train {

/// All tokens one behind the other.
struct Documents {
  std::vector<int32_t> ids;
  std::vector<uint8_t> learnt;    // one per token: 1 when predicting it counts
  std::vector<uint64_t> ends{0};  // document d is [ends[d], ends[d + 1])

  size_t size() const { return ends.size() - 1; }
  uint64_t length(size_t document) const { return ends[document + 1] - ends[document]; }
  void add(std::span<const int32_t> document, std::span<const uint8_t> marks);
  /// Of tokens, marks and borders: what a resumed run checks.
  uint64_t hash() const;
};

/// A tokenizer and how it writes conversations.
struct TextReader {
  std::optional<Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat;  // absent: no conversations

  /// From a GGUF file, or a directory with tokenizer.json (and chat_template.jinja).
  static Result<TextReader> open(Storage& storage, const Path& path);
};

/// Which tokens of a rendered conversation the assistant wrote: from behind "<|im_start|>assistant\n" up to
/// and with
/// "<|im_end|>".
std::vector<uint8_t> assistant_marks(const Tokenizer& tokenizer, std::span<const int32_t> ids);

enum class Learn {
  kEverything,  // pretraining
  kAssistant,   // of conversations, what the assistant says
};

/// Reads files and directories (their files, sorted by name; no subdirectories). A .jsonl file has a document
/// per line:
/// {"text": ...}, or {"messages": [...], "tools": [...]}, which the chat template renders. Any other file is
/// one document of plain text. Each document gets the vocabulary's <|endoftext|> (else its eos) behind it,
/// unless it is a conversation. Errors: those of the files; kCorrupt with file and line for a line that is
/// none of these; kInvalidArgument for kAssistant and a document that is no conversation.
Result<Documents> read_documents(Storage& storage, std::span<const std::string> paths,
                                 const TextReader& reader, Learn learn, ThreadPool& pool);

}  // namespace forebay::train
