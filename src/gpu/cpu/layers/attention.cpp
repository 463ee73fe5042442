// Attention: S = Q Kᵀ / √f, P = softmax of S's rows, Y = P V; with dY: dV = Pᵀ dY, dP = dY Vᵀ,
// dS = P ⊙ (dP − (the sum of P ⊙ dP over a row)), dQ = dS K / √f, dK = dSᵀ Q / √f, for each sample
// and head.
//
// Scratch: P of each sample and head, kept for the backward pass; one dS; a panel for the products.
#include <algorithm>
#include <cmath>

#include "gpu/cpu/layers/layers.hpp"

namespace gossamer::gpu {
namespace {

std::size_t matrix(const AttentionOperation& a) { return size(a.positions) * size(a.positions); }

/// Addresses of one head of one sample. A row of Q, K and V is `stride` values behind the one
/// before.
template <class Real>
struct Head {
  const Real *q, *k, *v;
  int stride;
  Real* p;

  Head(const AttentionOperation& a, const Operands<Real>& at, int sample, int head)
      : stride(3 * a.width()) {
    q = at.x + size(sample) * size(a.positions) * size(stride) + size(head) * 3 * size(a.features);
    k = q + a.features;
    v = k + a.features;
    p = at.scratch + (size(sample) * size(a.heads) + size(head)) * matrix(a);
  }
};

/// The offset of a head's rows in Y and dY.
std::size_t output_of(const AttentionOperation& a, int sample, int head) {
  return size(sample) * size(a.positions) * size(a.width()) + size(head) * size(a.features);
}

/// Rows ← softmax(factor · rows); of row i, where causal, only the first i + 1 values, and the
/// others become 0.
template <class Real>
void softmax_rows(const AttentionOperation& a, Real factor, Real* rows) {
  for (int i = 0; i < a.positions; ++i) {
    Real* p = rows + size(i) * size(a.positions);
    const std::size_t seen = size(a.causal ? i + 1 : a.positions);
    Real most = p[0];
    for (std::size_t j = 1; j < seen; ++j) most = p[j] > most ? p[j] : most;
    for (std::size_t j = 0; j < seen; ++j) p[j] = factor * (p[j] - most);
    kernels<Real>().exponential(p, seen);
    Real sum = 0;
    for (std::size_t j = 0; j < seen; ++j) sum += p[j];
    kernels<Real>().scale(1 / sum, p, seen);
    std::fill(p + seen, p + a.positions, Real(0));
  }
}

/// dP → dS / √f, row by row.
template <class Real>
void softmax_backward(const AttentionOperation& a, Real factor, const Real* p, Real* ds) {
  for (int i = 0; i < a.positions; ++i, p += a.positions, ds += a.positions) {
    Real sum = 0;
    for (int j = 0; j < a.positions; ++j) sum += p[j] * ds[j];
    for (int j = 0; j < a.positions; ++j) ds[j] = factor * (p[j] * (ds[j] - sum));
  }
}

template <class Real>
Real score_factor(const AttentionOperation& a) {
  return 1 / std::sqrt(static_cast<Real>(a.features));
}

}  // namespace

template <class Real>
void forward(const AttentionOperation& a, int batch, const Real*, const Operands<Real>& at) {
  const int positions = a.positions, features = a.features;
  Real* packed = at.scratch + (size(batch) * size(a.heads) + 1) * matrix(a);
  for (int sample = 0; sample < batch; ++sample)
    for (int h = 0; h < a.heads; ++h) {
      const Head<Real> head(a, at, sample, h);
      kernels<Real>().product({.m = positions,
                               .n = positions,
                               .k = features,
                               .a = head.q,
                               .a_row = head.stride,
                               .b = head.k,
                               .b_row = head.stride,
                               .b_transposed = true,
                               .scratch = packed,
                               .c = head.p,
                               .c_row = positions});
      softmax_rows(a, score_factor<Real>(a), head.p);
      kernels<Real>().product({.m = positions,
                               .n = features,
                               .k = positions,
                               .a = head.p,
                               .a_row = positions,
                               .b = head.v,
                               .b_row = head.stride,
                               .scratch = packed,
                               .c = at.y + output_of(a, sample, h),
                               .c_row = a.width()});
    }
}

template <class Real>
void backward(const AttentionOperation& a, int batch, const Real*, Real*,
              const Operands<Real>& at) {
  if (at.dx == nullptr) return;
  const int positions = a.positions, features = a.features;
  Real* ds = at.scratch + size(batch) * size(a.heads) * matrix(a);
  Real* packed = ds + matrix(a);
  for (int sample = 0; sample < batch; ++sample)
    for (int h = 0; h < a.heads; ++h) {
      const Head<Real> head(a, at, sample, h);
      const Real* dy = at.dy + output_of(a, sample, h);
      Real* dq = at.dx + (head.q - at.x);
      Real *dk = dq + features, *dv = dk + features;
      Product<Real> product{.m = positions,
                            .n = positions,
                            .k = features,
                            .a = dy,
                            .a_row = a.width(),
                            .b = head.v,
                            .b_row = head.stride,
                            .b_transposed = true,
                            .scratch = packed,
                            .c = ds,
                            .c_row = positions};
      kernels<Real>().product(product);
      softmax_backward<Real>(a, score_factor<Real>(a), head.p, ds);
      product = {.m = positions,
                 .n = features,
                 .k = positions,
                 .a = head.p,
                 .a_row = 1,
                 .a_column = positions,
                 .b = dy,
                 .b_row = a.width(),
                 .scratch = packed,
                 .c = dv,
                 .c_row = head.stride};
      kernels<Real>().product(product);
      product.a = ds, product.b = head.q, product.b_row = head.stride, product.c = dk;
      kernels<Real>().product(product);
      product.a_row = positions, product.a_column = 1, product.b = head.k, product.c = dq;
      kernels<Real>().product(product);
    }
}

std::size_t scratch_values(const AttentionOperation& a, int batch) {
  return (size(batch) * size(a.heads) + 1) * matrix(a) +
         packed_values(std::max(a.positions, a.features));
}

template void forward(const AttentionOperation&, int, const float*, const Operands<float>&);
template void backward(const AttentionOperation&, int, const float*, float*,
                       const Operands<float>&);
template void forward(const AttentionOperation&, int, const double*, const Operands<double>&);
template void backward(const AttentionOperation&, int, const double*, double*,
                       const Operands<double>&);

}  // namespace gossamer::gpu
