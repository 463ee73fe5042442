#include "peer/privacy/pair_secrets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/philox.hpp"
#include "train/privacy/system_bits.hpp"

namespace gossamer::peer {
namespace {

class SharedBits final : public train::BitSource {
 public:
  SharedBits(const net::Secret& secret, std::uint64_t step) : bits_(secret, step) {}
  void fill(std::span<std::uint64_t> numbers) override { bits_.fill(numbers); }

 private:
  net::SecretBits bits_;
};

class ReproducibleBits final : public train::BitSource {
 public:
  explicit ReproducibleBits(const RandomStream& stream) : stream_(stream) {}
  void fill(std::span<std::uint64_t> numbers) override {
    for (std::uint64_t& number : numbers) number = stream_.next_u64();
  }

 private:
  RandomStream stream_;
};

net::Secret system_secret() {
  std::array<std::uint64_t, 4> numbers{};
  train::SystemBits().fill(numbers);
  std::array<std::uint8_t, 32> bytes{};
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return net::Secret(bytes);
}

}  // namespace

bool SecretPairs::is_here(int peer) const {
  return std::ranges::find(hosted_, peer) != hosted_.end();
}

std::string SecretPairs::contribution() const {
  const net::AgreementKey& key = own_.public_key();
  return std::string(key.begin(), key.end());
}

Status SecretPairs::agree(int here, int there, const std::string& contribution) {
  const Error nonsense{ErrorKind::lost_peer, "its key for the noise of pairs makes no sense"};
  net::AgreementKey other{};
  if (contribution.size() != other.size()) return nonsense;
  std::ranges::copy(contribution, other.begin());
  const auto [lower, higher] = std::minmax(here, there);
  auto secret =
      own_.secret(other, fmt::format("noise of peers {} and {} of run {}", lower, higher, run_id_));
  if (!secret) return nonsense;
  secrets_.insert_or_assign(std::pair(lower, higher), *secret);
  return {};
}

std::unique_ptr<train::BitSource> SecretPairs::bits(int peer, int partner, std::uint64_t step) {
  const std::pair<int, int> edge = std::minmax(peer, partner);
  auto found = secrets_.find(edge);
  if (found == secrets_.end() && is_here(peer) && is_here(partner))
    found = secrets_.emplace(edge, system_secret()).first;
  if (found == secrets_.end()) return std::make_unique<train::SystemBits>();
  return std::make_unique<SharedBits>(found->second, step);
}

std::unique_ptr<train::BitSource> ReproduciblePairs::bits(int peer, int partner,
                                                          std::uint64_t step) {
  // Beside those of the peers' own noise, whose numbers have 16 bits at most.
  const auto [lower, higher] = std::minmax(peer, partner);
  const auto edge =
      static_cast<std::uint32_t>(lower + 1) << 16 | static_cast<std::uint32_t>(higher);
  return std::make_unique<ReproducibleBits>(
      RandomStream(seed_, edge, Purpose::private_noise, step));
}

}  // namespace gossamer::peer
