// Requests for arithmetic on rows. BasicDevice::execute (gpu/device.hpp) serves them.
//
// Every request states which memory it touches: visit_memory(memory) calls memory.writes(address,
// …) with the rows that the request writes, and then memory.reads(address, …) with those that it
// reads. The GPU that holds the first of these rows serves the request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gossamer::gpu {

/// One neighbour's row, or a piece of it, and its weight in W.
template <class Real>
struct BasicMixSource {
  const Real* row = nullptr;
  Real weight = 0;
};
using MixSource = BasicMixSource<float>;

/// out ← own · x + Σ_j weight_j · (row_j − x), added in the order of `sources`. Element-wise, so
/// rows may be mixed in pieces. `out` overlaps none of the inputs.
template <class Real>
struct BasicMixRequest {
  const Real* x = nullptr;
  Real* out = nullptr;
  std::span<const BasicMixSource<Real>> sources;
  std::size_t length = 0;  ///< values
  Real own = 1;            ///< 1, or 0 for what a mix adds to x

  void visit_memory(auto&& memory) const {
    memory.writes(out).reads(x);
    for (const BasicMixSource<Real>& source : sources) memory.reads(source.row);
  }
};
using MixRequest = BasicMixRequest<float>;

/// y ← y + factor · x. x and y do not overlap.
template <class Real>
struct AxpyRequest {
  Real factor = 0;
  const Real* x = nullptr;
  Real* y = nullptr;
  std::size_t length = 0;

  void visit_memory(auto&& memory) const { memory.writes(y).reads(x); }
};

/// out ← out + factor · (a − b), and then copy ← out, if there is a copy. `out` and `copy` are
/// different rows. Each of them may be a or b itself, but overlaps neither of them partly.
template <class Real>
struct DifferenceRequest {
  Real* out = nullptr;
  const Real* a = nullptr;
  const Real* b = nullptr;
  std::size_t length = 0;
  Real factor = 1;
  Real* copy = nullptr;  ///< or null

  void visit_memory(auto&& memory) const {
    memory.writes(out);
    if (copy != nullptr) memory.writes(copy);
    memory.reads(a, b);
  }
};

/// y ← factor · y.
template <class Real>
struct ScaleRequest {
  Real factor = 0;
  Real* y = nullptr;
  std::size_t length = 0;

  void visit_memory(auto&& memory) const { memory.writes(y); }
};

/// out ← x / divisor. The divisor lies in device memory, where an earlier operation may have
/// written it. `out` may be x itself, but does not overlap it partly; the divisor lies outside
/// both.
template <class Real>
struct DivideRequest {
  const Real* x = nullptr;
  const Real* divisor = nullptr;  ///< [1]
  Real* out = nullptr;
  std::size_t length = 0;

  void visit_memory(auto&& memory) const { memory.writes(out).reads(x, divisor); }
};

/// to ← from. The rows do not overlap.
template <class Real>
struct CopyRequest {
  const Real* from = nullptr;
  Real* to = nullptr;
  std::size_t length = 0;

  void visit_memory(auto&& memory) const { memory.writes(to).reads(from); }
};

/// y ← value.
template <class Real>
struct FillRequest {
  Real value = 0;
  Real* y = nullptr;
  std::size_t length = 0;

  void visit_memory(auto&& memory) const { memory.writes(y); }
};

/// Range check of a row: if a value is not finite, or beyond `largest` in magnitude, and `fault` is
/// 0, then `fault` becomes `tag`. Several requests of a call may share one fault word, which then
/// takes the tag of any row out of range. The word is set when Memory::finish() has returned, and
/// may be set before.
struct RangeCheckRequest {
  const float* row = nullptr;
  std::size_t length = 0;
  float largest = 0;               ///< ≥ 0, finite
  std::uint64_t* fault = nullptr;  ///< a FaultWord's (host memory)
  std::uint64_t tag = 1;           ///< not 0; identifies the request

  void visit_memory(auto&& memory) const { memory.reads(row); }
};

/// Values of a block of a squared distance, and the number of partial sums of a block.
inline constexpr std::size_t kDistanceBlock = 4096;
inline constexpr std::size_t kDistanceLanes = 256;

/// Squared Euclidean distances ‖row_i − row_j‖² of m rows, computed in double. The order of the sum
/// is fixed, and is the same on every device: within a block of kDistanceBlock values, lane l adds
/// the values l, l + kDistanceLanes, …; the lanes are added as a tree, each to the one half the
/// number of lanes above it; and the blocks are added in order. A distance therefore depends on the
/// values of its two rows alone. Rows with values that are not finite give a distance that is not
/// finite.
///
/// The distances are complete when the call returns.
template <class Real>
struct DistancesRequest {
  std::span<const Real* const> rows;  ///< [m]: device memory, `length` values each
  bool to_first = false;  ///< the pairs (0, 1), (0, 2), … only; else (1, 2), (1, 3), … follow
  std::size_t length = 0;
  double* distances = nullptr;  ///< out: one for each pair, in that order (host memory)

  std::size_t pairs() const {
    const std::size_t m = rows.size();
    if (m == 0) return 0;
    return to_first ? m - 1 : m * (m - 1) / 2;
  }
  void visit_memory(auto&& memory) const {
    for (const Real* row : rows) memory.reads(row);
  }
};

/// out ← x + factor · Σ_k (v_k − x). At each index, v_k are the values of the rows there of rank
/// first … first + count − 1, counted from 0 in ascending order; equal values are in the order of
/// the rows. Computed in double, and rounded once. Element-wise. `out` overlaps none of the inputs;
/// x may be one of the rows.
template <class Real>
struct OrderStatisticsRequest {
  const Real* x = nullptr;
  Real* out = nullptr;
  std::span<const Real* const> rows;  ///< [m]
  std::size_t first = 0, count = 0;   ///< first + count ≤ m
  double factor = 0;
  std::size_t length = 0;

  void visit_memory(auto&& memory) const {
    memory.writes(out).reads(x);
    for (const Real* row : rows) memory.reads(row);
  }
};

/// Most values of a sketch.
inline constexpr std::size_t kSketchLength = 1024;

/// Random projection of a row to m values, where m is kSketchLength or, for shorter rows, d rounded
/// up to a power of two: s = Σ_b E_b H D_b x_b over the row's blocks x_b of m values, H the
/// orthonormal Hadamard matrix, D_b and E_b diagonals of random signs (after Ailon and Chazelle
/// 2009). The sketch is linear, and its signs depend on `seed` alone, so sketches of one run add
/// and subtract as their rows do. E‖s‖² = ‖x‖²; the norm has a relative standard deviation of at
/// most 1/sqrt(2m), 2.2 %, whatever the values are, and one block is exact. (A count-sketch moves
/// each value to one place and is far off where two large values meet.) Computed in double. Signs
/// are bits of the stream (seed, kNoPeer, Purpose::sketch), the highest bit of each number first, 0
/// for
/// +: block by block, m signs of D_b and then m signs of E_b.
///
/// The sketch is complete when the call returns.
template <class Real>
struct SketchRequest {
  const Real* row = nullptr;
  std::size_t length = 0;
  std::uint64_t seed = 0;
  double* sketch = nullptr;  ///< out: [sketch_length(length)] (host memory)

  void visit_memory(auto&& memory) const { memory.reads(row); }
};
constexpr std::size_t sketch_length(std::size_t d) {
  std::size_t m = 1;
  while (m < d && m < kSketchLength) m *= 2;
  return m;
}

}  // namespace gossamer::gpu
