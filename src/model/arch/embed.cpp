#include "kernels/decode_row.h"
#include "model/arch/arch.h"

namespace forebay {

void embed(LayerContext& lc, const MatrixView& embedding, std::span<const int32_t> tokens,
           TensorView<float> out) {
  const DecodeFn decode = find_decoder(embedding.type, lc.kernels.isa());
  for (size_t t = 0; t < tokens.size(); ++t)
    decode(embedding.row(tokens[t]), embedding.n_cols, out.row(static_cast<int64_t>(t)));
}

}  // namespace forebay
