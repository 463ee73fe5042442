// The kernels in the instruction set of the build (-march), 32-byte registers.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "gpu/cpu/kernels.hpp"

#define GOSSAMER_PACK_BYTES 32

namespace gossamer::gpu {
namespace {

constexpr int kPackBytes = GOSSAMER_PACK_BYTES;

// Each file uses definitions of the files before it.
// clang-format off
#include "gpu/cpu/pack.inl"
#include "gpu/cpu/product.inl"
#include "gpu/cpu/elementwise.inl"
#include "gpu/cpu/image.inl"
#include "gpu/cpu/table.inl"
// clang-format on

}  // namespace

template <class Real>
const Kernels<Real>& baseline_kernels() {
  static constexpr Kernels<Real> table = make_table<Real>();
  return table;
}
template const Kernels<float>& baseline_kernels();
template const Kernels<double>& baseline_kernels();

template <>
const Kernels<float>& kernels() {
  static const Kernels<float>& widest =
      has_wide_kernels() ? wide_kernels() : baseline_kernels<float>();
  return widest;
}
template <>
const Kernels<double>& kernels() {
  return baseline_kernels<double>();
}

}  // namespace gossamer::gpu
