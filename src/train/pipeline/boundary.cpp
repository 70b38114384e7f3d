#include "train/pipeline/boundary.h"

#include <algorithm>
#include <cmath>

namespace forebay::train {

torch::Tensor as_rows(const torch::Tensor& x_BTW) {
  return x_BTW.reshape({-1, x_BTW.size(-1)}).to(torch::kFloat).contiguous();
}

torch::Tensor as_batch(const torch::Tensor& x_NW, const torch::Tensor& like_BTW) {
  return x_NW.to(like_BTW.options()).view(like_BTW.sizes());
}

double norm_of(std::vector<std::pair<std::string, double>> squares) {
  std::sort(squares.begin(), squares.end());
  double sum = 0;
  for (size_t i = 0; i < squares.size(); ++i)
    if (i + 1 == squares.size() || squares[i].first != squares[i + 1].first) sum += squares[i].second;
  return std::sqrt(sum);
}

Error error_of(const std::exception& exception) {
  const std::string_view text = exception.what();
  return {Code::kInternal, std::string(text.substr(0, text.find('\n')))};
}

}  // namespace forebay::train
