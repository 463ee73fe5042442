// Requests for products of the matrices of a row with single vectors, and for updates of rank 1.
// BasicDevice::execute (gpu/device.hpp) serves them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/philox.hpp"

namespace gossamer::gpu {

/// A tensor of a row as a matrix [rows, columns], row-major, from value `offset` of the row on. One
/// with a single row or column is a vector: it has no direction, and its product is the vector
/// itself.
struct MatrixShape {
  std::size_t offset = 0, rows = 0, columns = 0;

  constexpr bool is_vector() const { return rows == 1 || columns == 1; }
  constexpr std::size_t length() const { return rows * columns; }
  /// Values of a direction v, which multiplies the matrix M from the left (Mᵀ v) or the right
  /// (M v), and of the product.
  constexpr std::size_t direction(bool left) const {
    return is_vector() ? 0 : left ? rows : columns;
  }
  constexpr std::size_t product(bool left) const {
    return is_vector() ? length() : left ? columns : rows;
  }
};

/// The random signs that a direction without length becomes: bit i of the stream (seed, peer,
/// Purpose::directions, step), the lowest of each number first, is value i of the directions of a
/// request; a set bit is a minus.
struct RandomSigns {
  std::uint64_t seed = 0;
  std::uint32_t peer = 0;
  std::uint64_t step = 0;

  constexpr RandomKey key() const { return {seed, peer, Purpose::directions, step}; }
};

/// The sign of value i: 1 or −1. Any device.
constexpr int random_sign(const RandomKey& key, std::size_t i) {
  const std::uint32_t word = key.block(static_cast<std::uint32_t>(i / 128))[i / 32 % 4];
  return ((word >> (i % 32)) & 1U) != 0 ? -1 : 1;
}

/// Lanes in which the squares of a direction, and the products with a row of a matrix, are added:
/// lane l adds the terms l, l + lanes, …, and the lanes are added as a tree.
inline constexpr std::size_t kNormLanes = 256, kProductLanes = 16;

/// For each matrix of row x, with its direction v:
///   v ← v / ‖v‖, or random signs / sqrt(length) where ‖v‖ is 0 or not finite;
///   product ← M v, or Mᵀ v with `left`.
/// Directions and products of the matrices lie one after the other. The order of every sum is fixed
/// (Mᵀ v adds row after row), and norms are computed in double, so the bits are the same on every
/// device.
template <class Real>
struct ProjectRequest {
  const Real* x = nullptr;
  std::size_t length = 0;                 ///< of x
  std::span<const MatrixShape> matrices;  ///< in host memory
  bool left = false;
  Real* directions = nullptr;  ///< in, out: [Σ direction(left)]
  Real* products = nullptr;    ///< out: [Σ product(left)]
  RandomSigns signs = {};

  void visit_memory(auto&& memory) const { memory.writes(products, directions).reads(x); }
};

/// For each matrix of row x, with the direction v of a ProjectRequest and two products of it:
///   M ← M + factor · (theirs − own) vᵀ, or M + factor · v (theirs − own)ᵀ with `left`,
///   next ← theirs − own, or own − theirs with `reversed`;
/// a vector is M ← M + factor · (theirs − own), and has no `next`. `next` is laid out as the
/// directions of the other side, and overlaps nothing else.
template <class Real>
struct AddProductRequest {
  Real* x = nullptr;
  std::size_t length = 0;                 ///< of x
  std::span<const MatrixShape> matrices;  ///< in host memory
  bool left = false;
  const Real* directions = nullptr;  ///< [Σ direction(left)]
  const Real* own = nullptr;         ///< [Σ product(left)]
  const Real* theirs = nullptr;
  Real* next = nullptr;  ///< out: [Σ direction(!left)]
  bool reversed = false;
  Real factor = 0;

  void visit_memory(auto&& memory) const { memory.writes(x, next).reads(directions, own, theirs); }
};

/// Calls function(shape, direction's place, product's place, next direction's place) for each
/// matrix.
template <class Function>
constexpr void for_each_matrix(std::span<const MatrixShape> matrices, bool left,
                               Function function) {
  std::size_t direction = 0, product = 0, next = 0;
  for (const MatrixShape& shape : matrices) {
    function(shape, direction, product, next);
    direction += shape.direction(left);
    product += shape.product(left);
    next += shape.direction(!left);
  }
}

}  // namespace gossamer::gpu
