#include "train/grpo/sampler.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>

#include <fmt/format.h>

#include "core/ensure.h"
#include "core/hash.h"
#include "core/memory_budget.h"
#include "core/memory_storage.h"
#include "core/thread_pool.h"
#include "engine/gguf_vocabulary.h"
#include "gguf/gguf.h"
#include "kernels/context.h"
#include "model/model.h"
#include "sampling/sampling.h"
#include "tokenizer/tokenizer.h"
#include "train/grpo/draw.h"
#include "train/nets/files.h"

namespace forebay::train {
namespace {

const Path kVocabularyFile = "vocabulary.gguf";
const Path kModelFile = "policy.gguf";

/// A GGUF of nothing but the tokenizer, so that refreshing reads no more than that.
Result<void> copy_vocabulary(Storage& from, const Path& path, MemoryStorage& to) {
  const GgufFile file = TRY(GgufFile::open(from, path));
  GgufWriter writer = TRY(GgufWriter::create(to, kVocabularyFile));
  for (const auto& [key, value] : file.metadata().entries())
    if (key.starts_with("tokenizer.") || key.starts_with("forebay.tokenizer.") ||
        key == "general.architecture")
      writer.set(key, value);
  TRY(writer.write_headers());
  return writer.finish();
}

/// What `from` remembers after `tokens`, in `to`.
void copy_state(const SequenceState& from, SequenceState& to, std::span<const int32_t> tokens) {
  const auto n = static_cast<int64_t>(tokens.size());
  const std::span<const StateSection> source = from.sections(), target = to.sections();
  for (size_t i = 0; i < source.size(); ++i)
    std::memcpy(target[i].bytes.data(), source[i].bytes.data(),
                static_cast<size_t>(source[i].n_rows(n, 0)) * source[i].row_bytes);
  to.adopt(tokens, 0);
}

}  // namespace

struct Sampler::Impl {
  explicit Impl(const SamplerOptions& o)
      : options(o), pool(o.threads), kernels(pool, best_isa()), budget(MemoryBudget::kUnlimited) {}

  /// One answer under way.
  struct Active {
    size_t slot;
    size_t answer;  // in the result
    int32_t next;   // chosen, not in the state yet
  };
  struct Drawing {
    std::span<const std::vector<int32_t>> prompts;
    const DrawPlan& plan;
    std::vector<Rollout>& answers;
    std::vector<Active> active = {};
    std::vector<size_t> free = {};
  };

  Result<void> make_slots(size_t n);
  Result<void> read_prompts(Drawing& d, std::span<const size_t> prompts);
  void choose(Drawing& d, Active& a, std::span<const float> logits, std::vector<double>& scratch) const;

  SamplerOptions options;
  ThreadPool pool;
  KernelContext kernels;
  MemoryBudget budget;
  MemoryStorage memory;
  std::optional<Tokenizer> tokenizer;
  std::optional<GgufFile> file;
  std::optional<Model> model;  // reads `file` in place
  std::vector<SequenceState> slots;
};

Sampler::Sampler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;
Sampler::~Sampler() = default;

Result<Sampler> Sampler::create(Storage& storage, const Path& vocabulary, const SamplerOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  impl->kernels.set_activations(Activations::kExact);
  TRY(copy_vocabulary(storage, vocabulary, impl->memory));
  const GgufFile file = TRY(GgufFile::open(impl->memory, kVocabularyFile));
  Vocabulary words = TRY(vocabulary_from_gguf(file.metadata()));
  impl->tokenizer = TRY(Tokenizer::create(std::move(words)));
  return Sampler(std::move(impl));
}

Result<void> Sampler::refresh(const ModelConfig& config, const NamedTensors& tensors) {
  Impl& s = *impl_;
  // The old model reads the old file's bytes to the end.
  s.model.reset();
  s.file.reset();
  TRY(write_gguf(s.memory, kModelFile, config, tensors, kVocabularyFile));
  s.file = TRY(GgufFile::open(s.memory, kModelFile));
  s.model = TRY(Model::load(s.memory, *s.file, nullptr,
                            {.max_window = s.options.max_window, .mtp = false, .kv = KvType::kF32}, s.kernels,
                            s.budget));
  return {};
}

std::span<const std::byte> Sampler::model_file() const {
  return std::as_bytes(std::span(impl_->memory.get(kModelFile)));
}

uint64_t Sampler::words_hash() const {
  return fast_checksum(std::as_bytes(std::span(impl_->memory.get(kVocabularyFile))));
}

const Tokenizer& Sampler::tokenizer() const {
  return *impl_->tokenizer;
}

std::vector<int32_t> Sampler::encode(std::string_view prompt) const {
  const Tokenizer& tokenizer = *impl_->tokenizer;
  std::vector<int32_t> ids = tokenizer.encode(prompt);
  if (tokenizer.add_bos() && tokenizer.bos()) ids.insert(ids.begin(), *tokenizer.bos());
  return ids;
}

std::string Sampler::decode(const Rollout& rollout) const {
  std::span<const int32_t> ids = rollout.tokens;
  if (rollout.ended) ids = ids.first(ids.size() - 1);
  return impl_->tokenizer->decode(ids, /*specials=*/true);
}

Result<void> Sampler::Impl::make_slots(size_t n) {
  while (slots.size() < n) slots.push_back(TRY(model->new_state(options.context)));
  return {};
}

void Sampler::Impl::choose(Drawing& d, Active& a, std::span<const float> logits,
                           std::vector<double>& scratch) const {
  Rollout& answer = d.answers[a.answer];
  const size_t place = answer.tokens.size();
  const Rollout* const given = d.plan.given.empty() ? nullptr : &d.plan.given[a.answer];
  DrawnToken token;
  if (given != nullptr) {
    token = given_token(logits, given->tokens[place]);
  } else {
    const double u = uniform(d.plan.seed, d.plan.first_stream + a.answer, place);
    token = d.plan.greedy ? likeliest_token(logits) : draw_token(logits, u, scratch);
  }
  answer.tokens.push_back(token.id);
  answer.log_probs.push_back(token.log_prob);
  answer.ended = given != nullptr ? place + 1 == given->tokens.size() : tokenizer->is_stop(token.id);
  a.next = token.id;
}

/// The prompts' own passes, then their answers' states and first tokens.
Result<void> Sampler::Impl::read_prompts(Drawing& d, std::span<const size_t> prompts) {
  const auto n_answers = static_cast<size_t>(d.plan.n_answers);
  size_t done = 0;
  while (done < prompts.size()) {
    // As many whole prompts as a window holds, or a part of one that is longer.
    std::vector<Span> window;
    std::vector<std::vector<size_t>> slots_of;
    const size_t first = done;
    for (int64_t rows = 0; done < prompts.size(); ++done) {
      const std::vector<int32_t>& prompt = d.prompts[prompts[done]];
      const auto n = static_cast<int64_t>(prompt.size());
      if (rows > 0 && rows + n > options.max_window) break;
      std::vector<size_t> own(d.free.end() - static_cast<std::ptrdiff_t>(n_answers), d.free.end());
      d.free.resize(d.free.size() - n_answers);
      SequenceState& state = slots[own[0]];
      state.reset();
      std::span<const int32_t> rest = prompt;
      while (static_cast<int64_t>(rest.size()) > options.max_window) {
        const Span part{.state = &state,
                        .tokens = rest.first(static_cast<size_t>(options.max_window)),
                        .logits = LogitRows::kNone,
                        .prompt = true};
        TRY(model->forward({&part, 1}));
        rest = rest.subspan(static_cast<size_t>(options.max_window));
      }
      window.push_back({.state = &state, .tokens = rest, .logits = LogitRows::kLast, .prompt = true});
      slots_of.push_back(std::move(own));
      rows += static_cast<int64_t>(rest.size());
    }
    const ForwardOutput out = TRY(model->forward(window));
    std::vector<double> scratch;
    for (size_t i = 0; i < slots_of.size(); ++i) {
      const size_t prompt = prompts[first + i];
      for (size_t j = 0; j < n_answers; ++j) {
        if (j > 0) copy_state(slots[slots_of[i][0]], slots[slots_of[i][j]], d.prompts[prompt]);
        Active a{slots_of[i][j], prompt * n_answers + j, -1};
        choose(d, a, {out.logits.row(static_cast<int64_t>(i)), static_cast<size_t>(out.logits.cols)},
               scratch);
        d.active.push_back(a);
      }
    }
  }
  return {};
}

Result<std::vector<Rollout>> Sampler::draw(std::span<const std::vector<int32_t>> prompts,
                                           const DrawPlan& plan, std::stop_token stop) {
  Impl& s = *impl_;
  ENSURE(s.model.has_value(), "draw before refresh");
  ENSURE(plan.given.empty() || plan.given.size() == prompts.size() * static_cast<size_t>(plan.n_answers),
         "given answers for other prompts");
  const auto n_answers = static_cast<size_t>(plan.n_answers);
  for (const std::vector<int32_t>& prompt : prompts)
    if (prompt.empty() || static_cast<int64_t>(prompt.size()) + plan.max_tokens > s.options.context)
      return Error{Code::kInvalidArgument,
                   fmt::format("a prompt of {} tokens and {} to answer, expected at least 1 and {} in all",
                               prompt.size(), plan.max_tokens, s.options.context)};
  const size_t n_slots =
      std::max(n_answers, static_cast<size_t>(s.options.n_sequences) / n_answers * n_answers);
  TRY(s.make_slots(std::min(n_slots, prompts.size() * n_answers)));

  std::vector<Rollout> answers(prompts.size() * n_answers);
  Impl::Drawing d{.prompts = prompts, .plan = plan, .answers = answers};
  for (size_t i = s.slots.size(); i-- > 0;) d.free.push_back(i);
  size_t next_prompt = 0;
  std::vector<std::vector<double>> scratch(static_cast<size_t>(s.pool.n_threads()));
  while (next_prompt < prompts.size() || !d.active.empty()) {
    if (stop.stop_requested()) return Error{Code::kCancelled, "interrupted"};
    std::vector<size_t> joining;
    while (next_prompt < prompts.size() && d.free.size() >= (joining.size() + 1) * n_answers)
      joining.push_back(next_prompt++);
    if (!joining.empty()) TRY(s.read_prompts(d, joining));

    std::erase_if(d.active, [&](const Impl::Active& a) {
      const Rollout& answer = answers[a.answer];
      const bool over = answer.ended || static_cast<int64_t>(answer.tokens.size()) >= plan.max_tokens;
      if (over) d.free.push_back(a.slot);
      return over;
    });
    const auto most = static_cast<size_t>(s.options.max_window);
    for (size_t first = 0; first < d.active.size(); first += most) {
      const std::span<Impl::Active> some =
          std::span(d.active).subspan(first, std::min(most, d.active.size() - first));
      std::vector<Span> window;
      for (const Impl::Active& a : some)
        window.push_back({.state = &s.slots[a.slot], .tokens = {&a.next, 1}});
      const ForwardOutput out = TRY(s.model->forward(window));
      const auto width = static_cast<size_t>(out.logits.cols);
      s.pool.parallel_for(static_cast<int64_t>(some.size()), std::max<int64_t>(1, 16384 / out.logits.cols),
                          [&](int64_t begin, int64_t end, int thread) {
                            for (int64_t i = begin; i < end; ++i)
                              s.choose(d, some[static_cast<size_t>(i)], {out.logits.row(i), width},
                                       scratch[static_cast<size_t>(thread)]);
                          });
    }
  }
  return answers;
}

}  // namespace forebay::train
