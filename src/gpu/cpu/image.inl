// Loops over channels-last images: [pixels, channels], vectorised over the channels.

/// sums[c] += Σ_p (x[p, c] − x_centre[c]) (y[p, c] − y_centre[c]).
template <class Real>
void channel_products(const Real* x, const Real* x_centre, const Real* y, const Real* y_centre,
                      int pixels, int channels, Real* sums) {
  for_packs<Real>(
      static_cast<std::size_t>(channels),
      [&](std::size_t c) {
        const Pack<Real> xc = load<Real>(x_centre + c), yc = load<Real>(y_centre + c);
        Pack<Real> sum = load<Real>(sums + c);
        for (std::ptrdiff_t p = 0, i = static_cast<std::ptrdiff_t>(c); p < pixels;
             ++p, i += channels)
          sum = fma(load<Real>(x + i) - xc, load<Real>(y + i) - yc, sum);
        store<Real>(sums + c, sum);
      },
      [&](std::size_t c, int count) {
        const Pack<Real> xc = load(x_centre + c, count), yc = load(y_centre + c, count);
        Pack<Real> sum = load(sums + c, count);
        for (std::ptrdiff_t p = 0, i = static_cast<std::ptrdiff_t>(c); p < pixels;
             ++p, i += channels)
          sum = fma(load(x + i, count) - xc, load(y + i, count) - yc, sum);
        store(sums + c, sum, count);
      });
}

/// out[p, c] = x[p, c] · x_factor[c] + term[c].
template <class Real>
void channel_affine(const Real* x, const Real* x_factor, const Real* term, Real* out, int pixels,
                    int channels) {
  for_packs<Real>(
      static_cast<std::size_t>(channels),
      [&](std::size_t c) {
        const Pack<Real> xf = load<Real>(x_factor + c), t = load<Real>(term + c);
        for (std::ptrdiff_t p = 0, i = static_cast<std::ptrdiff_t>(c); p < pixels;
             ++p, i += channels)
          store<Real>(out + i, fma(load<Real>(x + i), xf, t));
      },
      [&](std::size_t c, int count) {
        const Pack<Real> xf = load(x_factor + c, count), t = load(term + c, count);
        for (std::ptrdiff_t p = 0, i = static_cast<std::ptrdiff_t>(c); p < pixels;
             ++p, i += channels)
          store(out + i, fma(load(x + i, count), xf, t), count);
      });
}

/// out[p, c] = x[p, c] · x_factor[c] + (y[p, c] · y_factor[c] + term[c]).
template <class Real>
void channel_affine2(const Real* x, const Real* x_factor, const Real* y, const Real* y_factor,
                     const Real* term, Real* out, int pixels, int channels) {
  for_packs<Real>(
      static_cast<std::size_t>(channels),
      [&](std::size_t c) {
        const Pack<Real> xf = load<Real>(x_factor + c), yf = load<Real>(y_factor + c),
                         t = load<Real>(term + c);
        for (std::ptrdiff_t p = 0, i = static_cast<std::ptrdiff_t>(c); p < pixels;
             ++p, i += channels)
          store<Real>(out + i, fma(load<Real>(x + i), xf, fma(load<Real>(y + i), yf, t)));
      },
      [&](std::size_t c, int count) {
        const Pack<Real> xf = load(x_factor + c, count), yf = load(y_factor + c, count),
                         t = load(term + c, count);
        for (std::ptrdiff_t p = 0, i = static_cast<std::ptrdiff_t>(c); p < pixels;
             ++p, i += channels)
          store(out + i, fma(load(x + i, count), xf, fma(load(y + i, count), yf, t)), count);
      });
}

/// One sample. A NaN in a window is its maximum.
template <class Real>
void max_pool(const MaxPoolOperation& pool, const Real* in, Real* out) {
  const int channels = pool.channels, out_height = pool.height / pool.size,
            out_width = pool.width / pool.size;
  const std::ptrdiff_t line = static_cast<std::ptrdiff_t>(pool.width) * channels;
  for (int h = 0; h < out_height; ++h)
    for (int w = 0; w < out_width; ++w, out += channels) {
      const Real* corner =
          in + h * pool.size * line + static_cast<std::ptrdiff_t>(w) * pool.size * channels;
      const auto greatest = [&](auto load_at) {
        auto best = load_at(corner);
        for (int i = 0; i < pool.size; ++i)
          for (int j = 0; j < pool.size; ++j) {
            const auto x = load_at(corner + i * line + j * channels);
            best = ((x > best) | (x != x)) ? x : best;
          }
        return best;
      };
      for_packs<Real>(
          static_cast<std::size_t>(channels),
          [&](std::size_t c) {
            store<Real>(out + c, greatest([c](const Real* at) { return load<Real>(at + c); }));
          },
          [&](std::size_t c, int count) {
            store(out + c, greatest([c, count](const Real* at) { return load(at + c, count); }),
                  count);
          });
    }
}

/// One sample: din is dout at the window's first maximum and 0 elsewhere. The caller has set din to
/// 0.
template <class Real>
void max_pool_backward(const MaxPoolOperation& pool, const Real* in, const Real* out,
                       const Real* dout, Real* din) {
  const int channels = pool.channels, out_height = pool.height / pool.size,
            out_width = pool.width / pool.size;
  const std::ptrdiff_t line = static_cast<std::ptrdiff_t>(pool.width) * channels;
  for (int h = 0; h < out_height; ++h)
    for (int w = 0; w < out_width; ++w, out += channels, dout += channels) {
      const std::ptrdiff_t corner =
          h * pool.size * line + static_cast<std::ptrdiff_t>(w) * pool.size * channels;
      const auto route = [&](auto load_at, auto store_at) {
        const Pack<Real> greatest = load_at(out), zero{};
        Pack<Real> left = load_at(dout);
        for (int i = 0; i < pool.size; ++i)
          for (int j = 0; j < pool.size; ++j) {
            const std::ptrdiff_t at = corner + i * line + j * channels;
            const auto here = load_at(in + at) == greatest;
            store_at(din + at, here ? left : zero);
            left = here ? zero : left;
          }
      };
      for_packs<Real>(
          static_cast<std::size_t>(channels),
          [&](std::size_t c) {
            route([c](const Real* at) { return load<Real>(at + c); },
                  [c](Real* at, Pack<Real> v) { store<Real>(at + c, v); });
          },
          [&](std::size_t c, int count) {
            route([c, count](const Real* at) { return load(at + c, count); },
                  [c, count](Real* at, Pack<Real> v) { store(at + c, v, count); });
          });
    }
}
