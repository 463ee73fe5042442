// Element-wise loops, mixing, optimizer steps, exponentials, and column sums.

/// own · x + Σ_j w_j (row_j − x): products and sums rounded one by one, in the order of the
/// sources.
template <class Real>
void mix_tail(const BasicMixRequest<Real>& r, std::size_t i, std::size_t end) {
  for (; i < end; ++i) {
    const Real x = r.x[i];
    Real sum = r.own * x;
    for (const auto& source : r.sources) sum += source.weight * (source.row[i] - x);
    r.out[i] = sum;
  }
}

/// Packs held at once: enough loads are in flight, and each source's pointer is fetched once for
/// all packs.
inline constexpr int kMixPacks = 4;

template <class Real, bool kStreaming>
void mix_packs(const BasicMixRequest<Real>& r, std::size_t ahead) {
  constexpr std::size_t lanes = kLanes<Real>, step = kMixPacks * lanes;
  const Pack<Real> own = spread<Real>(r.own);
  std::size_t i = 0;
  if constexpr (kStreaming) {  // streaming stores must be aligned, whatever the inputs are
    const std::size_t misaligned =
        reinterpret_cast<std::uintptr_t>(r.out) % kPackBytes / sizeof(Real);
    i = std::min(r.length, (lanes - misaligned) % lanes);
    mix_tail(r, 0, i);
  }
  for (; i + step <= r.length; i += step) {
    Pack<Real> x[kMixPacks], sum[kMixPacks];
    if (ahead > 0)
      unrolled<kMixPacks>([&](auto v) __attribute__((always_inline)) {
        __builtin_prefetch(r.x + i + ahead + v * lanes);
      });
    unrolled<kMixPacks>([&](auto v) __attribute__((always_inline)) {
      x[v] = load<Real>(r.x + i + v * lanes);
      sum[v] = own * x[v];
    });
    for (const auto& source : r.sources) {
      const Pack<Real> weight = spread<Real>(source.weight);
      const Real* row = source.row + i;
      unrolled<kMixPacks>([&](auto v) __attribute__((always_inline)) {
        sum[v] += weight * (load<Real>(row + v * lanes) - x[v]);
      });
    }
    unrolled<kMixPacks>([&](auto v) __attribute__((always_inline)) {
      if constexpr (kStreaming) stream(r.out + i + v * lanes, sum[v]);
      else store<Real>(r.out + i + v * lanes, sum[v]);
    });
  }
  mix_tail(r, i, r.length);
  if constexpr (kStreaming) stream_fence();
}

/// `ahead` > 0: prefetches x this many values ahead.
template <class Real>
void mix(const BasicMixRequest<Real>& r, bool streaming, std::size_t ahead) {
  const bool on_grid = reinterpret_cast<std::uintptr_t>(r.out) % sizeof(Real) == 0;
  if (streaming && on_grid) mix_packs<Real, true>(r, ahead);
  else mix_packs<Real, false>(r, ahead);
}

template <class Real>
void axpy(Real factor, const Real* x, Real* y, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i) y[i] += factor * x[i];
}

template <class Real>
void add_difference(Real factor, Real* out, const Real* a, const Real* b, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i) out[i] += factor * (a[i] - b[i]);
}

/// In packs: a loop that the compiler vectorises checks that no output is an input, and is slow
/// where one is.
template <class Real>
void add_difference_and_copy(Real factor, Real* out, const Real* a, const Real* b, Real* copy,
                             std::size_t length) {
  const Pack<Real> factors = spread<Real>(factor);
  for_packs<Real>(
      length,
      [&](std::size_t i) {
        const Pack<Real> sum =
            load<Real>(out + i) + factors * (load<Real>(a + i) - load<Real>(b + i));
        store<Real>(out + i, sum);
        store<Real>(copy + i, sum);
      },
      [&](std::size_t i, int count) {
        const Pack<Real> sum =
            load(out + i, count) + factors * (load(a + i, count) - load(b + i, count));
        store(out + i, sum, count);
        store(copy + i, sum, count);
      });
}

template <class Real>
void scale(Real factor, Real* y, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i) y[i] *= factor;
}

template <class Real>
void divide(const Real* x, Real divisor, Real* out, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i) out[i] = x[i] / divisor;
}

/// g ← ∇f + d x;  v ← m v + g;  x ← x − γ (nesterov ? g + m v : v), in one pass over memory.
template <class Real, bool kMomentum, bool kNesterov, bool kDecay>
void sgd_loop(const UpdateConstants<Real>& u, Real* __restrict x, Real* __restrict v,
              const Real* __restrict gradient, std::size_t length) {
  const Real rate = u.rate, momentum = u.momentum, decay = u.weight_decay;
  for (std::size_t i = 0; i < length; ++i) {
    Real g = gradient[i];
    if constexpr (kDecay) g += decay * x[i];
    if constexpr (kMomentum) {
      v[i] = momentum * v[i] + g;
      g = kNesterov ? g + momentum * v[i] : v[i];
    }
    x[i] -= rate * g;
  }
}

/// Adam, and AdamW if the decay is decoupled; c1 and c2 are the corrections of the step:
///   g ← ∇f + (adam: d x);  m ← β1 m + (1 − β1) g;  v ← β2 v + (1 − β2) g²
///   x ← x − γ (c1 m / (sqrt(c2 v) + ε) + (adamw: d x))
template <class Real, bool kDecoupled, bool kDecay>
void adam_loop(const UpdateConstants<Real>& u, Real* __restrict x, Real* __restrict m,
               Real* __restrict v, const Real* __restrict gradient, std::size_t length) {
  const UpdateConstants<Real> c = u;  // a copy: no store can change it
  for (std::size_t i = 0; i < length; ++i) {
    const Real g = kDecoupled || !kDecay ? gradient[i] : gradient[i] + c.weight_decay * x[i];
    m[i] = c.beta1 * m[i] + c.rest1 * g;
    v[i] = c.beta2 * v[i] + c.rest2 * (g * g);
    Real direction = c.correction1 * m[i] / (std::sqrt(c.correction2 * v[i]) + c.epsilon);
    if constexpr (kDecoupled) direction += c.weight_decay * x[i];
    x[i] -= c.rate * direction;
  }
}

template <class Real>
void update(const UpdateConstants<Real>& u, Real* x, const StateRows<Real>& state, const Real* g,
            std::size_t length) {
  if (u.kind == UpdateRule::Kind::adam)
    return u.weight_decay != 0 ? adam_loop<Real, false, true>(u, x, state[0], state[1], g, length)
                               : adam_loop<Real, false, false>(u, x, state[0], state[1], g, length);
  if (u.kind == UpdateRule::Kind::adamw)
    return adam_loop<Real, true, true>(u, x, state[0], state[1], g, length);
  Real* v = state[0];
  const bool decay = u.weight_decay != 0;
  if (u.momentum == 0)
    return decay ? sgd_loop<Real, false, false, true>(u, x, v, g, length)
                 : sgd_loop<Real, false, false, false>(u, x, v, g, length);
  if (u.nesterov)
    return decay ? sgd_loop<Real, true, true, true>(u, x, v, g, length)
                 : sgd_loop<Real, true, true, false>(u, x, v, g, length);
  return decay ? sgd_loop<Real, true, false, true>(u, x, v, g, length)
               : sgd_loop<Real, true, false, false>(u, x, v, g, length);
}

/// e^x = 2^n e^r with n = round(x / ln 2) and |r| ≤ ln 2 / 2, e^r by its Taylor sum (relative error
/// below 1e-8 with 8 terms, 1e-17 with 14). x is clamped to ±87 (float) or ±708 (double), where 2^n
/// is still a normal number.
template <class Real>
GOSSAMER_INLINE Pack<Real> exp_pack(Pack<Real> x) {
  constexpr bool single = sizeof(Real) == 4;
  using Integer = std::conditional_t<single, std::int32_t, std::int64_t>;
  constexpr int terms = single ? 8 : 14, mantissa = single ? 23 : 52, bias = single ? 127 : 1023;
  constexpr double inverse_factorial[] = {1.0,
                                          1.0,
                                          1.0 / 2,
                                          1.0 / 6,
                                          1.0 / 24,
                                          1.0 / 120,
                                          1.0 / 720,
                                          1.0 / 5040,
                                          1.0 / 40320,
                                          1.0 / 362880,
                                          1.0 / 3628800,
                                          1.0 / 39916800,
                                          1.0 / 479001600,
                                          1.0 / 6227020800};
  constexpr Real limit = single ? 87 : 708;
  constexpr Real ln2_high =
      single ? 0.693359375 : 0.693145751953125;  // few bits, so n · ln2_high is exact
  constexpr Real ln2_low = single ? -2.12194440054690583e-4 : 1.42860682030941723212e-6;
  constexpr Real magic =
      single ? Real(12582912.0) : Real(6755399441055744.0);  // 1.5 · 2^mantissa: adding it rounds
  const Pack<Real> low = spread<Real>(-limit), high = spread<Real>(limit);
  const Pack<Real> kept_nan = x;
  x = x < low ? low : x;
  x = x > high ? high : x;
  const Pack<Real> shifted =
      fma(x, spread<Real>(Real(1.44269504088896340736)), spread<Real>(magic));
  const Pack<Real> n = shifted - magic;
  Pack<Real> r = fma(-n, spread<Real>(ln2_high), x);
  r = fma(-n, spread<Real>(ln2_low), r);
  Pack<Real> sum = spread<Real>(static_cast<Real>(inverse_factorial[terms - 1]));
  for (int i = terms - 2; i >= 0; --i)
    sum = fma(sum, r, spread<Real>(static_cast<Real>(inverse_factorial[i])));
  typedef Integer Integers __attribute__((vector_size(kPackBytes)));
  Integers bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  Integer magic_bits;
  std::memcpy(&magic_bits, &magic, sizeof magic);
  bits = (bits - magic_bits + bias) << mantissa;
  Pack<Real> scale;
  std::memcpy(&scale, &bits, sizeof scale);
  sum = sum * scale;
  return kept_nan != kept_nan ? kept_nan : sum;
}

template <class Real>
void exponential(Real* values, std::size_t length) {
  map(values, length, [](Pack<Real> x) { return exp_pack<Real>(x); });
}

/// tanh x = sign x (1 − e) / (1 + e) with e = e^{−2|x|}; near 0, where that cancels, the odd Taylor
/// sum up to x^15 (|x| < 1/4: relative error below 1e-12).
template <class Real>
GOSSAMER_INLINE Pack<Real> tanh_pack(Pack<Real> x) {
  constexpr double taylor[] = {
      1.0,         -1.0 / 3,         2.0 / 15,          -17.0 / 315,
      62.0 / 2835, -1382.0 / 155925, 21844.0 / 6081075, -929569.0 / 638512875};
  const Pack<Real> zero{}, size = x < zero ? -x : x;
  const Pack<Real> e = exp_pack<Real>(Real(-2) * size);
  const Pack<Real> far = (Real(1) - e) / (Real(1) + e);
  const Pack<Real> square = x * x;
  Pack<Real> sum = spread<Real>(static_cast<Real>(taylor[7]));
  for (int i = 6; i >= 0; --i) sum = fma(sum, square, spread<Real>(static_cast<Real>(taylor[i])));
  return size < spread<Real>(Real(0.25)) ? sum * x : (x < zero ? -far : far);
}

template <class Real>
void activate(Activation activation, Real* values, std::size_t length) {
  const Pack<Real> zero{};
  if (activation == Activation::relu)
    map(values, length, [=](Pack<Real> x) { return x < zero ? zero : x; });  // NaN stays NaN
  if (activation == Activation::tanh)
    map(values, length, [](Pack<Real> x) { return tanh_pack<Real>(x); });
}

template <class Real>
void activation_backward(Activation activation, const Real* outputs, Real* gradient,
                         std::size_t length) {
  if (activation == Activation::relu)
    for (std::size_t i = 0; i < length; ++i) gradient[i] = outputs[i] > 0 ? gradient[i] : Real(0);
  if (activation == Activation::tanh)
    for (std::size_t i = 0; i < length; ++i) gradient[i] *= Real(1) - outputs[i] * outputs[i];
}

/// tanh(u) with u = √(2/π) (x + 0.044715 x³), of gelu x = ½ x (1 + tanh u).
template <class Real>
GOSSAMER_INLINE Pack<Real> gelu_tanh(Pack<Real> x) {
  const Pack<Real> cube = Real(0.044715) * (x * x * x);
  return tanh_pack<Real>(Real(0.79788456080286535588) * (x + cube));
}

template <class Real>
void gelu(const Real* x, Real* y, std::size_t length) {
  const auto value = [](Pack<Real> at) __attribute__((always_inline)) {
    return Real(0.5) * at * (Real(1) + gelu_tanh<Real>(at));
  };
  for_packs<Real>(
      length, [&](std::size_t i) { store<Real>(y + i, value(load<Real>(x + i))); },
      [&](std::size_t i, int count) { store(y + i, value(load(x + i, count)), count); });
}

/// gelu′ x = ½ (1 + t) + ½ x (1 − t²) u′ with t = tanh u, u′ = √(2/π) (1 + 0.134145 x²).
template <class Real>
void gelu_backward(const Real* x, const Real* dy, Real* dx, std::size_t length) {
  const auto value = [](Pack<Real> at, Pack<Real> gradient) __attribute__((always_inline)) {
    // Beyond ±20 the slope is 0 or 1, and the square of a huge value would be infinite.
    const Pack<Real> low = spread<Real>(-20), high = spread<Real>(20);
    at = at < low ? low : at;
    at = at > high ? high : at;
    const Pack<Real> t = gelu_tanh<Real>(at);
    const Pack<Real> slope = Real(0.79788456080286535588) * (Real(1) + Real(0.134145) * (at * at));
    return gradient * (Real(0.5) * (Real(1) + t) + Real(0.5) * at * ((Real(1) - t * t) * slope));
  };
  for_packs<Real>(
      length,
      [&](std::size_t i) { store<Real>(dx + i, value(load<Real>(x + i), load<Real>(dy + i))); },
      [&](std::size_t i, int count) {
        store(dx + i, value(load(x + i, count), load(dy + i, count)), count);
      });
}

template <class Real>
void column_sums(const Real* values, int rows, int columns, Real* sums) {
  for_packs<Real>(
      static_cast<std::size_t>(columns),
      [&](std::size_t j) {
        Pack<Real> sum = load<Real>(sums + j);
        for (int i = 0; i < rows; ++i)
          sum += load<Real>(values + static_cast<std::ptrdiff_t>(i) * columns + j);
        store<Real>(sums + j, sum);
      },
      [&](std::size_t j, int count) {
        Pack<Real> sum = load(sums + j, count);
        for (int i = 0; i < rows; ++i)
          sum += load(values + static_cast<std::ptrdiff_t>(i) * columns + j, count);
        store(sums + j, sum, count);
      });
}
