// Muon's step with a matrix, as on the CPU (gpu/cpu/muon.cpp), by cuBLAS's products and the kernels
// of rows. cuBLAS's matrices are column-major, so it sees the transpose Z of X [rows, columns]:
//   wide: G = Z' Z, Z ← a Z + Z P;  tall: G = Z Z', Z ← a Z + P Z;  P = b G + c G², symmetric
#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "gpu/cuda/kernels/memory_spaces.hpp"
#include "gpu/cuda/kernels/muon.hpp"
#include "gpu/cuda/kernels/rows.hpp"

namespace gossamer::gpu::cuda {
namespace {

constexpr int kMuonThreads = 256;

/// norm ← sqrt(Σ x²) + ε, by one block, in an order that depends on the length only.
template <class Real>
__global__ void __launch_bounds__(kMuonThreads)
    norm_kernel(const Real* x, std::size_t length, Real* norm) {
  GOSSAMER_SHARED(double, sums, [kMuonThreads]);
  const int thread = static_cast<int>(threadIdx.x);
  double sum = 0;
  for (std::size_t i = thread; i < length; i += kMuonThreads) {
    const double value = static_cast<double>(x[i]);
    sum += value * value;
  }
  sums[thread] = sum;
  __syncthreads();
  for (int half = kMuonThreads / 2; half > 0; half /= 2) {
    if (thread < half) sums[thread] += sums[thread + half];
    __syncthreads();
  }
  if (thread == 0) *norm = static_cast<Real>(sqrt(sums[0]) + NewtonSchulz::epsilon);
}

std::size_t rows_of(const auto& job) { return job.length / static_cast<std::size_t>(job.columns); }

/// Two matrices of the job's shape, two of its Gram matrix, and the norm.
template <class Real>
std::size_t scratch_length(const UpdateJob<Real>& job) {
  const std::size_t less = std::min(rows_of(job), static_cast<std::size_t>(job.columns));
  return 2 * job.length + 2 * less * less + 1;
}

/// The step of one job, in `scratch`.
template <class Real>
class Step {
 public:
  Step(StreamContext& context, const UpdateRule& rule, const UpdateJob<Real>& job, Real* scratch)
      : context_(context),
        rule_(rule),
        job_(job),
        rows_(static_cast<int>(rows_of(job))),
        less_(std::min(rows_, job.columns)),
        square_(static_cast<std::size_t>(less_) * static_cast<std::size_t>(less_)),
        x_(scratch),
        next_(x_ + job.length),
        gram_(next_ + job.length),
        polynomial_(gram_ + square_),
        norm_(polynomial_ + square_) {}

  void run() {
    const Real beta = static_cast<Real>(rule_.momentum),
               rest = static_cast<Real>(1 - rule_.momentum);
    const std::size_t length = job_.length;
    scale(job_.state[0], beta, length);
    axpy(rest, job_.gradient, job_.state[0], length);
    const CopyRequest<Real> update{rule_.nesterov ? job_.gradient : job_.state[0], next_, length};
    enqueue(context_, std::span(&update, 1));
    if (rule_.nesterov) {
      scale(next_, rest, length);
      axpy(beta, job_.state[0], next_, length);
    }
    launch(norm_kernel<Real>, dim3(1), dim3(kMuonThreads), context_.stream(), next_, length, norm_);
    const DivideRequest<Real> normalised{next_, norm_, x_, length};
    enqueue(context_, std::span(&normalised, 1));
    for (int i = 0; i < rule_.iterations; ++i) iterate();
    scale(job_.parameters, static_cast<Real>(1 - job_.rate * rule_.weight_decay), length);
    const double step =
        -job_.rate * muon_scale(rows_of(job_), static_cast<std::size_t>(job_.columns));
    axpy(static_cast<Real>(step), x_, job_.parameters, length);
  }

 private:
  bool tall() const { return rows_ > job_.columns; }

  void iterate() {
    const Operand<Real> z{.first = x_, .stride = job_.columns},
        z_transposed{.first = x_, .stride = job_.columns, .transposed = true},
        gram{.first = gram_, .stride = less_}, polynomial{.first = polynomial_, .stride = less_},
        next{.first = next_, .stride = job_.columns};
    const int more = std::max(rows_, job_.columns);
    multiply(less_, less_, more, tall() ? z : z_transposed, tall() ? z_transposed : z, gram);
    multiply(less_, less_, less_, gram, gram, polynomial);
    scale(polynomial_, static_cast<Real>(NewtonSchulz::c), square_);
    axpy(static_cast<Real>(NewtonSchulz::b), gram_, polynomial_, square_);
    multiply(job_.columns, rows_, less_, tall() ? polynomial : z, tall() ? z : polynomial, next);
    axpy(static_cast<Real>(NewtonSchulz::a), x_, next_, job_.length);
    std::swap(x_, next_);
  }

  void multiply(int m, int n, int k, const Operand<Real>& a, const Operand<Real>& b,
                const Operand<Real>& c) {
    context_.products().run(PeerProduct<Real>{.m = m, .n = n, .k = k, .a = a, .b = b, .c = c});
  }
  void scale(Real* y, Real factor, std::size_t length) {
    const ScaleRequest<Real> request{factor, y, length};
    enqueue(context_, std::span(&request, 1));
  }
  void axpy(Real factor, const Real* x, Real* y, std::size_t length) {
    const AxpyRequest<Real> request{factor, x, y, length};
    enqueue(context_, std::span(&request, 1));
  }

  StreamContext& context_;
  const UpdateRule& rule_;
  const UpdateJob<Real>& job_;
  int rows_, less_;
  std::size_t square_;
  Real *x_, *next_, *gram_, *polynomial_, *norm_;
};

}  // namespace

template <class Real>
void muon(StreamContext& context, const UpdateRule& rule, std::span<const UpdateJob<Real>> jobs) {
  std::size_t most = 0;
  for (const UpdateJob<Real>& job : jobs) {
    if (job.length == 0) continue;
    GOSSAMER_CHECK(job.columns > 0 && job.length % static_cast<std::size_t>(job.columns) == 0,
                   "Muon steps with a matrix");
    most = std::max(most, scratch_length(job));
  }
  if (most == 0) return;
  auto* scratch = static_cast<Real*>(context.scratch(most * sizeof(Real)));
  for (const UpdateJob<Real>& job : jobs)
    if (job.length > 0) Step<Real>(context, rule, job, scratch).run();
}

template void muon(StreamContext&, const UpdateRule&, std::span<const UpdateJob<float>>);
template void muon(StreamContext&, const UpdateRule&, std::span<const UpdateJob<double>>);

}  // namespace gossamer::gpu::cuda
