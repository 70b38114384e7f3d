#include "train/fit/documents.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/hash.h"
#include "engine/gguf_vocabulary.h"
#include "gguf/gguf.h"
#include "tokenizer/hf_vocabulary.h"

namespace forebay::train {
namespace {

constexpr uint64_t kLargestFile = uint64_t{4} << 30;

/// A document before it is tokens.
struct Source {
  std::string text;
  bool is_chat = false;
};

Result<std::vector<Path>> files_of(Storage& storage, const std::string& path) {
  Result<std::vector<FileEntry>> entries = storage.list(path);
  if (!entries) return std::vector<Path>{path};  // a file: opening it says what is wrong
  std::vector<Path> files;
  for (const FileEntry& entry : *entries) files.push_back(Path(path) / entry.name);
  std::ranges::sort(files);
  if (files.empty()) return Error{Code::kNotFound, fmt::format("{}: a directory without files", path)};
  return files;
}

Result<Source> source_of_line(const TextReader& reader, const Path& path, size_t n_line,
                              std::string_view line) {
  const auto wrong = [&](std::string_view what) {
    return Error{Code::kCorrupt, fmt::format("{}: line {}: {}", path.string(), n_line, what)};
  };
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return wrong("not a JSON object");
  if (json.contains("text") && json["text"].is_string())
    return Source{json["text"].get<std::string>(), false};
  if (!json.contains("messages") || !json["messages"].is_array())
    return wrong("neither a \"text\" nor \"messages\"");
  if (!reader.chat) return wrong("a conversation, and the tokenizer has no chat template");
  Result<std::string> text = reader.chat->render(json, /*now_unix=*/0);
  if (!text) return wrong(text.error().message);
  return Source{std::move(*text), true};
}

Result<void> read_sources(Storage& storage, const Path& path, const TextReader& reader,
                          std::vector<Source>& sources) {
  std::string text = TRY(read_text(storage, path, kLargestFile));
  if (path.extension() != ".jsonl") {
    sources.push_back({std::move(text), false});
    return {};
  }
  size_t n_line = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line(text.data() + begin, end - begin);
    ++n_line;
    if (!line.empty()) {
      Source source = TRY(source_of_line(reader, path, n_line, line));
      sources.push_back(std::move(source));
    }
    begin = end + 1;
  }
  return {};
}

}  // namespace

void Documents::add(std::span<const int32_t> document, std::span<const uint8_t> marks) {
  ids.insert(ids.end(), document.begin(), document.end());
  learnt.insert(learnt.end(), marks.begin(), marks.end());
  ends.push_back(ids.size());
}

uint64_t Documents::hash() const {
  const std::array<uint64_t, 3> parts{fast_checksum(std::as_bytes(std::span(ids))),
                                      fast_checksum(std::as_bytes(std::span(learnt))),
                                      fast_checksum(std::as_bytes(std::span(ends)))};
  return fast_checksum(std::as_bytes(std::span(parts)));
}

Result<TextReader> TextReader::open(Storage& storage, const Path& path) {
  TextReader reader;
  std::string chat;
  Vocabulary vocabulary;
  if (path.extension() == ".gguf") {
    const GgufFile file = TRY(GgufFile::open(storage, path));
    vocabulary = TRY(vocabulary_from_gguf(file.metadata()));
    chat = TRY(file.metadata().get_string_or("tokenizer.chat_template", ""));
  } else {
    const std::string json = TRY(read_text(storage, path / "tokenizer.json"));
    vocabulary = TRY(vocabulary_from_hf_json(json));
    if (storage.exists(path / "chat_template.jinja"))
      chat = TRY(read_text(storage, path / "chat_template.jinja"));
  }
  reader.tokenizer = TRY(Tokenizer::create(std::move(vocabulary)));
  if (!chat.empty()) reader.chat = TRY(ChatTemplate::parse(chat));
  return reader;
}

std::vector<uint8_t> assistant_marks(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  const auto begin_id = tokenizer.find_special("<|im_start|>"), end_id = tokenizer.find_special("<|im_end|>");
  std::vector<uint8_t> marks(ids.size(), 0);
  enum class Where { kOutside, kRole, kAssistant, kOther } where = Where::kOutside;
  std::string role;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (begin_id && ids[i] == *begin_id) {
      where = Where::kRole;
      role.clear();
    } else if (where == Where::kRole) {
      role += tokenizer.token_bytes(ids[i]);
      if (role.find('\n') != std::string::npos)
        where = role == "assistant\n" ? Where::kAssistant : Where::kOther;
    } else {
      marks[i] = where == Where::kAssistant ? 1 : 0;
      if (end_id && ids[i] == *end_id) where = Where::kOutside;
    }
  }
  return marks;
}

Result<Documents> read_documents(Storage& storage, std::span<const std::string> paths,
                                 const TextReader& reader, Learn learn, ThreadPool& pool) {
  std::vector<Source> sources;
  for (const std::string& path : paths) {
    const std::vector<Path> files = TRY(files_of(storage, path));
    for (const Path& file : files) {
      const size_t before = sources.size();
      TRY(read_sources(storage, file, reader, sources));
      if (learn != Learn::kAssistant) continue;
      for (size_t i = before; i < sources.size(); ++i)
        if (!sources[i].is_chat)
          return Error{Code::kInvalidArgument,
                       fmt::format("{}: document {} is plain text, wanted conversations (\"messages\")",
                                   file.string(), i - before + 1)};
    }
  }
  const Tokenizer& tokenizer = *reader.tokenizer;
  const auto end_of_text = tokenizer.find_special("<|endoftext|>");
  const std::optional<TokenId> end = end_of_text ? end_of_text : tokenizer.eos();

  std::vector<std::vector<int32_t>> ids(sources.size());
  pool.parallel_for(static_cast<int64_t>(sources.size()), 1, [&](int64_t first, int64_t last, int) {
    for (int64_t i = first; i < last; ++i) {
      const Source& source = sources[static_cast<size_t>(i)];
      std::vector<int32_t>& to = ids[static_cast<size_t>(i)];
      // Control tokens in plain text are text.
      to = tokenizer.encode(source.text, {.parse_special = source.is_chat});
      if (!source.is_chat && end) to.push_back(*end);
    }
  });
  Documents documents;
  for (size_t i = 0; i < sources.size(); ++i) {
    const bool some = learn == Learn::kAssistant;
    documents.add(ids[i], some ? assistant_marks(tokenizer, ids[i]) : std::vector<uint8_t>(ids[i].size(), 1));
    std::vector<int32_t>().swap(ids[i]);
  }
  if (documents.ids.empty()) return Error{Code::kInvalidArgument, "no training data: the files are empty"};
  return documents;
}

}  // namespace forebay::train
