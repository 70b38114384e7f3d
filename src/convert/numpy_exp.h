#pragma once

#include <cmath>

namespace forebay::convert {

/// e^x in f32 as NumPy computes it: a quotient of polynomials, up to 2.5 ulp off. Converted files can then be
/// compared bit for bit with those that NumPy scripts make; decay rates do not need the last bit.
/// Source: the f32 exponential of NumPy, numpy/_core/src/umath (loops_exponent_log).
inline float numpy_exp(float x) {
  if (!(std::abs(x) < 80)) return std::exp(x);  // far from any decay rate: infinities, NaN, subnormals
  constexpr float kLog2E = 1.44269504f,
                  kRound = 0x1.8p+23f;  // adding and taking away kRound rounds to an integer
  const float k = (x * kLog2E + kRound) - kRound;
  const float r = std::fma(k, -1.42860677e-6f, std::fma(k, -6.93145752e-1f, x));  // x - k ln 2
  float above = 5.082762527590693718096e-04f;
  for (const float coefficient :
       {6.757896990527504603057e-03f, 5.114512081637298353406e-02f, 2.473615434895520810817e-01f,
        7.257664613233124478488e-01f, 9.999999999980870924916e-01f})
    above = std::fma(above, r, coefficient);
  float below = 2.159509375685829852307e-02f;
  for (const float coefficient : {-2.742335390411667452936e-01f, 1.0f})
    below = std::fma(below, r, coefficient);
  return std::ldexp(above / below, static_cast<int>(k));
}

}  // namespace forebay::convert
