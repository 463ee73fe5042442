// Matrix product for the shapes of small models: C in registers, B packed only if that pays. Each
// element of C is one chain of fused multiply-adds over ascending k, so tiles, vector width
// and a cut of k cannot change its bits.

/// Rows of C held in registers beside V packs of columns; registers are left for B's packs and one
/// value of A.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
template <int V>
inline constexpr int kTileRows =
    3;  // same bits; the instrumented code of the large tiles takes minutes to compile
#else
template <int V>
inline constexpr int kTileRows = (kPackBytes == 64 ? (V == 1 ? 14 : 12) : (V == 1 ? 12 : 6));
#endif

/// Rows of B asked for ahead of use: about 200 cycles, a third-level cache's latency.
inline constexpr int kPrefetchRows = 16;

/// V packs of one row; kPartial: of the last one only `tail` values exist.
template <class Real, int V, bool kPartial>
GOSSAMER_INLINE void load_row(const Real* from, int tail, Pack<Real> (&row)[V]) {
  unrolled<V - 1>(
      [&](auto v) __attribute__((always_inline)) { row[v] = load<Real>(from + v * kLanes<Real>); });
  constexpr int last = V - 1;
  if constexpr (kPartial) row[last] = load(from + last * kLanes<Real>, tail);
  else row[last] = load<Real>(from + last * kLanes<Real>);
}

template <class Real, int V, bool kPartial>
GOSSAMER_INLINE void store_row(Real* to, int tail, const Pack<Real> (&row)[V]) {
  unrolled<V - 1>(
      [&](auto v) __attribute__((always_inline)) { store<Real>(to + v * kLanes<Real>, row[v]); });
  constexpr int last = V - 1;
  if constexpr (kPartial) store(to + last * kLanes<Real>, row[last], tail);
  else store<Real>(to + last * kLanes<Real>, row[last]);
}

/// C[0 … M, 0 … V packs] for one tile.
template <class Real, int M, int V, bool kTransposed, bool kPartial>
void tile(const Product<Real>& p, const Real* a_start, const Real* b, std::ptrdiff_t b_row, Real* c,
          const Real* bias, int tail) {
  Pack<Real> sum[M][V] = {};
  if (p.accumulate)
    unrolled<M>([&](auto i) __attribute__((always_inline)) {
      load_row<Real, V, kPartial>(c + i * p.c_row, tail, sum[i]);
    });
  else if (bias != nullptr)
    unrolled<M>([&](auto i) __attribute__((always_inline)) {
      load_row<Real, V, kPartial>(bias, tail, sum[i]);
    });
  const std::ptrdiff_t a_row = kTransposed ? 1 : p.a_row, a_column = kTransposed ? p.a_column : 1;
  for (int s = 0; s < p.segments; ++s) {
    const Real* a = a_start + s * p.a_segment;
    for (int k = 0; k < p.k; ++k, a += a_column, b += b_row) {
      Pack<Real> columns[V];
      load_row<Real, V, kPartial>(b, tail, columns);
      if constexpr (!kTransposed)  // B are weights, perhaps far away, and their row pitch hides
                                   // them from the hardware
        unrolled<V>([&](auto v) __attribute__((always_inline)) {
          __builtin_prefetch(b + kPrefetchRows * b_row + v * kLanes<Real>);
        });
      unrolled<M>([&](auto i) __attribute__((always_inline)) {
        const Pack<Real> value = spread<Real>(a[i * a_row]);
        unrolled<V>([&](auto v) __attribute__((always_inline)) {
          sum[i][v] = fma(value, columns[v], sum[i][v]);
        });
      });
    }
  }
  unrolled<M>([&](auto i) __attribute__((always_inline)) {
    store_row<Real, V, kPartial>(c + i * p.c_row, tail, sum[i]);
  });
}

template <class Real>
using Tile = void (*)(const Product<Real>&, const Real*, const Real*, std::ptrdiff_t, Real*,
                      const Real*, int);

/// The tile function of `rows` rows.
template <class Real, int V, bool kTransposed, bool kPartial, int... M>
Tile<Real> tile_of(int rows, std::integer_sequence<int, M...>) {
  static constexpr Tile<Real> table[] = {&tile<Real, M + 1, V, kTransposed, kPartial>...};
  return table[rows - 1];
}

/// Whether B's panels are worth packing although they could be read in place: several tiles read
/// each, and rows so long that a panel's lines crowd into few sets of the caches.
template <class Real, int V>
bool worth_packing(const Product<Real>& p) {
  constexpr std::ptrdiff_t long_row_bytes = 2048;
  const std::ptrdiff_t row_bytes = p.b_row * static_cast<std::ptrdiff_t>(sizeof(Real));
  return p.scratch != nullptr && p.m > 2 * kTileRows<V> && row_bytes >= long_row_bytes;
}

/// The panel of `columns` columns from j on, to the scratch: [segments · k, width], what is beyond
/// `columns` undefined.
template <class Real>
void pack_panel(const Product<Real>& p, int j, int columns, int width) {
  const int rows = p.segments * p.k;
  // The next lines are asked for ahead: with a long row pitch the hardware does not foresee them.
  if (p.b_transposed) {
    for (int column = 0; column < columns; ++column) {
      const Real* from = p.b + (j + column) * p.b_row;
      __builtin_prefetch(from + p.b_row);
      for (int l = 0; l < rows; ++l) p.scratch[l * width + column] = from[l];
    }
  } else {
    for (int l = 0; l < rows; ++l) {
      const Real* from = p.b + l * p.b_row + j;
      __builtin_prefetch(from + kPrefetchRows * p.b_row);
      std::memcpy(p.scratch + l * width, from, static_cast<std::size_t>(columns) * sizeof(Real));
    }
  }
}

/// All rows of V packs of columns, from column j on; rows are shared out evenly among as few tiles
/// as hold them.
template <class Real, int V, bool kTransposed, bool kPartial>
void column_panel(const Product<Real>& p, int j, int tail) {
  constexpr int most = kTileRows<V>, width = V * kLanes<Real>;
  using Rows = std::make_integer_sequence<int, most>;
  const Real* b = p.b + j;
  std::ptrdiff_t b_row = p.b_row;
  if (p.b_transposed || worth_packing<Real, V>(p)) {
    pack_panel(p, j, kPartial ? width - kLanes<Real> + tail : width, width);
    b = p.scratch, b_row = width;
  }
  const int tiles = (p.m + most - 1) / most, each = p.m / tiles, larger = p.m % tiles;
  const Tile<Real> small =
      each == 0 ? nullptr : tile_of<Real, V, kTransposed, kPartial>(each, Rows{});
  const Tile<Real> large =
      larger == 0 ? small : tile_of<Real, V, kTransposed, kPartial>(each + 1, Rows{});
  const Real* bias = p.bias == nullptr ? nullptr : p.bias + j;
  for (int t = 0, i = 0; t < tiles; ++t) {
    const bool is_large = t < larger;
    (is_large ? large : small)(p, p.a + i * p.a_row, b, b_row, p.c + i * p.c_row + j, bias, tail);
    i += each + (is_large ? 1 : 0);
  }
}

template <class Real, bool kTransposed>
void product_of(const Product<Real>& p) {
  constexpr int lanes = kLanes<Real>;
  int j = 0;
  for (; j + 2 * lanes <= p.n; j += 2 * lanes) column_panel<Real, 2, kTransposed, false>(p, j, 0);
  const int left = p.n - j;
  if (left > lanes) column_panel<Real, 2, kTransposed, true>(p, j, left - lanes);
  else if (left == lanes) column_panel<Real, 1, kTransposed, false>(p, j, 0);
  else if (left > 0) column_panel<Real, 1, kTransposed, true>(p, j, left);
}

template <class Real>
void product(const Product<Real>& p) {
  if (p.m <= 0 || p.n <= 0) return;
  if (p.a_row == 1 && p.a_column != 1) product_of<Real, true>(p);
  else product_of<Real, false>(p);
}
