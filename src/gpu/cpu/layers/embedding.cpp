// Embeddings. The gradient of the table is added token by token, in the order of the batch.
#include <algorithm>
#include <cmath>
#include <limits>

#include "gpu/cpu/layers/layers.hpp"

namespace gossamer::gpu {
namespace {

/// Calls body(token's place in the batch, its number, or −1 if the table does not have it).
template <class Real, class Body>
void for_tokens(const EmbeddingOperation& e, int batch, const Real* x, Body body) {
  for (std::size_t t = 0; t < size(batch) * size(e.tokens); ++t) {
    const Real number = std::nearbyint(x[t]);
    const bool known = number >= 0 && number < static_cast<Real>(e.vocabulary);
    body(t, known ? static_cast<std::ptrdiff_t>(number) : -1);
  }
}

}  // namespace

template <class Real>
void forward(const EmbeddingOperation& e, int batch, const Real* row, const Operands<Real>& at) {
  const std::size_t features = size(e.features);
  for_tokens(e, batch, at.x, [&](std::size_t t, std::ptrdiff_t number) {
    Real* to = at.y + t * features;
    if (number < 0) std::fill_n(to, features, std::numeric_limits<Real>::quiet_NaN());
    else std::copy_n(row + e.table + size(static_cast<int>(number)) * features, features, to);
  });
}

template <class Real>
void backward(const EmbeddingOperation& e, int batch, const Real*, Real* gradient,
              const Operands<Real>& at) {
  const std::size_t features = size(e.features);
  at.start(gradient + e.table, size(e.vocabulary) * features);
  for_tokens(e, batch, at.x, [&](std::size_t t, std::ptrdiff_t number) {
    if (number >= 0)
      kernels<Real>().axpy(1, at.dy + t * features,
                           gradient + e.table + size(static_cast<int>(number)) * features,
                           features);
  });
}

std::size_t scratch_values(const EmbeddingOperation&, int) { return 0; }

template void forward(const EmbeddingOperation&, int, const float*, const Operands<float>&);
template void backward(const EmbeddingOperation&, int, const float*, float*,
                       const Operands<float>&);
template void forward(const EmbeddingOperation&, int, const double*, const Operands<double>&);
template void backward(const EmbeddingOperation&, int, const double*, double*,
                       const Operands<double>&);

}  // namespace gossamer::gpu
