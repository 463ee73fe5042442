// Random projection of a row (gpu/row_requests.hpp, SketchRequest).
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/philox.hpp"
#include "gpu/cpu/rows.hpp"

namespace gossamer::gpu {
namespace {

/// y ← H y, H the Hadamard matrix of order `length`, a power of two, scaled to be orthonormal.
void hadamard(double* y, std::size_t length) {
  for (std::size_t half = 1; half < length; half *= 2)
    for (std::size_t begin = 0; begin < length; begin += 2 * half)
      for (std::size_t k = begin; k < begin + half; ++k) {
        const double a = y[k], b = y[k + half];
        y[k] = a + b;
        y[k + half] = a - b;
      }
  const double scale = 1 / std::sqrt(static_cast<double>(length));
  for (std::size_t k = 0; k < length; ++k) y[k] *= scale;
}

/// Random signs, 32 to a number, the highest bit first.
class Signs {
 public:
  explicit Signs(std::uint64_t seed) : random_(seed, kNoPeer, Purpose::sketch) {}
  double next() {
    if (left_ == 0) bits_ = random_.next_u32(), left_ = 32;
    const bool minus = ((bits_ >> --left_) & 1) != 0;
    return minus ? -1.0 : 1.0;
  }

 private:
  RandomStream random_;
  std::uint32_t bits_ = 0;
  int left_ = 0;
};

}  // namespace

template <class Real>
void run(const SketchRequest<Real>& r) {
  const std::size_t m = sketch_length(r.length);
  std::vector<double> block(m);
  std::fill_n(r.sketch, m, 0.0);
  Signs signs(r.seed);
  for (std::size_t begin = 0; begin < r.length; begin += m) {
    const std::size_t values = std::min(m, r.length - begin);
    for (std::size_t k = 0; k < m; ++k) {
      const double sign = signs.next();
      block[k] = k < values ? sign * static_cast<double>(r.row[begin + k]) : 0.0;
    }
    hadamard(block.data(), m);
    for (std::size_t k = 0; k < m; ++k) r.sketch[k] += signs.next() * block[k];
  }
}

template void run(const SketchRequest<float>&);
template void run(const SketchRequest<double>&);

}  // namespace gossamer::gpu
