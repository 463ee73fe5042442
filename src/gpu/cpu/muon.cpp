// Muon's step with a matrix X [rows, columns]: a Newton–Schulz iteration makes of the momentum U S
// V' about U V'. With G = X X' where X is wide, and X' X where it is tall, an iteration is
//   X ← a X + P X, or a X + X P,  P = b G + c G²
#include "gpu/cpu/muon.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "gpu/cpu/kernels.hpp"

namespace gossamer::gpu {
namespace {

template <class Real>
class Orthogonaliser {
 public:
  Orthogonaliser(int rows, int columns)
      : rows_(rows),
        columns_(columns),
        less_(std::min(rows, columns)),
        x_(values(rows, columns)),
        next_(x_.size()),
        gram_(values(less_, less_)),
        polynomial_(gram_.size()),
        scratch_(packed_values(std::max(rows, columns))) {}

  /// [rows, columns], for the caller to fill in.
  std::vector<Real>& matrix() { return x_; }

  void run(int iterations) {
    double square = 0;
    for (const Real value : x_) square += static_cast<double>(value) * static_cast<double>(value);
    const Real norm = static_cast<Real>(std::sqrt(square) + NewtonSchulz::epsilon);
    for (Real& value : x_) value /= norm;
    for (int i = 0; i < iterations; ++i) iterate();
  }

 private:
  static std::size_t values(int rows, int columns) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  }
  bool tall() const { return rows_ > columns_; }

  void iterate() {
    multiply({.m = less_,
              .n = less_,
              .k = std::max(rows_, columns_),
              .a = x_.data(),
              .a_row = tall() ? 1 : columns_,
              .a_column = tall() ? columns_ : 1,
              .b = x_.data(),
              .b_row = columns_,
              .b_transposed = !tall(),
              .c = gram_.data(),
              .c_row = less_});
    multiply({.m = less_,
              .n = less_,
              .k = less_,
              .a = gram_.data(),
              .a_row = less_,
              .b = gram_.data(),
              .b_row = less_,
              .c = polynomial_.data(),
              .c_row = less_});
    constexpr Real a = static_cast<Real>(NewtonSchulz::a), b = static_cast<Real>(NewtonSchulz::b),
                   c = static_cast<Real>(NewtonSchulz::c);
    for (std::size_t i = 0; i < gram_.size(); ++i)
      polynomial_[i] = c * polynomial_[i] + b * gram_[i];
    for (std::size_t i = 0; i < x_.size(); ++i) next_[i] = a * x_[i];
    multiply({.m = rows_,
              .n = columns_,
              .k = less_,
              .a = tall() ? x_.data() : polynomial_.data(),
              .a_row = less_,
              .b = tall() ? polynomial_.data() : x_.data(),
              .b_row = columns_,
              .c = next_.data(),
              .c_row = columns_,
              .accumulate = true});
    std::swap(x_, next_);
  }

  void multiply(Product<Real> product) {
    product.scratch = scratch_.data();
    kernels<Real>().product(product);
  }

  int rows_, columns_, less_;
  std::vector<Real> x_, next_, gram_, polynomial_, scratch_;
};

}  // namespace

template <class Real>
void muon_step(const UpdateRule& rule, const UpdateJob<Real>& job) {
  if (job.length == 0) return;
  const auto columns = static_cast<std::size_t>(job.columns);
  GOSSAMER_CHECK(job.columns > 0 && job.length % columns == 0, "Muon steps with a matrix");
  const std::size_t rows = job.length / columns;
  Orthogonaliser<Real> orthogonaliser(static_cast<int>(rows), job.columns);
  std::vector<Real>& update = orthogonaliser.matrix();
  const Real momentum = static_cast<Real>(rule.momentum),
             rest = static_cast<Real>(1 - rule.momentum);
  Real* m = job.state[0];
  for (std::size_t i = 0; i < job.length; ++i) {
    m[i] = momentum * m[i] + rest * job.gradient[i];
    update[i] = rule.nesterov ? rest * job.gradient[i] + momentum * m[i] : m[i];
  }
  orthogonaliser.run(rule.iterations);
  const Real kept = static_cast<Real>(1 - job.rate * rule.weight_decay),
             step = static_cast<Real>(-job.rate * muon_scale(rows, columns));
  for (std::size_t i = 0; i < job.length; ++i)
    job.parameters[i] = kept * job.parameters[i] + step * update[i];
}

template void muon_step(const UpdateRule&, const UpdateJob<float>&);
template void muon_step(const UpdateRule&, const UpdateJob<double>&);

}  // namespace gossamer::gpu
