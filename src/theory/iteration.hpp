// The algorithms as the linear iterations that they are where every f_i is quadratic and gradients
// are full: rounds on errors e = x − x*, where ∇f_i(x) = A_i e + h_i. Each is the iteration of its
// paper, in the notation of gossip/algorithms. Conserved sums, which are eigenvalues 1 without any
// effect on the models, are held at their value, 0.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "theory/spaces.hpp"

namespace gossamer::theory {

enum class Method {
  dpsgd_atc,         ///< Lian et al. 2017 in the order of Sayed 2014: steps, then the average
  dpsgd_awc,         ///< Lian et al. 2017, Alg. 1: steps while the average is taken
  tracking_atc,      ///< Di Lorenzo and Scutari 2016 (NEXT)
  tracking_awc,      ///< Nedić, Olshevsky and Shi 2017 (DIGing)
  push_pull,         ///< Pu, Shi, Xu and Nedić 2021; Xin and Khan 2018 (AB)
  d2,                ///< Tang et al. 2018; Yuan et al. 2019
  extra,             ///< Shi et al. 2015
  qg_momentum,       ///< Lin et al. 2021
  dmsgd,             ///< Yu, Jin and Yang 2019, decentralized; DmSGD of Ying et al. 2021
  decentlam,         ///< Yuan et al. 2021
  push_sum,          ///< Assran et al. 2019 (SGP); Kempe, Dobra and Gehrke 2003
  gradient_descent,  ///< every form of the mean of all gradients, from equal starts
};

struct Recipe {
  Method method = Method::dpsgd_atc;
  int local_steps = 1;        ///< H; other than 1 for D-PSGD and push-sum only
  double own_momentum = 0;    ///< the algorithm's own: μ of qg_momentum, β of dmsgd and decentlam
  bool own_nesterov = false;  ///< of qg_momentum
  double momentum = 0;        ///< the local optimizer's, as are the next two (train/optimizer.hpp)
  bool nesterov = false;
  double weight_decay = 0;
  std::function<double(std::uint64_t step)> rate;  ///< γ of local step 0, 1, …
  std::optional<double> settled_rate;  ///< γ in the long run; none where it goes on changing

  bool has_memory() const {
    return method != Method::dpsgd_atc && method != Method::dpsgd_awc &&
           method != Method::push_sum && method != Method::gradient_descent;
  }
  /// Vectors that a round leaves to the next.
  int rows() const { return 1 + (has_memory() ? 1 : 0) + (momentum > 0 ? 1 : 0); }
};

/// Rounds of a recipe on a space. Immutable; space and recipe outlive it.
template <class Space>
class Iteration {
 public:
  using Vector = typename Space::Vector;

  /// memory: tracker less last gradient, correction, or the algorithm's own momentum. It and the
  /// next are empty where there are none. Of push-sum, x are the sums, less x* as often as they
  /// weigh.
  struct State {
    Vector x, memory, momentum;
    typename Space::Weights weights;
  };

  /// What does not depend on the state; null: nothing, which leaves the linear part of the
  /// iteration alone.
  struct Input {
    const Vector* gradient = nullptr;  ///< added to each gradient: h, or a probe
    const Vector* decay = nullptr;     ///< added to each update's gradient: weight_decay · x*
    int only_step = -1;  ///< the local step of the round in which `gradient` is added; −1: all
  };

  Iteration(const Space& space, const Recipe& recipe) : space_(space), recipe_(recipe) {}

  State from(Vector x) const {
    State state;
    if (recipe_.has_memory()) state.memory = 0 * x;
    if (recipe_.momentum > 0) state.momentum = 0 * x;
    state.x = std::move(x);
    state.weights = space_.equal_weights();
    return state;
  }

  /// The peers' models, less x*.
  Vector models(const State& state) const {
    return recipe_.method == Method::push_sum ? Vector(space_.divided(state.x, state.weights))
                                              : state.x;
  }

  void round(State& state, Round t, const Input& input) const {
    Step step{*this, state, t, input};
    switch (recipe_.method) {
      case Method::dpsgd_atc: return step.dpsgd_atc();
      case Method::dpsgd_awc: return step.dpsgd_awc();
      case Method::tracking_atc: return step.tracking_atc();
      case Method::tracking_awc: return step.tracking_awc();
      case Method::push_pull: return step.push_pull();
      case Method::d2: return step.d2();
      case Method::extra: return step.extra();
      case Method::qg_momentum: return step.qg_momentum();
      case Method::dmsgd: return step.dmsgd();
      case Method::decentlam: return step.decentlam();
      case Method::push_sum: return step.push_sum();
      case Method::gradient_descent: return step.gradient_descent();
    }
  }

 private:
  /// Round t of every method, on `state`.
  struct Step {
    const Iteration& iteration;
    State& state;
    Round t;
    const Input& input;
    const Space& space = iteration.space_;
    const Recipe& recipe = iteration.recipe_;
    Vector &x = state.x, &memory = state.memory;

    void dpsgd_atc() {
      local_steps(x);
      x = mixed(x);
    }

    void dpsgd_awc() {
      Vector u = x;
      local_steps(u);
      x = mixed(x) + (u - x);
    }

    // y ← y + g − g⁻, kept as s = y − g⁻;  x ← W (x − γ y);  y ← W y
    void tracking_atc() {
      const Vector g = gradient(x, 0), y = memory + g;
      update(x, y);
      x = mixed(x);
      memory = beside_mean(mixed(y) - g);
    }

    // y ← y + g − g⁻;  x ← W x − γ y;  y ← W y
    void tracking_awc() {
      const Vector g = gradient(x, 0), y = memory + g;
      x = mixed(x);
      update(x, y);
      memory = beside_mean(mixed(y) - g);
    }

    // y ← y + g − g⁻;  x ← A (x − γ y), A the rows of W over their sums;  y ← W y
    void push_pull() {
      const Vector g = gradient(x, 0), y = memory + g;
      update(x, y);
      x = space.divided(mixed(x), space.mixed_weights(space.equal_weights(), t));
      memory = beside_mean(mixed(y) - g);
    }

    // x⁺ = W (2x − x⁻ − γ(g − g⁻)), in summed form with D = Σ (z − W z)
    void d2() {
      const Vector g = gradient(x, 0);
      Vector z = x;
      update(z, g);
      z -= memory;
      x = mixed(z);
      memory = beside_mean(memory + z - x);
    }

    // x⁺ = (I + W) x − ½ (I + W) x⁻ − γ(g − g⁻), in summed form with D = ½ Σ (x − W x)
    void extra() {
      const Vector g = gradient(x, 0);
      Vector m = mixed(x);
      const Vector correction = memory + 0.5 * (x - m);
      update(m, g);
      x = m - memory;
      memory = beside_mean(correction);
    }

    // x⁺ = W (x − γ (g + μ m)), by Nesterov W (x − γ ((1 + μ) g + μ² m));
    // m ← μ m + (1 − μ) (x − x⁺)/γ
    void qg_momentum() {
      const double mu = recipe.own_momentum;
      const Vector before = x;
      update(x, gradient(x, 0) + (recipe.own_nesterov ? mu * mu / (1 + mu) : mu) * memory);
      if (recipe.own_nesterov) x += mu * (x - before);
      x = mixed(x);
      memory = mu * memory + (1 - mu) * direction(before, x);
    }

    // m ← W (β m + g);  x ← W (x − γ m), with m before it is mixed
    void dmsgd() {
      Vector stepped = x;
      update(stepped, gradient(x, 0));
      const Vector m = recipe.own_momentum * memory + direction(x, stepped);
      x = mixed(x - recipe.rate(first_step()) * m);
      memory = mixed(m);
    }

    // m ← β m + (x − W (x − γ g))/γ;  x ← x − γ m
    void decentlam() {
      Vector stepped = x;
      update(stepped, gradient(x, 0));
      memory = recipe.own_momentum * memory + direction(x, mixed(stepped));
      x -= recipe.rate(first_step()) * memory;
    }

    // x ← x − γ ∇f(x/w);  (x, w) ← W (x, w)
    void push_sum() {
      for (int h = 0; h < recipe.local_steps; ++h)
        update(x, gradient(space.divided(x, state.weights), h), h);
      x = mixed(x);
      state.weights = space.mixed_weights(state.weights, t);
    }

    void gradient_descent() {
      x = space.averaged(x);
      update(x, space.averaged(gradient(x, 0)));
    }

    std::uint64_t first_step() const { return t * static_cast<std::uint64_t>(recipe.local_steps); }
    Vector mixed(const Vector& rows) const { return space.mixed(rows, t); }
    Vector beside_mean(const Vector& rows) const { return rows - space.averaged(rows); }
    /// (before − after)/γ, and 0 in a step without length.
    Vector direction(const Vector& before, const Vector& after) const {
      const double rate = recipe.rate(first_step());
      return (rate > 0 ? 1 / rate : 0) * (before - after);
    }

    Vector gradient(const Vector& at, int h) const {
      Vector g = space.curved(at);
      if (input.gradient != nullptr && (input.only_step < 0 || input.only_step == h))
        g += *input.gradient;
      return g;
    }

    // g ← g + weight_decay · x;  v ← momentum · v + g;  x ← x − γ (nesterov ? g + momentum · v : v)
    void update(Vector& rows, Vector g, int h = 0) {
      g += recipe.weight_decay * rows;
      if (input.decay != nullptr && recipe.method == Method::push_sum)
        g += space.weighed(*input.decay, state.weights);
      else if (input.decay != nullptr) g += *input.decay;
      const double rate = recipe.rate(first_step() + static_cast<std::uint64_t>(h));
      if (recipe.momentum > 0) {
        Vector& v = state.momentum;
        v = recipe.momentum * v + g;
        if (recipe.nesterov) g += recipe.momentum * v;
        else g = v;
      }
      rows -= rate * g;
    }

    void local_steps(Vector& rows) {
      for (int h = 0; h < recipe.local_steps; ++h) update(rows, gradient(rows, h), h);
    }
  };

  const Space& space_;
  const Recipe& recipe_;
};

}  // namespace gossamer::theory
