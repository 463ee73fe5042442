// Max-pooling.
#include <algorithm>

#include "gpu/cpu/layers/layers.hpp"

namespace gossamer::gpu {
namespace {

std::size_t input_values(const MaxPoolOperation& p) {
  return size(p.height * p.width * p.channels);
}
std::size_t output_values(const MaxPoolOperation& p) {
  return size((p.height / p.size) * (p.width / p.size) * p.channels);
}

}  // namespace

template <class Real>
void forward(const MaxPoolOperation& pool, int batch, const Real*, const Operands<Real>& at) {
  for (int i = 0; i < batch; ++i)
    kernels<Real>().max_pool(pool, at.x + size(i) * input_values(pool),
                             at.y + size(i) * output_values(pool));
}

template <class Real>
void backward(const MaxPoolOperation& pool, int batch, const Real*, Real*,
              const Operands<Real>& at) {
  if (at.dx == nullptr) return;
  if (pool.height % pool.size != 0 || pool.width % pool.size != 0)
    std::fill_n(at.dx, size(batch) * input_values(pool), Real(0));
  for (int i = 0; i < batch; ++i) {
    const std::size_t in = size(i) * input_values(pool), out = size(i) * output_values(pool);
    kernels<Real>().max_pool_backward(pool, at.x + in, at.y + out, at.dy + out, at.dx + in);
  }
}

std::size_t scratch_values(const MaxPoolOperation&, int) { return 0; }

template void forward(const MaxPoolOperation&, int, const float*, const Operands<float>&);
template void backward(const MaxPoolOperation&, int, const float*, float*, const Operands<float>&);
template void forward(const MaxPoolOperation&, int, const double*, const Operands<double>&);
template void backward(const MaxPoolOperation&, int, const double*, double*,
                       const Operands<double>&);

}  // namespace gossamer::gpu
