// Matrix product for the shapes of small models: no packing, no blocking beyond L2, C in registers. Each element of C is one
// chain of fused multiply-adds over ascending k, so tiles, vector width and a cut of k cannot change a bit of it.

/// Rows of C held in registers beside V packs of columns, with room left for B's packs and one value of A.
template <int V>
inline constexpr int kTileRows = (kPackBytes == 64 ? 24 : 12) / V < 12 ? (kPackBytes == 64 ? 24 : 12) / V : 12;

/// C[0 … M, 0 … V packs] for one tile. `tail` > 0: of the last pack only so many columns exist.
template <class Real, int M, int V, bool kTransposed, bool kPartial>
void tile(const Product<Real>& p, const Real* a_start, const Real* b_start, Real* c, const Real* bias, int tail) {
  const auto load_pack = [tail](const Real* from, int v) {
    if constexpr (kPartial)
      if (v == V - 1) return load(from + v * kLanes<Real>, tail);
    return load<Real>(from + v * kLanes<Real>);
  };
  Pack<Real> sum[M][V];
  for (int i = 0; i < M; ++i)
    for (int v = 0; v < V; ++v) {
      if (p.accumulate) sum[i][v] = load_pack(c + i * p.c_row, v);
      else if (bias != nullptr) sum[i][v] = load_pack(bias, v);
      else sum[i][v] = Pack<Real>{};
    }
  const Real* b = b_start;
  const std::ptrdiff_t b_row = p.b_row, a_row = kTransposed ? 1 : p.a_row, a_column = kTransposed ? p.a_column : 1;
  for (int s = 0; s < p.segments; ++s) {
    const Real* a = a_start + s * p.a_segment;
    for (int k = 0; k < p.k; ++k, a += a_column, b += b_row) {
      Pack<Real> columns[V];
      for (int v = 0; v < V; ++v) columns[v] = load_pack(b, v);
      for (int i = 0; i < M; ++i) {
        const Pack<Real> value = spread<Real>(a[i * a_row]);
        for (int v = 0; v < V; ++v) sum[i][v] = fma(value, columns[v], sum[i][v]);
      }
    }
  }
  for (int i = 0; i < M; ++i)
    for (int v = 0; v < V; ++v) {
      Real* to = c + i * p.c_row + v * kLanes<Real>;
      if (kPartial && v == V - 1) store(to, sum[i][v], tail);
      else store<Real>(to, sum[i][v]);
    }
}

template <class Real>
using Tile = void (*)(const Product<Real>&, const Real*, const Real*, Real*, const Real*, int);

/// The tile function of `rows` rows.
template <class Real, int V, bool kTransposed, bool kPartial, int... M>
Tile<Real> tile_of(int rows, std::integer_sequence<int, M...>) {
  static constexpr Tile<Real> table[] = {&tile<Real, M + 1, V, kTransposed, kPartial>...};
  return table[rows - 1];
}

/// All rows of V packs of columns, from column j on; rows are shared out evenly among as few tiles as hold them.
template <class Real, int V, bool kTransposed, bool kPartial>
void column_panel(const Product<Real>& p, int j, int tail) {
  constexpr int most = kTileRows<V>;
  using Rows = std::make_integer_sequence<int, most>;
  const int tiles = (p.m + most - 1) / most, each = p.m / tiles, larger = p.m % tiles;
  const Tile<Real> small = each == 0 ? nullptr : tile_of<Real, V, kTransposed, kPartial>(each, Rows{});
  const Tile<Real> large = larger == 0 ? small : tile_of<Real, V, kTransposed, kPartial>(each + 1, Rows{});
  for (int t = 0, i = 0; t < tiles; ++t) {
    const bool is_large = t < larger;
    const Real* bias = p.bias == nullptr ? nullptr : p.bias + j;
    (is_large ? large : small)(p, p.a + i * p.a_row, p.b + j, p.c + i * p.c_row + j, bias, tail);
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
