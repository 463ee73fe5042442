// Mixing of long rows that several peers share: the GPU mixes them together, with the bits of
// mixing one by one.
#include "tests/cuda/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gpu;

namespace {

/// `peers` rows; peer p mixes with the `degree` peers after it, in one call. The CPU's bits.
template <class Real>
void check_shared_rows(BasicDevice<Real>& device, std::size_t peers, std::size_t length,
                       std::size_t degree) {
  CAPTURE(peers);
  CAPTURE(length);
  CAPTURE(degree);
  BasicCpuDevice<Real> cpu_device(1);
  std::vector<std::vector<Real>> cpu, cpu_out(peers, std::vector<Real>(length));
  std::vector<Held<Real>> rows, out;
  for (std::size_t p = 0; p < peers; ++p) {
    cpu.push_back(normal<Real>(length, p));
    rows.emplace_back(device, cpu[p]);
    out.emplace_back(device, length);
  }
  std::vector<std::vector<BasicMixSource<Real>>> sources(peers), cpu_sources(peers);
  std::vector<BasicMixRequest<Real>> requests, cpu_requests;
  for (std::size_t p = 0; p < peers; ++p) {
    for (std::size_t k = 1; k <= degree; ++k) {
      const Real weight = static_cast<Real>(1.0 / static_cast<double>(degree + k));
      sources[p].push_back({rows[(p + k) % peers].get(), weight});
      cpu_sources[p].push_back({cpu[(p + k) % peers].data(), weight});
    }
    requests.push_back({rows[p].get(), out[p].get(), sources[p], length});
    cpu_requests.push_back({cpu[p].data(), cpu_out[p].data(), cpu_sources[p], length});
    requests.back().own = cpu_requests.back().own = p % 3 == 1 ? 0 : 1;
  }
  device.execute(requests);
  cpu_device.execute(cpu_requests);
  for (std::size_t p = 0; p < peers; ++p) CHECK(same_bits(out[p].values(), cpu_out[p]));
}

}  // namespace

TEST_CASE_TEMPLATE("GPU: long rows that several peers mix in, together", Real, float, double) {
  GOSSAMER_GPU_OF(Real, device);
  check_shared_rows<Real>(*device, 16, 70'001, 2);   // one team, a rest of one value
  check_shared_rows<Real>(*device, 18, 65'600, 2);   // two teams
  check_shared_rows<Real>(*device, 2, 600'003, 1);   // neither takes more than it needs
  check_shared_rows<Real>(*device, 17, 65'600, 15);  // each request a team of its own: not together
  check_shared_rows<Real>(*device, 17, 65'600, 16);  // more rows than a team holds
}
