// The parts of CUDA C++ that are not functions of its runtime: qualifiers, built-in variables,
// vector types, and the device functions that the C++ library lacks. Included through
// cuda_runtime.h.
#pragma once

#include <math.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#define __host__
#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
// One block at a time runs in the process, so its shared memory may be static.
#define GOSSAMER_SHARED(Type, name, ...)                                       \
  static struct {                                                              \
    alignas(16) char front[::gossamer::emulation::kSharedGuard];               \
    Type memory __VA_ARGS__;                                                   \
    char back[::gossamer::emulation::kSharedGuard];                            \
  } name##_guarded;                                                            \
  ::gossamer::emulation::begin_shared(&name##_guarded, sizeof(name##_guarded), \
                                      sizeof(name##_guarded.memory));          \
  auto& name = name##_guarded.memory
#define __isGlobal(at) ::gossamer::emulation::is_global(at)
#define __builtin_assume(condition) ::gossamer::emulation::hold_to(condition, #condition)

namespace gossamer::emulation {

/// The bytes of a guard in front of and behind each variable in shared memory: more than a row of
/// the largest array.
inline constexpr std::size_t kSharedGuard = 4096;

/// The first thread of a block that reaches a variable of `bytes` bytes in shared memory fills it
/// with NaN (−1 in integers): a GPU leaves there what an earlier block wrote. The program stops at
/// the end of the block if something was written in front of the variable or past its end.
/// `guarded`: variable and guards, `total` bytes.
void begin_shared(void* guarded, std::size_t total, std::size_t bytes);

/// Whether a kernel may access the address: memory of a GPU, or pinned memory of the host.
bool is_global(const void* address);

/// Stops the program if an assumption of a kernel does not hold.
void assumption_broken(const char* assumption);
inline void hold_to(bool assumption, const char* text) {
  if (!assumption) assumption_broken(text);
}

}  // namespace gossamer::emulation

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned of_x = 1, unsigned of_y = 1, unsigned of_z = 1)
      : x(of_x), y(of_y), z(of_z) {}
};

struct uint3 {
  unsigned x, y, z;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) double2 {
  double x, y;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(4) char4 {
  signed char x, y, z, w;
};
struct alignas(8) ushort4 {
  unsigned short x, y, z, w;
};

inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline char4 make_char4(signed char x, signed char y, signed char z, signed char w) {
  return {x, y, z, w};
}
inline ushort4 make_ushort4(unsigned short x, unsigned short y, unsigned short z,
                            unsigned short w) {
  return {x, y, z, w};
}

// Variables of the running thread, set by the emulation.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

/// Waits for all threads of the block that have not ended.
void __syncthreads();
inline void __threadfence() {}

// Device overloads that C++ keeps in std.
#define GOSSAMER_ORDERED(Type)                                 \
  constexpr Type min(Type a, Type b) { return b < a ? b : a; } \
  constexpr Type max(Type a, Type b) { return a < b ? b : a; }
GOSSAMER_ORDERED(int)
GOSSAMER_ORDERED(unsigned)
GOSSAMER_ORDERED(long)
GOSSAMER_ORDERED(unsigned long)
GOSSAMER_ORDERED(long long)
GOSSAMER_ORDERED(unsigned long long)
#undef GOSSAMER_ORDERED
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }

inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline int __float_as_int(float value) { return std::bit_cast<int>(value); }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline long long __double_as_longlong(double value) { return std::bit_cast<long long>(value); }
inline double __longlong_as_double(long long bits) { return std::bit_cast<double>(bits); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(std::uint64_t{a} * b >> 32);
}
inline int __popc(unsigned bits) { return std::popcount(bits); }
inline int __clz(int bits) { return std::countl_zero(static_cast<unsigned>(bits)); }

// One rounding each, never contracted (the C++ sources are compiled without contraction).
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline double __dsqrt_rn(double a) { return sqrt(a); }
inline int __float2int_rn(float a) { return static_cast<int>(nearbyintf(a)); }

template <class Type>
inline Type __ldg(const Type* at) {
  return *at;
}

/// Blocks run one after the other, so a plain sum of integers is atomic. (Sums of floats depend on
/// the order on a GPU and are not provided.)
template <class Type>
inline Type atomicAdd(Type* at, Type value) {
  static_assert(std::is_integral_v<Type>, "no atomics on floats: their sum depends on the order");
  const Type before = *at;
  *at = before + value;
  return before;
}
