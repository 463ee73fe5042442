#include "gpu/cpu/low_rank.hpp"

#include <algorithm>
#include <cmath>

#include "gpu/cpu/kernels.hpp"

namespace gossamer::gpu {
namespace {

/// Σ of `terms` values term(i): lane l adds the terms l, l + kLanes, …, and the lanes are added as
/// a tree. A GPU adds in this order too.
template <std::size_t kLanes, class Value, class Term>
Value sum_in_lanes(std::size_t terms, Term term) {
  Value lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= terms; i += kLanes)
    for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += term(i + l);
  for (std::size_t l = 0; i < terms; ++i, ++l) lanes[l] += term(i);
  for (std::size_t half = kLanes / 2; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  return lanes[0];
}

/// v ← v / ‖v‖, or random signs / sqrt(length). `first`: the place of v among the directions.
template <class Real>
void normalise(Real* v, std::size_t length, const RandomKey& key, std::size_t first) {
  const double norm = std::sqrt(sum_in_lanes<kNormLanes, double>(length, [&](std::size_t i) {
    const double value = static_cast<double>(v[i]);
    return value * value;
  }));
  if (norm > 0 && std::isfinite(norm)) {
    for (std::size_t i = 0; i < length; ++i)
      v[i] = static_cast<Real>(static_cast<double>(v[i]) / norm);
  } else {
    const Real size = static_cast<Real>(1 / std::sqrt(static_cast<double>(length)));
    for (std::size_t i = 0; i < length; ++i)
      v[i] = static_cast<Real>(random_sign(key, first + i)) * size;
  }
}

}  // namespace

template <class Real>
void run(const ProjectRequest<Real>& r) {
  const RandomKey key = r.signs.key();
  for_each_matrix(
      r.matrices, r.left,
      [&](const MatrixShape& shape, std::size_t direction, std::size_t product, std::size_t) {
        const Real* matrix = r.x + shape.offset;
        Real* out = r.products + product;
        if (shape.is_vector()) {
          std::copy_n(matrix, shape.length(), out);
          return;
        }
        Real* v = r.directions + direction;
        normalise(v, shape.direction(r.left), key, direction);
        if (r.left) {
          std::fill_n(out, shape.columns, Real(0));
          for (std::size_t i = 0; i < shape.rows; ++i)
            kernels<Real>().axpy(v[i], matrix + i * shape.columns, out, shape.columns);
        } else {
          for (std::size_t i = 0; i < shape.rows; ++i)
            out[i] = sum_in_lanes<kProductLanes, Real>(
                shape.columns, [&](std::size_t j) { return matrix[i * shape.columns + j] * v[j]; });
        }
      });
}

template <class Real>
void run(const AddProductRequest<Real>& r) {
  for_each_matrix(
      r.matrices, r.left,
      [&](const MatrixShape& shape, std::size_t direction, std::size_t product, std::size_t next) {
        Real* matrix = r.x + shape.offset;
        const Real *v = r.directions + direction, *own = r.own + product,
                   *theirs = r.theirs + product;
        if (shape.is_vector()) {
          for (std::size_t i = 0; i < shape.length(); ++i)
            matrix[i] += r.factor * (theirs[i] - own[i]);
          return;
        }
        Real* difference = r.next + next;
        for (std::size_t i = 0; i < shape.product(r.left); ++i)
          difference[i] = r.reversed ? own[i] - theirs[i] : theirs[i] - own[i];
        const Real factor = r.reversed ? -r.factor : r.factor;
        for (std::size_t i = 0; i < shape.rows; ++i)
          kernels<Real>().axpy(factor * (r.left ? v[i] : difference[i]), r.left ? difference : v,
                               matrix + i * shape.columns, shape.columns);
      });
}

template void run(const ProjectRequest<float>&);
template void run(const ProjectRequest<double>&);
template void run(const AddProductRequest<float>&);
template void run(const AddProductRequest<double>&);

}  // namespace gossamer::gpu
