/// Which type every tensor of a converted model gets.
///
/// Tensors fall into four roles:
///   structure  norms, biases, convolutions, routers (ffn_gate_inp, ffn_gate_inp_shexp), inject weights,
///   ssm_a,
///              ssm_alpha, ssm_beta, ssm_ba, ssm_dt: few bytes that low precision destroys. Always F32.
///   indexer    indexer.q_proj, indexer.k_proj: they only choose blocks. BF16 or better.
///   bulk       experts (ffn_*_exps), dense feed-forward planes, the n-gram table: nearly all bytes. The
///   plan's
///              default type.
///   matrix     the rest: embedding, output head, attention, GDN and hyper-connection projections, shared
///              expert, n-gram projections, nextn.eh_proj. The default type, or Q8_0 when that is narrower.
/// Entries of a plan overrule the default for bulk and matrix tensors.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "forebay/result.h"

#include "tensor/dtype.h"

namespace forebay {

enum class TensorRole { kStructure, kIndexer, kBulk, kMatrix };

struct TypePlan {
  struct Entry {
    std::string pattern;  // on GGUF names; '*' is any text, '?' any one character
    DType type;
  };
  DType default_type = DType::kQ8_0;
  std::vector<Entry> entries;  // the first that matches wins
};

/// Random weights can be of any type that can be read: no encoder has to choose their codes.
enum class WeightSource { kGiven, kRandom };

/// "q4_k" or "q4_k,blk.?.ffn_down_exps.weight=q8_0,token_embd.weight=q6_k": a default type and entries in any
/// order, separated by commas or line ends; '#' starts a comment. Names in any case.
/// Errors: kInvalidArgument naming the item; kUnsupported for types that this version cannot write, with the
/// list of those it can.
Result<TypePlan> parse_type_plan(std::string_view text, WeightSource weights = WeightSource::kGiven);

bool matches_pattern(std::string_view pattern, std::string_view name);

/// The type for rows of `n` values: `wanted` when its block divides n, else a 32-wide type of about its
/// size (Q4_K -> Q5_0, Q5_K -> Q5_1, Q6_K -> Q8_0, Q2_K and Q3_K -> Q4_0, others -> IQ4_NL), else 16 bits:
/// F16 when `from_f16`, BF16 otherwise.
DType type_for_rows(DType wanted, uint64_t n, bool from_f16);

/// Applies a plan to tensors one by one and remembers what deserves a note.
class TypeChooser {
 public:
  explicit TypeChooser(const TypePlan& plan) : plan_(plan), n_matches_(plan.entries.size()) {}

  DType choose(std::string_view name, TensorRole role, uint64_t row_length, bool from_f16);
  /// kInvalidArgument when an entry matched no tensor at all: a typing error.
  Result<void> check_all_matched() const;
  std::vector<std::string> notes() const;

 private:
  struct Matches {
    int any = 0;
    int changeable = 0;  // bulk or matrix
  };
  struct Group {
    int n = 0;
    std::string first;  // name of the first tensor
  };

  TypePlan plan_;
  std::vector<Matches> n_matches_;
  std::map<std::tuple<DType, DType, uint64_t>, Group> fallbacks_;  // wanted, given, row length
};

}  // namespace forebay
