// The inner loops of the CPU device, as a table of functions. The same source (the .inl files) is
// compiled for several vector widths, and the program takes the widest that the machine has. Each
// element's operations and their order do not depend on the width, so the bits do not either.
#pragma once

#include <cstddef>

#include "gpu/program.hpp"
#include "gpu/row_requests.hpp"
#include "gpu/training.hpp"

namespace gossamer::gpu {

/// C = start + Σ_s A_s B_s with A_s [m, k], B_s [k, n], C [m, n]; start is C itself, a bias row, or
/// 0. Every element is one chain of fused multiply-adds in ascending (s, k), whatever the shapes.
template <class Real>
struct Product {
  int m = 0, n = 0, k = 0;
  const Real* a =
      nullptr;  ///< A_s[i, l] = a[s · a_segment + i · a_row + l · a_column]; a_row or a_column is 1
  std::ptrdiff_t a_row = 0, a_column = 1;
  const Real* b = nullptr;  ///< B_s[l, j] = b[(s · k + l) · b_row + j], or, b_transposed, b[j ·
                            ///< b_row + s · k + l]
  std::ptrdiff_t b_row = 0;
  bool b_transposed = false;
  Real* scratch = nullptr;  ///< packed_values(segments · k): needed if b_transposed; faster if B
                            ///< has long rows
  Real* c = nullptr;
  std::ptrdiff_t c_row = 0;
  int segments = 1;
  std::ptrdiff_t a_segment = 0;
  const Real* bias = nullptr;  ///< [n]
  bool accumulate = false;     ///< start from C
};

/// Values of a packed panel of B with `k` rows.
constexpr std::size_t packed_values(int k) { return 32 * static_cast<std::size_t>(k); }

/// Constants of one optimizer step, rounded once.
template <class Real>
struct UpdateConstants {
  UpdateRule::Kind kind = UpdateRule::Kind::sgd;
  Real rate = 0, weight_decay = 0;
  Real momentum = 0;  ///< sgd
  bool nesterov = false;
  Real beta1 = 0, rest1 = 0, correction1 = 0;  ///< adam, adamw; rest1 = 1 − beta1
  Real beta2 = 0, rest2 = 0, correction2 = 0;
  Real epsilon = 0;
};
template <class Real>
UpdateConstants<Real> update_constants(const UpdateRule& rule, double rate, std::uint64_t step) {
  const auto real = [](double value) { return static_cast<Real>(value); };
  const StepFactors factors = step_factors(rule, rate, step);
  return {.kind = rule.kind,
          .rate = real(rate),
          .weight_decay = real(rule.weight_decay),
          .momentum = real(rule.momentum),
          .nesterov = rule.nesterov,
          .beta1 = real(rule.beta1),
          .rest1 = real(1 - rule.beta1),
          .correction1 = real(factors.correction1),
          .beta2 = real(rule.beta2),
          .rest2 = real(1 - rule.beta2),
          .correction2 = real(factors.correction2),
          .epsilon = real(rule.epsilon)};
}

template <class Real>
struct Kernels {
  void (*product)(const Product<Real>&);
  void (*mix)(const BasicMixRequest<Real>&, bool streaming, std::size_t ahead);
  void (*axpy)(Real factor, const Real* x, Real* y, std::size_t length);
  void (*add_difference)(Real factor, Real* out, const Real* a, const Real* b, std::size_t length);
  /// The same, and copy ← out in the same pass over memory.
  void (*add_difference_and_copy)(Real factor, Real* out, const Real* a, const Real* b, Real* copy,
                                  std::size_t length);
  void (*scale)(Real factor, Real* y, std::size_t length);
  void (*divide)(const Real* x, Real divisor, Real* out, std::size_t length);
  void (*update)(const UpdateConstants<Real>&, Real* x, const StateRows<Real>& state, const Real* g,
                 std::size_t length);
  void (*activate)(Activation, Real* values, std::size_t length);
  /// gradient ← gradient ⊙ f′, computed from the outputs: relu′ = [y > 0], tanh′ = 1 − y².
  void (*activation_backward)(Activation, const Real* outputs, Real* gradient, std::size_t length);
  /// y ← gelu(x), and dx ← dy gelu′(x); program.hpp has the formula.
  void (*gelu)(const Real* x, Real* y, std::size_t length);
  void (*gelu_backward)(const Real* x, const Real* dy, Real* dx, std::size_t length);
  void (*exponential)(Real* values, std::size_t length);
  /// sums[c] += Σ_rows values[row, c].
  void (*column_sums)(const Real* values, int rows, int columns, Real* sums);
  void (*max_pool)(const MaxPoolOperation&, const Real* in, Real* out);
  void (*max_pool_backward)(const MaxPoolOperation&, const Real* in, const Real* out,
                            const Real* dout, Real* din);
  /// The channel functions work on channels-last images [pixels, channels]; image.inl has formulas.
  void (*channel_products)(const Real* x, const Real* x_centre, const Real* y, const Real* y_centre,
                           int pixels, int channels, Real* sums);
  void (*channel_affine)(const Real* x, const Real* x_factor, const Real* term, Real* out,
                         int pixels, int channels);
  void (*channel_affine2)(const Real* x, const Real* x_factor, const Real* y, const Real* y_factor,
                          const Real* term, Real* out, int pixels, int channels);
};

/// The widest kernels that this machine runs. Tests compare them with the baseline. Values of type
/// double are those of gradient checks, and take the baseline.
template <class Real>
const Kernels<Real>& kernels();
template <class Real>
const Kernels<Real>& baseline_kernels();
const Kernels<float>& wide_kernels();  ///< only if has_wide_kernels()
bool has_wide_kernels();

}  // namespace gossamer::gpu
