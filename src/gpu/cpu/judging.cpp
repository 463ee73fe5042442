#include "gpu/cpu/judging.hpp"

#include <atomic>

#include "base/magnitude.hpp"

namespace gossamer::gpu {

void check_range(const RangeCheckRequest& r) {
  if (first_beyond({r.row, r.length}, r.largest) == r.length) return;
  std::uint64_t nobody_told = 0;  // requests of one word run side by side
  std::atomic_ref(*r.fault).compare_exchange_strong(nobody_told, r.tag, std::memory_order_release,
                                                    std::memory_order_relaxed);
}

}  // namespace gossamer::gpu
