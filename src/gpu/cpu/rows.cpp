#include "gpu/cpu/rows.hpp"

#include <algorithm>
#include <atomic>

#include "base/magnitude.hpp"
#include "gpu/cpu/kernels.hpp"

namespace gossamer::gpu {

template <class Real>
void run(const AxpyRequest<Real>& r) {
  kernels<Real>().axpy(r.factor, r.x, r.y, r.length);
}
template <class Real>
void run(const DifferenceRequest<Real>& r) {
  if (r.copy == nullptr) kernels<Real>().add_difference(r.factor, r.out, r.a, r.b, r.length);
  else kernels<Real>().add_difference_and_copy(r.factor, r.out, r.a, r.b, r.copy, r.length);
}
template <class Real>
void run(const ScaleRequest<Real>& r) {
  kernels<Real>().scale(r.factor, r.y, r.length);
}
template <class Real>
void run(const DivideRequest<Real>& r) {
  if (r.length > 0) kernels<Real>().divide(r.x, *r.divisor, r.out, r.length);
}
template <class Real>
void run(const CopyRequest<Real>& r) {
  std::copy_n(r.from, r.length, r.to);
}
template <class Real>
void run(const FillRequest<Real>& r) {
  std::fill_n(r.y, r.length, r.value);
}

void run(const RangeCheckRequest& r) {
  if (first_beyond({r.row, r.length}, r.largest) == r.length) return;
  std::uint64_t no_fault = 0;  // requests that share a word run on several threads
  std::atomic_ref(*r.fault).compare_exchange_strong(no_fault, r.tag, std::memory_order_release,
                                                    std::memory_order_relaxed);
}

#define GOSSAMER_ROWS(Real)                          \
  template void run(const AxpyRequest<Real>&);       \
  template void run(const DifferenceRequest<Real>&); \
  template void run(const ScaleRequest<Real>&);      \
  template void run(const DivideRequest<Real>&);     \
  template void run(const CopyRequest<Real>&);       \
  template void run(const FillRequest<Real>&);
GOSSAMER_ROWS(float)
GOSSAMER_ROWS(double)

}  // namespace gossamer::gpu
