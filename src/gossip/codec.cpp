#include "gossip/codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gossamer::gossip {

Result<std::unique_ptr<Codec>> make_codec(const std::string& kind, const ParameterValues& values,
                                          const CodecContext& context) {
  std::string names;
  for (const CodecKind& known : codecs::catalog()) {
    if (known.name == kind) return known.make(values, context);
    names += (names.empty() ? "" : ", ") + known.name;
  }
  return Error{ErrorKind::invalid, fmt::format("codec.kind: unknown codec '{}'; there are: {}", kind, names)};
}

const ParameterSet<FractionOptions>& fraction_parameters() {
  static const auto parameters = ParameterSet<FractionOptions>().add(
      "fraction", &FractionOptions::fraction,
      {.help = "how much of a row is sent: k = fraction · d values, 1 at least", .minimum = 0, .maximum = 1,
       .minimum_excluded = true});
  return parameters;
}

std::size_t part_of(double fraction, std::size_t length) {
  const auto count = static_cast<std::size_t>(std::llround(fraction * static_cast<double>(length)));
  return std::clamp<std::size_t>(count, 1, length);
}

void clear_replaced(gpu::Device& device, std::span<const DecodeRequest> requests) {
  std::vector<gpu::FillRequest<float>> fills;
  for (const DecodeRequest& request : requests)
    if (request.combine == Combine::replace) fills.push_back({0.0F, request.values, request.length});
  if (!fills.empty()) device.fill(std::span<const gpu::FillRequest<float>>(fills));
}

}  // namespace gossamer::gossip
