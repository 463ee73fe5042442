// The inner loops: products against their definition, the same bits at every vector width and
// alignment, exponentials against the standard library.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/philox.hpp"
#include "base/rows.hpp"
#include "gpu/cpu/kernels.hpp"

using namespace gossamer;
using namespace gossamer::gpu;

namespace {

template <class Real>
std::vector<Real> normal(std::size_t count, std::uint64_t stream, double deviation = 1) {
  RandomStream random(5, kNoPeer, Purpose::test, stream);
  std::vector<Real> values(count);
  for (Real& value : values) value = static_cast<Real>(deviation * random.next_normal());
  return values;
}

template <class Real>
std::vector<const Kernels<Real>*> all_kernels() {
  std::vector<const Kernels<Real>*> all{&baseline_kernels<Real>()};
  if constexpr (std::is_same_v<Real, float>)
    if (has_wide_kernels()) all.push_back(&wide_kernels());
  return all;
}

struct Shape {
  int m, n, k;
  bool a_transposed, b_transposed;
};

/// Each element by its definition: a chain of fused multiply-adds in ascending k.
template <class Real>
std::vector<Real> product_by_hand(const Shape& s, const std::vector<Real>& a,
                                  const std::vector<Real>& b, std::vector<Real> c) {
  for (int i = 0; i < s.m; ++i)
    for (int j = 0; j < s.n; ++j)
      for (int l = 0; l < s.k; ++l)
        c[i * s.n + j] = std::fma(s.a_transposed ? a[l * s.m + i] : a[i * s.k + l],
                                  s.b_transposed ? b[j * s.k + l] : b[l * s.n + j], c[i * s.n + j]);
  return c;
}

template <class Real>
void check_product(const Shape& s) {
  const auto count = [](int rows, int columns) { return static_cast<std::size_t>(rows * columns); };
  const auto a = normal<Real>(count(s.m, s.k), 1), b = normal<Real>(count(s.k, s.n), 2);
  const auto bias = normal<Real>(static_cast<std::size_t>(s.n), 3),
             old = normal<Real>(count(s.m, s.n), 4);
  std::vector<Real> tiled_bias;
  for (int i = 0; i < s.m; ++i) tiled_bias.insert(tiled_bias.end(), bias.begin(), bias.end());
  std::vector<Real> scratch(packed_values(s.k));
  for (const Kernels<Real>* kernels : all_kernels<Real>()) {
    std::vector<Real> c = old;
    Product<Real> p{.m = s.m,
                    .n = s.n,
                    .k = s.k,
                    .a = a.data(),
                    .a_row = s.a_transposed ? 1 : s.k,
                    .a_column = s.a_transposed ? s.m : 1,
                    .b = b.data(),
                    .b_row = s.b_transposed ? s.k : s.n,
                    .b_transposed = s.b_transposed,
                    .scratch = scratch.data(),
                    .c = c.data(),
                    .c_row = s.n};
    kernels->product(p);
    CHECK(c == product_by_hand<Real>(s, a, b, std::vector<Real>(old.size())));
    p.bias = bias.data();
    kernels->product(p);
    CHECK(c == product_by_hand<Real>(s, a, b, tiled_bias));
    c = old;
    p.accumulate = true;
    kernels->product(p);
    CHECK(c == product_by_hand<Real>(s, a, b, old));
  }
}

}  // namespace

TEST_CASE_TEMPLATE("products: every remainder of rows and columns, both transpositions", Real,
                   float, double) {
  for (int m : {1, 2, 5, 12, 13, 15, 29})
    for (int n : {1, 3, 4, 7, 8, 9, 16, 17, 31, 33})
      for (int k : {1, 6})
        for (bool a_transposed : {false, true})
          for (bool b_transposed : {false, true}) {
            CAPTURE(m);
            CAPTURE(n);
            check_product<Real>({m, n, k, a_transposed, b_transposed});
          }
  check_product<Real>({40, 600, 70, false, false});  // packs its panels
  check_product<Real>({64, 40, 33, false, false});
}

TEST_CASE_TEMPLATE("element-wise loops: the same bits at any width and alignment", Real, float,
                   double) {
  const auto all = all_kernels<Real>();
  for (std::size_t length : {1, 3, 8, 15, 16, 17, 31, 33, 100, 1027}) {
    const auto a = normal<Real>(length, 1), b = normal<Real>(length, 2);
    std::vector<Real> shifted_a(length + 1), shifted_b(length + 1);
    std::copy(a.begin(), a.end(), shifted_a.begin() + 1);
    std::copy(b.begin(), b.end(), shifted_b.begin() + 1);
    const auto& base = *all.front();
    for (const auto* kernels : all) {
      for (Activation activation : {Activation::relu, Activation::tanh}) {
        std::vector<Real> whole = a, one_by_one = a, gradient = b, shifted_gradient = shifted_b;
        kernels->activate(activation, whole.data(), length);
        for (Real& value : one_by_one) base.activate(activation, &value, 1);
        CHECK(whole == one_by_one);
        kernels->activation_backward(activation, whole.data(), gradient.data(), length);
        base.activation_backward(activation, whole.data(), shifted_gradient.data() + 1, length);
        CHECK(std::equal(gradient.begin(), gradient.end(), shifted_gradient.begin() + 1));
      }
      std::vector<Real> whole = a, one_by_one = a;
      kernels->exponential(whole.data(), length);
      for (Real& value : one_by_one) base.exponential(&value, 1);
      CHECK(whole == one_by_one);
      using Kind = UpdateRule::Kind;
      for (const UpdateRule& rule : {UpdateRule{},
                                     {.momentum = 0.9, .nesterov = true, .weight_decay = 0.01},
                                     {.weight_decay = 0.01, .kind = Kind::adam},
                                     {.weight_decay = 0.01, .kind = Kind::adamw}}) {
        const auto u = update_constants<Real>(rule, 0.1, 5);
        std::vector<Real> x = a, v = b, w(length), other_x = a, other_v = b, other_w(length);
        for (std::size_t i = 0; i < length; ++i) w[i] = other_w[i] = a[i] * a[i];
        kernels->update(u, x.data(), {v.data(), w.data()}, b.data(), length);
        for (std::size_t i = 0; i < length; ++i)
          base.update(u, &other_x[i], {&other_v[i], &other_w[i]}, &b[i], 1);
        CHECK(x == other_x);
        CHECK(v == other_v);
        CHECK(w == other_w);
      }
    }
  }
}

TEST_CASE_TEMPLATE("e^x and tanh x are within a few units in the last place of libm's", Real, float,
                   double) {
  constexpr double unit = std::numeric_limits<Real>::epsilon();
  constexpr double limit = sizeof(Real) == 4 ? 86.5 : 707;
  for (const auto* kernels : all_kernels<Real>()) {
    double worst_exp = 0, worst_tanh = 0;
    for (int i = -20000; i <= 20000; ++i) {
      const Real x = static_cast<Real>(i * limit / 20000);
      Real e = x;
      kernels->exponential(&e, 1);
      worst_exp = std::max(worst_exp,
                           std::abs(static_cast<double>(e) / std::exp(static_cast<double>(x)) - 1));
      const Real small = static_cast<Real>(i * 5e-4 + 1e-9);
      Real t = small;
      kernels->activate(Activation::tanh, &t, 1);
      worst_tanh = std::max(
          worst_tanh, std::abs(static_cast<double>(t) / std::tanh(static_cast<double>(small)) - 1));
    }
    CHECK(worst_exp < 4 * unit);
    CHECK(worst_tanh < (sizeof(Real) == 4 ? 8 * unit : 1e-12));
    for (Real x : {std::numeric_limits<Real>::infinity(), Real(1e30)}) {
      Real t = x, minus = -x;
      kernels->activate(Activation::tanh, &t, 1);
      kernels->activate(Activation::tanh, &minus, 1);
      CHECK(t == 1);
      CHECK(minus == -1);
    }
    Real nan = std::numeric_limits<Real>::quiet_NaN(), relu = nan, tanh = nan, exp = nan;
    kernels->activate(Activation::relu, &relu, 1);
    kernels->activate(Activation::tanh, &tanh, 1);
    kernels->exponential(&exp, 1);
    CHECK(std::isnan(relu));
    CHECK(std::isnan(tanh));
    CHECK(std::isnan(exp));
  }
}
