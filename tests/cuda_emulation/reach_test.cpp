// What kernels and products of the emulation read and write: they find no values that a GPU would
// not have, and reach no memory that a GPU would not.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <vector>

#include "cublas_v2.h"
#include "cuda_runtime.h"
#include "gpu/cuda/kernels/memory_spaces.hpp"
#include "tests/cuda_emulation/emulation_test_util.hpp"

using namespace gossamer::emulation;

namespace {

/// Copies what it finds in shared memory, and leaves numbers there.
__global__ void find_shared(float* found, bool write_first) {
  GOSSAMER_SHARED(float, values, [2]);
  GOSSAMER_SHARED(int, counter);
  if (write_first) values[threadIdx.x] = 1, counter = 1;
  __syncthreads();
  found[blockIdx.x * 2 + threadIdx.x] = counter == -1 ? values[threadIdx.x] : 0.0F;
  __syncthreads();
  values[threadIdx.x] = 2;
  counter = 2;
}

__global__ void write_shared(float* at, int place) {
  GOSSAMER_SHARED(float, values, [2]);
  values[place] = *at;
}

template <class Real>
__global__ void add_to(Real* values, int place) {
  values[place] += 1;
}

__global__ void add_one(float* value) { *gossamer::gpu::cuda::in_global(value) += 1; }

cublasStatus_t multiply(cublasHandle_t handle, const float* a, const float* b, float* c, int n) {
  const float one = 1, zero = 0;
  return cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, CUDA_R_32F, n, b,
                      CUDA_R_32F, n, &zero, c, CUDA_R_32F, n, CUBLAS_COMPUTE_32F,
                      CUBLAS_GEMM_DEFAULT);
}

}  // namespace

TEST_CASE("emulation: a block finds NaN in shared memory, whatever an earlier block left there") {
  OnGpu<float> found(8);
  for (const bool write_first : {false, true, false}) {
    CHECK(launch(&find_shared, 4, 2, nullptr, found.get(), write_first) == cudaSuccess);
    for (const float value : found.values()) CHECK(std::isnan(value) != write_first);
  }
}

TEST_CASE_TEMPLATE("emulation: adding to the first value past a block stops the program", Real,
                   float, double) {
  for (const std::size_t length : {4, 5}) {
    const auto add_at = [length](std::size_t place) {
      OnGpu<Real> values(std::vector<Real>(length, 0));
      (void)launch(&add_to<Real>, 1, 1, nullptr, values.get(), static_cast<int>(place));
      (void)cudaDeviceSynchronize();
    };
    CHECK(dies([&] { add_at(length); }));
    CHECK_FALSE(dies([&] { add_at(length - 1); }));
  }
}

TEST_CASE("emulation: a write beside a variable in shared memory stops the program") {
  OnGpu<float> value(std::vector<float>{1});
  const auto write_at = [&](int place) {
    (void)launch(&write_shared, 1, 1, nullptr, value.get(), place);
    (void)cudaDeviceSynchronize();
  };
  for (const int place : {-1000, -1, 2, 1000}) CHECK(dies([&] { write_at(place); }));
  for (const int place : {0, 1}) CHECK_FALSE(dies([&] { write_at(place); }));
}

TEST_CASE(
    "emulation: a kernel that reads memory of the host stops the program, if it is not pinned") {
  OnGpu<float> memory(std::vector<float>{1});
  CHECK(launch(&add_one, 1, 1, nullptr, memory.get()) == cudaSuccess);
  CHECK(memory.values() == std::vector<float>{2});
  float* pinned = nullptr;
  CHECK(cudaMallocHost(&pinned, sizeof(float)) == cudaSuccess);
  *pinned = 3;
  CHECK(launch(&add_one, 1, 1, nullptr, pinned) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(*pinned == 4);
  CHECK(dies([] {
    float pageable = 1;
    (void)launch(&add_one, 1, 1, nullptr, &pageable);
    (void)cudaDeviceSynchronize();
  }));
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
}

TEST_CASE(
    "emulation: cuBLAS multiplies matrices and reads lists that a GPU can access, no others") {
  cublasHandle_t handle = nullptr;
  CHECK(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  constexpr int n = 2;
  const std::vector<float> ones(n * n, 1);
  OnGpu<float> a(ones), b(ones), c(n * n);
  CHECK(multiply(handle, a.get(), b.get(), c.get(), n) == CUBLAS_STATUS_SUCCESS);
  CHECK(c.values() == std::vector<float>(n * n, 2));

  std::vector<float> pageable(n * n, 1);
  const auto dies_with = [&](const float* left, const float* right, float* out) {
    return dies([&] {
      (void)multiply(handle, left, right, out, n);
      (void)cudaDeviceSynchronize();
    });
  };
  CHECK(dies_with(pageable.data(), b.get(), c.get()));
  CHECK(dies_with(a.get(), pageable.data(), c.get()));
  CHECK(dies_with(a.get(), b.get(), pageable.data()));
  CHECK(dies_with(a.get() + 1, b.get(), c.get()));  // its last value is past the end

  const auto batched = [&](const float* const* left, const float* const* right, float* const* out) {
    const float one = 1, zero = 0;
    CHECK(cublasGemmBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one,
                              reinterpret_cast<const void* const*>(left), CUDA_R_32F, n,
                              reinterpret_cast<const void* const*>(right), CUDA_R_32F, n, &zero,
                              reinterpret_cast<void* const*>(out), CUDA_R_32F, n, 1,
                              CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
  };
  const std::array<const float*, 1> left{a.get()}, right{b.get()};
  const std::array<float*, 1> out{c.get()};
  OnGpu<const float*> left_on_gpu({left[0]}), right_on_gpu({right[0]});
  OnGpu<float*> out_on_gpu({out[0]});
  batched(left_on_gpu.get(), right_on_gpu.get(), out_on_gpu.get());
  CHECK(dies([&] { batched(left.data(), right_on_gpu.get(), out_on_gpu.get()); }));
  CHECK(dies([&] { batched(left_on_gpu.get(), right.data(), out_on_gpu.get()); }));
  CHECK(dies([&] { batched(left_on_gpu.get(), right_on_gpu.get(), out.data()); }));

  OnGpu<char> workspace(1024);
  CHECK(cublasSetWorkspace(handle, workspace.get(), 1024) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasSetWorkspace(handle, workspace.get() + 16, 512) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(cublasSetWorkspace(handle, pageable.data(), 4) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
}

TEST_CASE_TEMPLATE("emulation: products in every transposition", Real, float, double) {
  constexpr int m = 3, n = 4, k = 5;
  cublasHandle_t handle = nullptr;
  CHECK(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  const auto value = [](int i) { return static_cast<Real>((i * 7) % 11 - 5); };
  for (const bool a_transposed : {false, true})
    for (const bool b_transposed : {false, true})
      for (const Real beta : {Real(0), Real(2)}) {
        std::vector<Real> a, b, c(m * n, beta == 0 ? Real(NAN) : Real(1)), expected;
        for (int i = 0; i < m * k; ++i) a.push_back(value(i));
        for (int i = 0; i < k * n; ++i) b.push_back(value(i + 3));
        for (int j = 0; j < n; ++j)
          for (int i = 0; i < m; ++i) {
            Real sum = 0;
            for (int l = 0; l < k; ++l)
              sum += a[static_cast<std::size_t>(a_transposed ? l + i * k : i + l * m)] *
                     b[static_cast<std::size_t>(b_transposed ? j + l * n : l + j * k)];
            expected.push_back(3 * sum + (beta == 0 ? Real(0) : beta));
          }
        OnGpu<Real> gpu_a(a), gpu_b(b), gpu_c(c);
        OnGpu<Real*> c_places(std::vector<Real*>{gpu_c.get()});
        OnGpu<const Real*> a_places(std::vector<const Real*>{gpu_a.get()});
        OnGpu<const Real*> b_places(std::vector<const Real*>{gpu_b.get()});
        const auto a_op = a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                   b_op = b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
        const int a_stride = a_transposed ? k : m, b_stride = b_transposed ? n : k;
        const Real alpha = 3;
        if constexpr (sizeof(Real) == 4)
          CHECK(cublasGemmBatchedEx(
                    handle, a_op, b_op, m, n, k, &alpha,
                    reinterpret_cast<const void* const*>(a_places.get()), CUDA_R_32F, a_stride,
                    reinterpret_cast<const void* const*>(b_places.get()), CUDA_R_32F, b_stride,
                    &beta, reinterpret_cast<void* const*>(c_places.get()), CUDA_R_32F, m, 1,
                    CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
        else
          CHECK(cublasGemmStridedBatchedEx(
                    handle, a_op, b_op, m, n, k, &alpha, gpu_a.get(), CUDA_R_64F, a_stride, 0,
                    gpu_b.get(), CUDA_R_64F, b_stride, 0, &beta, gpu_c.get(), CUDA_R_64F, m, 0, 1,
                    CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
        CHECK(gpu_c.values() == expected);
      }
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
}
