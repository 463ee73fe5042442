#include "train/split/worker_links.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gossamer::train {
namespace {

/// A double as values that any link carries without a change: 16 of its bits in each.
constexpr std::size_t kNumberValues = 4;
template <class Real>
void append(double number, std::vector<Real>& message) {
  auto bits = std::bit_cast<std::uint64_t>(number);
  for (std::size_t k = 0; k < kNumberValues; ++k, bits >>= 16)
    message.push_back(static_cast<Real>(bits & 0xFFFFU));
}
template <class Real>
double number_of(std::span<const Real> values) {
  std::uint64_t bits = 0;
  for (std::size_t k = kNumberValues; k-- > 0;) {
    if (!(values[k] >= 0 && values[k] <= 65535))
      throw WorkerLost("a worker of this replica sent a number that is none");
    bits = bits << 16 | static_cast<std::uint64_t>(values[k]);
  }
  return std::bit_cast<double>(bits);
}

}  // namespace

template <class Real>
void send_numbers(WorkerLinks<Real>& links, int part, std::span<const double> numbers) {
  std::vector<Real> message;
  for (const double number : numbers) append(number, message);
  links.send(part, message);
}

template <class Real>
void receive_numbers(WorkerLinks<Real>& links, int part, std::span<double> numbers) {
  std::vector<Real> message(numbers.size() * kNumberValues);
  links.receive(part, message);
  for (std::size_t k = 0; k < numbers.size(); ++k)
    numbers[k] = number_of(std::span<const Real>(message).subspan(k * kNumberValues));
}

template void send_numbers(WorkerLinks<float>&, int, std::span<const double>);
template void send_numbers(WorkerLinks<double>&, int, std::span<const double>);
template void receive_numbers(WorkerLinks<float>&, int, std::span<double>);
template void receive_numbers(WorkerLinks<double>&, int, std::span<double>);

}  // namespace gossamer::train
