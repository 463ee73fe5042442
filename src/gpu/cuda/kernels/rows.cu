// Element-wise arithmetic on rows (chunks.hpp explains how blocks share it out), and the fused
// optimizer step.
#include "gpu/cuda/kernels/memory_spaces.hpp"
#include "gpu/cuda/kernels/rows.hpp"

#include <algorithm>

#include "gpu/cuda/kernels/chunks.hpp"

namespace gossamer::gpu::cuda {
namespace {

// The element-wise operations: kIn rows in, kOut rows out, kFactors numbers.

struct Axpy {
  static constexpr int kIn = 2, kOut = 1, kFactors = 1;
  template <class Real>
  __device__ void operator()(const Real* in, Real* out, const Factors<Real>& factors) const {
    out[0] = plus(in[1], times(factors.v[0], in[0]));
  }
};
struct AddDifference {
  static constexpr int kIn = 3, kOut = 1, kFactors = 0;
  template <class Real>
  __device__ void operator()(const Real* in, Real* out, const Factors<Real>& factors) const {
    out[0] = plus(in[0], times(factors.v[0], minus(in[1], in[2])));
  }
};
struct AddDifferenceAndCopy {
  static constexpr int kIn = 3, kOut = 2, kFactors = 0;
  template <class Real>
  __device__ void operator()(const Real* in, Real* out, const Factors<Real>& factors) const {
    AddDifference{}(in, out, factors);
    out[1] = out[0];
  }
};
struct Scale {
  static constexpr int kIn = 1, kOut = 1, kFactors = 1;
  template <class Real>
  __device__ void operator()(const Real* in, Real* out, const Factors<Real>& factors) const {
    out[0] = times(factors.v[0], in[0]);
  }
};
struct Divide {
  static constexpr int kIn = 1, kOut = 1, kFactors = 1;
  template <class Real>
  __device__ void operator()(const Real* in, Real* out, const Factors<Real>& factors) const {
    out[0] = over(in[0], factors.v[0]);
  }
};
struct Copy {
  static constexpr int kIn = 1, kOut = 1, kFactors = 0;
  template <class Real>
  __device__ void operator()(const Real* in, Real* out, const Factors<Real>&) const {
    out[0] = in[0];
  }
};
struct Fill {
  static constexpr int kIn = 0, kOut = 1, kFactors = 1;
  template <class Real>
  __device__ void operator()(const Real*, Real* out, const Factors<Real>& factors) const {
    out[0] = factors.v[0];
  }
};
/// g ← ∇f + d x;  v ← m v + g;  x ← x − γ (nesterov ? g + m v : v). In: ∇f, x and, with momentum,
/// v.
template <bool kMomentum>
struct Sgd {
  static constexpr int kIn = kMomentum ? 3 : 2, kOut = kMomentum ? 2 : 1, kFactors = 1;
  double momentum, decay;
  bool nesterov;
  template <class Real>
  __device__ void operator()(const Real* in, Real* out, const Factors<Real>& factors) const {
    const Real m = static_cast<Real>(momentum), d = static_cast<Real>(decay);
    Real g = in[0];
    if (d != 0) g = plus(g, times(d, in[1]));
    if constexpr (kMomentum) {
      const Real v = plus(times(m, in[2]), g);
      out[1] = v;
      g = nesterov ? plus(g, times(m, v)) : v;
    }
    out[0] = minus(in[1], times(factors.v[0], g));
  }
};
/// g ← ∇f + (adam: d x);  m ← β1 m + (1 − β1) g;  v ← β2 v + (1 − β2) g²;
/// x ← x − γ (c1 m / (sqrt(c2 v) + ε) + (adamw: d x)). In: ∇f, x, m, v. Factors: γ, c1, c2.
struct Adam {
  static constexpr int kIn = 4, kOut = 3, kFactors = 3;
  double beta1, beta2, epsilon, decay;
  bool decoupled;
  template <class Real>
  __device__ void operator()(const Real* in, Real* out, const Factors<Real>& factors) const {
    const Real d = static_cast<Real>(decay), x = in[1];
    const Real g = decoupled || d == 0 ? in[0] : plus(in[0], times(d, x));
    const Real m =
        plus(times(static_cast<Real>(beta1), in[2]), times(static_cast<Real>(1 - beta1), g));
    const Real v = plus(times(static_cast<Real>(beta2), in[3]),
                        times(static_cast<Real>(1 - beta2), times(g, g)));
    Real direction =
        times(factors.v[1], m) / plus(sqrt(times(factors.v[2], v)), static_cast<Real>(epsilon));
    if (decoupled) direction = plus(direction, times(d, x));
    out[0] = minus(x, times(factors.v[0], direction));
    out[1] = m;
    out[2] = v;
  }
};

template <class Real, class Operation>
__global__ void __launch_bounds__(kThreads)
    rows_kernel(const RowTask<Real>* tasks, unsigned rows, bool streaming, Operation operation) {
  constexpr int kIn = Operation::kIn, kOut = Operation::kOut, kInRows = kIn > 0 ? kIn : 1;
  constexpr int kValues = Pack<Real>::kValues;
  const ChunkPosition at = chunk_position<Real>(rows);
  const RowTask<Real> task = tasks[at.row];
  if (at.begin >= task.length) return;
  Factors<Real> factors = task.factors;
  if (task.factors_at != nullptr) {
#pragma unroll
    for (int f = 0; f < Operation::kFactors; ++f) factors.v[f] = in_global(task.factors_at)[f];
  }
  const int thread = static_cast<int>(threadIdx.x);
  if (!task.vectors || task.length - at.begin < kChunk<Real>) {
    const std::size_t end = min(task.length, at.begin + kChunk<Real>);
    for (std::size_t i = at.begin + thread; i < end; i += kThreads) {
      Real in[kInRows], out[kOut];
#pragma unroll
      for (int r = 0; r < kIn; ++r) in[r] = in_global(task.in[r])[i];
      operation(in, out, factors);
#pragma unroll
      for (int r = 0; r < kOut; ++r) in_global(task.out[r])[i] = out[r];
    }
    return;
  }
  const std::size_t first = at.begin + static_cast<std::size_t>(thread) * kValues;
  constexpr std::size_t step = std::size_t{kThreads} * kValues;
  Pack<Real> in[kInRows][kPacks];
#pragma unroll
  for (int r = 0; r < kIn; ++r)
#pragma unroll
    for (int k = 0; k < kPacks; ++k) in[r][k] = load_pack(in_global(task.in[r]) + first + k * step);
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    Pack<Real> out[kOut];
#pragma unroll
    for (int v = 0; v < kValues; ++v) {
      Real values[kInRows], results[kOut];
#pragma unroll
      for (int r = 0; r < kIn; ++r) values[r] = in[r][k].v[v];
      operation(values, results, factors);
#pragma unroll
      for (int r = 0; r < kOut; ++r) out[r].v[v] = results[r];
    }
#pragma unroll
    for (int r = 0; r < kOut; ++r)
      store_pack(in_global(task.out[r]) + first + k * step, out[r], streaming);
  }
}

template <class Real, class Operation>
void launch_rows(cudaStream_t stream, const RowTask<Real>* tasks, std::size_t count,
                 std::size_t longest, bool streaming, const Operation& operation) {
  launch(rows_kernel<Real, Operation>, blocks_for<Real>(count, longest), kThreads, stream, tasks,
         static_cast<unsigned>(count), streaming, operation);
}

template <class Real>
void settle_alignment(RowTask<Real>& task, int in, int out) {
  task.vectors = true;
  for (int r = 0; r < in; ++r) task.vectors = task.vectors && aligned(task.in[r]);
  for (int r = 0; r < out; ++r) task.vectors = task.vectors && aligned(task.out[r]);
}

/// to_task(request) is the request's task. The tasks of a launch are uploaded together.
template <class Real, class Request, class Operation, class ToTask>
void run_rows(StreamContext& context, std::span<const Request> requests, const Operation& operation,
              ToTask to_task) {
  in_launches(requests, kChunk<Real>, [&](std::span<const Request> some, std::size_t longest) {
    const UploadRing::Slot slot = context.uploads().reserve(some.size() * sizeof(RowTask<Real>));
    auto* tasks = reinterpret_cast<RowTask<Real>*>(slot.host);
    std::size_t total = 0;
    for (std::size_t i = 0; i < some.size(); ++i) {
      tasks[i] = to_task(some[i]);
      tasks[i].length = some[i].length;
      settle_alignment(tasks[i], Operation::kIn, Operation::kOut);
      total += some[i].length;
    }
    context.uploads().send(slot);
    launch_rows(context.stream(), reinterpret_cast<const RowTask<Real>*>(slot.device), some.size(),
                longest, total * sizeof(Real) > kStreamBytes, operation);
  });
}

}  // namespace

template <class Real>
void enqueue(StreamContext& context, std::span<const AxpyRequest<Real>> requests) {
  run_rows<Real>(context, requests, Axpy{}, [](const auto& r) {
    return RowTask<Real>{.in = {r.x, r.y}, .out = {r.y}, .factors = {{r.factor}}};
  });
}
template <class Real>
void enqueue(StreamContext& context, std::span<const DifferenceRequest<Real>> requests) {
  const auto to_task = [](const auto& r) {
    return RowTask<Real>{.in = {r.out, r.a, r.b},
                         .out = {r.out, r.copy != nullptr ? r.copy : r.out},
                         .factors = {{r.factor}}};
  };
  const bool copies =
      std::ranges::any_of(requests, [](const auto& r) { return r.copy != nullptr; });
  if (copies) run_rows<Real>(context, requests, AddDifferenceAndCopy{}, to_task);
  else run_rows<Real>(context, requests, AddDifference{}, to_task);
}
template <class Real>
void enqueue(StreamContext& context, std::span<const ScaleRequest<Real>> requests) {
  run_rows<Real>(context, requests, Scale{}, [](const auto& r) {
    return RowTask<Real>{.in = {r.y}, .out = {r.y}, .factors = {{r.factor}}};
  });
}
template <class Real>
void enqueue(StreamContext& context, std::span<const DivideRequest<Real>> requests) {
  run_rows<Real>(context, requests, Divide{}, [](const auto& r) {
    return RowTask<Real>{.in = {r.x}, .out = {r.out}, .factors_at = r.divisor};
  });
}
template <class Real>
void enqueue(StreamContext& context, std::span<const CopyRequest<Real>> requests) {
  run_rows<Real>(context, requests, Copy{},
                 [](const auto& r) { return RowTask<Real>{.in = {r.from}, .out = {r.to}}; });
}
template <class Real>
void enqueue(StreamContext& context, std::span<const FillRequest<Real>> requests) {
  run_rows<Real>(context, requests, Fill{},
                 [](const auto& r) { return RowTask<Real>{.out = {r.y}, .factors = {{r.value}}}; });
}

template <class Real>
RowTask<Real> update_task(const UpdateRule& rule, Real* parameters, const StateRows<Real>& state,
                          const Real* gradient, std::size_t length) {
  RowTask<Real> task{.in = {gradient, parameters, state[0], state[1]},
                     .out = {parameters, state[0], state[1]},
                     .length = length};
  const int rows = static_cast<int>(rule.state_rows());
  settle_alignment(task, 2 + rows, 1 + rows);
  return task;
}

template <class Real>
void launch_update(cudaStream_t stream, const UpdateRule& rule, const RowTask<Real>* tasks,
                   std::size_t count, std::size_t longest) {
  const bool streaming = count * longest * sizeof(Real) > kStreamBytes;
  const auto run = [&](const auto& operation) {
    launch_rows(stream, tasks, count, longest, streaming, operation);
  };
  if (rule.kind != UpdateRule::Kind::sgd)
    run(Adam{rule.beta1, rule.beta2, rule.epsilon, rule.weight_decay,
             rule.kind == UpdateRule::Kind::adamw});
  else if (rule.momentum != 0) run(Sgd<true>{rule.momentum, rule.weight_decay, rule.nesterov});
  else run(Sgd<false>{0, rule.weight_decay, false});
}

template <class Real>
void update(StreamContext& context, const UpdateRule& rule, std::span<const UpdateJob<Real>> jobs) {
  std::size_t longest = 0;
  for (const auto& job : jobs) longest = std::max(longest, job.length);
  if (longest == 0) return;
  const UploadRing::Slot slot = context.uploads().reserve(jobs.size() * sizeof(RowTask<Real>));
  auto* tasks = reinterpret_cast<RowTask<Real>*>(slot.host);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    tasks[i] =
        update_task(rule, jobs[i].parameters, jobs[i].state, jobs[i].gradient, jobs[i].length);
    tasks[i].factors = factors_of<Real>(step_factors(rule, jobs[i].rate, jobs[i].step));
  }
  context.uploads().send(slot);
  launch_update(context.stream(), rule, reinterpret_cast<const RowTask<Real>*>(slot.device),
                jobs.size(), longest);
}

#define GOSSAMER_ROWS(Real)                                                                       \
  template void enqueue(StreamContext&, std::span<const AxpyRequest<Real>>);                      \
  template void enqueue(StreamContext&, std::span<const DifferenceRequest<Real>>);                \
  template void enqueue(StreamContext&, std::span<const ScaleRequest<Real>>);                     \
  template void enqueue(StreamContext&, std::span<const DivideRequest<Real>>);                    \
  template void enqueue(StreamContext&, std::span<const CopyRequest<Real>>);                      \
  template void enqueue(StreamContext&, std::span<const FillRequest<Real>>);                      \
  template void update(StreamContext&, const UpdateRule&, std::span<const UpdateJob<Real>>);      \
  template RowTask<Real> update_task(const UpdateRule&, Real*, const StateRows<Real>&,            \
                                     const Real*, std::size_t);                                   \
  template void launch_update(cudaStream_t, const UpdateRule&, const RowTask<Real>*, std::size_t, \
                              std::size_t);
GOSSAMER_ROWS(float)
GOSSAMER_ROWS(double)

}  // namespace gossamer::gpu::cuda
