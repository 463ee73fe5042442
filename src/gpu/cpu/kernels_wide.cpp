// The kernels for AVX-512 (x86-64-v4), 64-byte registers. On other machines the file is empty.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/check.hpp"
#include "gpu/cpu/kernels.hpp"

#if defined(__x86_64__) && !defined(__clang__)  // Clang has no "pragma GCC target"
#include <immintrin.h>

// The pragma applies from here to the end of the file, and so to every template below. The standard
// headers come before it, so that the linker cannot take one of their functions from this file,
// with these instructions, for another file's.
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx512cd,fma,prefer-vector-width=512")
#pragma GCC diagnostic ignored "-Wpsabi"  // packs are passed among our own inlined functions only
#define GOSSAMER_PACK_BYTES 64

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

bool has_wide_kernels() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd");
}
const Kernels<float>& wide_kernels() {
  static constexpr Kernels<float> table = make_table<float>();
  return table;
}

}  // namespace gossamer::gpu

#else

namespace gossamer::gpu {

bool has_wide_kernels() { return false; }
const Kernels<float>& wide_kernels() {
  GOSSAMER_CHECK(false, "this machine has no wider registers");
}

}  // namespace gossamer::gpu
#endif
