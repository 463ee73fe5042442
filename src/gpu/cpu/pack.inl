// Pack: a register of numbers, kPackBytes wide. Each kernels_*.cpp includes this file after it has
// chosen its instruction set.

/// Real × lanes, with GCC's element-wise operators.
template <class Real>
struct PackOf {
  typedef Real type __attribute__((vector_size(kPackBytes)));
};
template <class Real>
using Pack = typename PackOf<Real>::type;
template <class Real>
inline constexpr int kLanes = kPackBytes / static_cast<int>(sizeof(Real));

#define GOSSAMER_INLINE inline __attribute__((always_inline))

template <class Real>
GOSSAMER_INLINE Pack<Real> load(const Real* from) {
  Pack<Real> pack;
  std::memcpy(&pack, from, sizeof pack);
  return pack;
}

template <class Real>
GOSSAMER_INLINE void store(Real* to, Pack<Real> pack) {
  std::memcpy(to, &pack, sizeof pack);
}

template <class Real>
GOSSAMER_INLINE Pack<Real> spread(Real value) {
  return value - Pack<Real>{};
}

#if defined(__x86_64__) && GOSSAMER_PACK_BYTES == 64

GOSSAMER_INLINE Pack<float> fma(Pack<float> a, Pack<float> b, Pack<float> c) {
  return (Pack<float>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
GOSSAMER_INLINE Pack<double> fma(Pack<double> a, Pack<double> b, Pack<double> c) {
  return (Pack<double>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
GOSSAMER_INLINE Pack<float> load(const float* from, int count) {
  return (Pack<float>)_mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << count) - 1), from);
}
GOSSAMER_INLINE Pack<double> load(const double* from, int count) {
  return (Pack<double>)_mm512_maskz_loadu_pd(static_cast<__mmask8>((1U << count) - 1), from);
}
GOSSAMER_INLINE void store(float* to, Pack<float> pack, int count) {
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1U << count) - 1), (__m512)pack);
}
GOSSAMER_INLINE void store(double* to, Pack<double> pack, int count) {
  _mm512_mask_storeu_pd(to, static_cast<__mmask8>((1U << count) - 1), (__m512d)pack);
}
GOSSAMER_INLINE void stream(float* to, Pack<float> pack) { _mm512_stream_ps(to, (__m512)pack); }
GOSSAMER_INLINE void stream(double* to, Pack<double> pack) { _mm512_stream_pd(to, (__m512d)pack); }
GOSSAMER_INLINE void stream_fence() { _mm_sfence(); }

#elif defined(__AVX2__) && defined(__FMA__) && GOSSAMER_PACK_BYTES == 32

alignas(32) inline constexpr std::int32_t kTailMask[16] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                                           0,  0,  0,  0,  0,  0,  0,  0};
/// The first `count` of 8 32-bit lanes.
GOSSAMER_INLINE __m256i tail_mask(int count) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kTailMask + 8 - count));
}

GOSSAMER_INLINE Pack<float> fma(Pack<float> a, Pack<float> b, Pack<float> c) {
  return (Pack<float>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
GOSSAMER_INLINE Pack<double> fma(Pack<double> a, Pack<double> b, Pack<double> c) {
  return (Pack<double>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
GOSSAMER_INLINE Pack<float> load(const float* from, int count) {
  return (Pack<float>)_mm256_maskload_ps(from, tail_mask(count));
}
GOSSAMER_INLINE Pack<double> load(const double* from, int count) {
  return (Pack<double>)_mm256_maskload_pd(from, tail_mask(2 * count));
}
GOSSAMER_INLINE void store(float* to, Pack<float> pack, int count) {
  _mm256_maskstore_ps(to, tail_mask(count), (__m256)pack);
}
GOSSAMER_INLINE void store(double* to, Pack<double> pack, int count) {
  _mm256_maskstore_pd(to, tail_mask(2 * count), (__m256d)pack);
}
GOSSAMER_INLINE void stream(float* to, Pack<float> pack) { _mm256_stream_ps(to, (__m256)pack); }
GOSSAMER_INLINE void stream(double* to, Pack<double> pack) { _mm256_stream_pd(to, (__m256d)pack); }
GOSSAMER_INLINE void stream_fence() { _mm_sfence(); }

#else  // any machine, in plain C++

template <class Real>
GOSSAMER_INLINE Pack<Real> fma_lanes(Pack<Real> a, Pack<Real> b, Pack<Real> c) {
  for (int i = 0; i < kLanes<Real>; ++i) c[i] = std::fma(a[i], b[i], c[i]);
  return c;
}
GOSSAMER_INLINE Pack<float> fma(Pack<float> a, Pack<float> b, Pack<float> c) {
  return fma_lanes<float>(a, b, c);
}
GOSSAMER_INLINE Pack<double> fma(Pack<double> a, Pack<double> b, Pack<double> c) {
  return fma_lanes<double>(a, b, c);
}
template <class Real>
GOSSAMER_INLINE Pack<Real> load(const Real* from, int count) {
  Pack<Real> pack{};
  std::memcpy(&pack, from, static_cast<std::size_t>(count) * sizeof(Real));
  return pack;
}
template <class Real>
GOSSAMER_INLINE void store(Real* to, Pack<Real> pack, int count) {
  std::memcpy(to, &pack, static_cast<std::size_t>(count) * sizeof(Real));
}
template <class Real>
GOSSAMER_INLINE void stream(Real* to, Pack<Real> pack) {
  store<Real>(to, pack);
}
GOSSAMER_INLINE void stream_fence() {}

#endif

/// Calls body(offset) for whole packs, then tail(offset, count) for the remainder.
template <class Real, class Body, class Tail>
GOSSAMER_INLINE void for_packs(std::size_t length, Body body, Tail tail) {
  constexpr std::size_t lanes = kLanes<Real>;
  std::size_t i = 0;
  for (; i + lanes <= length; i += lanes) body(i);
  if (i < length) tail(i, static_cast<int>(length - i));
}

/// values[i] ← f(values[i]). A remainder goes through a padded pack, so an element's bits never
/// depend on its place.
template <class Real, class Function>
GOSSAMER_INLINE void map(Real* values, std::size_t length, Function f) {
  for_packs<Real>(
      length, [&](std::size_t i) { store<Real>(values + i, f(load<Real>(values + i))); },
      [&](std::size_t i, int count) { store(values + i, f(load(values + i, count)), count); });
}

/// f(0), f(1), … f(N − 1) with constants as arguments: arrays that are indexed by nothing else stay
/// in registers.
template <int N, class Function>
GOSSAMER_INLINE void unrolled(Function f) {
  [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    (f(std::integral_constant<int, I>{}), ...);
  }(std::make_integer_sequence<int, N>{});
}
