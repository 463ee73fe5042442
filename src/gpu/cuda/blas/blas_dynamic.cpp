// Loads cuBLAS of this machine.
#include <dlfcn.h>
#include <fmt/format.h>

#include "gpu/cuda/blas/blas.hpp"

namespace gossamer::gpu::cuda {
namespace {

constexpr const char* kNames[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so",
                                  "/usr/local/cuda/lib64/libcublas.so"};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* library, BlasFunctions& f) {
  return find(library, "cublasCreate_v2", f.create) &&
         find(library, "cublasDestroy_v2", f.destroy) &&
         find(library, "cublasSetStream_v2", f.set_stream) &&
         find(library, "cublasSetWorkspace_v2", f.set_workspace) &&
         find(library, "cublasGemmEx", f.product) &&
         find(library, "cublasGemmStridedBatchedEx", f.strided) &&
         find(library, "cublasGemmBatchedEx", f.batched);
}

/// "13.0.2", or "version unknown".
std::string version(void* library) {
  decltype(&cublasGetProperty) property = nullptr;
  int major = 0, minor = 0, patch = 0;
  if (!find(library, "cublasGetProperty", property) ||
      property(MAJOR_VERSION, &major) != CUBLAS_STATUS_SUCCESS ||
      property(MINOR_VERSION, &minor) != CUBLAS_STATUS_SUCCESS ||
      property(PATCH_LEVEL, &patch) != CUBLAS_STATUS_SUCCESS)
    return "version unknown";
  return fmt::format("{}.{}.{}", major, minor, patch);
}

}  // namespace

Result<BlasFunctions> load_blas() {
  std::string reasons;
  for (const char* name : kNames) {
    void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);  // stays open to the program's end
    if (library == nullptr) {
      const char* reason = ::dlerror();
      reasons +=
          fmt::format("{}{}", reasons.empty() ? "" : "; ", reason != nullptr ? reason : name);
      continue;
    }
    BlasFunctions functions;
    functions.library = fmt::format("{}, {}", name, version(library));
    if (find_all(library, functions)) return functions;
    reasons += fmt::format("{}{} lacks functions", reasons.empty() ? "" : "; ", name);
  }
  return invalid_error(fmt::format(
      "no cuBLAS (install libcublas, or name its folder in LD_LIBRARY_PATH): {}", reasons));
}

}  // namespace gossamer::gpu::cuda
