// forebay tokenize: text to token ids and back.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/ids.h"
#include "cli/input.h"
#include "cli/json_writer.h"
#include "cli/model_location.h"
#include "cli/model_text.h"
#include "cli/terminal.h"
#include "cli/verbosity.h"
#include "gguf/text.h"

namespace forebay::cli {
namespace {

class TokenizeCommand : public Command {
 public:
  void declare(FlagTable& flags) override;
  Result<void> check() override;
  Result<ExitCode> run(const FlagTable& flags) override;

 private:
  Result<ExitCode> encode(const Tokenizer& tokenizer);
  Result<ExitCode> decode(Storage& storage, const Tokenizer& tokenizer);

  std::string model_;
  std::optional<std::string> text_;
  std::string ids_;
  bool no_special_ = false;
  bool json_ = false;
  Verbosity verbosity_;
};

void TokenizeCommand::declare(FlagTable& flags) {
  flags.text("TEXT", "", text_, "the text; - or nothing: standard input. After --, it may begin with a dash");
  flags.section("Options");
  flags.text("-m,--model", "FILE", model_,
             "the model whose vocabulary is used; the embedded model if absent");
  flags.toggle("--no-special", no_special_,
               "control tokens written in the text are text; with --decode, they are left out");
  flags.toggle("--json", json_, "print {\"ids\": [...]}, or {\"text\": ...} with --decode");
  flags.text("--decode", "FILE|LIST", ids_, "print the text of these token ids; - is standard input");
  verbosity_.declare(flags);
}

Result<void> TokenizeCommand::check() {
  TRY(verbosity_.check());
  if (!ids_.empty() && text_) return Error{Code::kInvalidArgument, "TEXT and --decode exclude each other"};
  if (ids_.empty() && !text_ && is_terminal(stdin))
    return Error{Code::kInvalidArgument, "no text: give TEXT, or a pipe on standard input"};
  return {};
}

Result<ExitCode> TokenizeCommand::run(const FlagTable& flags) {
  if (model_.empty()) model_ = TRY(embedded_model()).string();
  log_settings(flags);
  const std::unique_ptr<Storage> storage = make_posix_storage();
  const GgufFile file = TRY(GgufFile::open(*storage, model_));
  const Tokenizer tokenizer = TRY(tokenizer_of(file));
  return ids_.empty() ? encode(tokenizer) : decode(*storage, tokenizer);
}

Result<ExitCode> TokenizeCommand::encode(const Tokenizer& tokenizer) {
  const std::string text = text_ && *text_ != "-" ? *text_ : TRY(read_standard_input());
  std::vector<TokenId> ids = tokenizer.encode(text, {.parse_special = !no_special_});
  if (tokenizer.add_bos() && tokenizer.bos()) ids.insert(ids.begin(), *tokenizer.bos());
  if (json_) {
    JsonWriter json;
    json.begin_object().key("ids").begin_array();
    for (const TokenId id : ids) json.integer(id);
    json.end_array().end_object();
    fmt::print("{}\n", json.text());
    return ExitCode::kDone;
  }
  for (const TokenId id : ids)
    fmt::print("{:>7}  {}\n", id, gguf::quote(tokenizer.token_bytes(id, /*specials=*/true), SIZE_MAX));
  return ExitCode::kDone;
}

Result<ExitCode> TokenizeCommand::decode(Storage& storage, const Tokenizer& tokenizer) {
  const std::vector<int32_t> ids = TRY(read_ids(storage, ids_));
  for (const int32_t id : ids)
    if (id >= tokenizer.n_tokens())
      return Error{Code::kInvalidArgument,
                   fmt::format("token id {} is outside the vocabulary of {}", id, tokenizer.n_tokens())};
  const std::string text = tokenizer.decode(ids, !no_special_);
  if (json_)
    fmt::print("{}\n", JsonWriter().begin_object().key("text").string(text).end_object().text());
  else
    fmt::print("{}", text);
  return ExitCode::kDone;
}

}  // namespace

CommandInfo tokenize_command() {
  return {.name = "tokenize",
          .summary = "turn text into token ids, or back",
          .usage = "[options] [TEXT|-]",
          .examples = {{"forebay tokenize \"Hello there\"", "a token per line"},
                       {"forebay tokenize -m model.gguf --json - < book.txt", "{\"ids\": [...]}"},
                       {"forebay tokenize --decode 9707,11,1879", "the text again"}},
          .details = "",
          .make = [] { return std::unique_ptr<Command>(std::make_unique<TokenizeCommand>()); }};
}

}  // namespace forebay::cli
