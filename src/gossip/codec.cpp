#include "gossip/codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/magnitude.hpp"

namespace gossamer::gossip {

Result<std::unique_ptr<Codec>> make_codec(const std::string& kind, const ParameterValues& values,
                                          const CodecContext& context) {
  std::string names;
  for (const CodecKind& known : codecs::catalog()) {
    if (known.name == kind) return known.make(values, context);
    names += (names.empty() ? "" : ", ") + known.name;
  }
  return invalid_error(fmt::format("codec.kind: unknown codec '{}'; there are: {}", kind, names));
}

const ParameterSet<FractionOptions>& fraction_parameters() {
  static const auto parameters = ParameterSet<FractionOptions>().add(
      "fraction", &FractionOptions::fraction,
      {.help = "how much of a row is sent: k = fraction · d values, 1 at least",
       .minimum = 0,
       .maximum = 1,
       .minimum_excluded = true});
  return parameters;
}

std::size_t sent_values(double fraction, std::size_t length) {
  const auto count = static_cast<std::size_t>(std::llround(fraction * static_cast<double>(length)));
  return std::min(length, std::max<std::size_t>(count, 1));
}

std::size_t first_number_beyond(const MessagePart& part, std::size_t numbers, float largest) {
  const std::size_t count =
      part.first < numbers ? std::min(numbers - part.first, part.words.size()) : 0;
  const std::size_t at = first_beyond(part.words.first(count), largest);
  return at == count ? part.words.size() : at;
}

void clear_replaced(gpu::Device& device, std::span<const DecodeRequest> requests) {
  std::vector<gpu::FillRequest<float>> fills;
  for (const DecodeRequest& request : requests)
    if (request.combine == Combine::replace)
      fills.push_back({0.0F, request.values, request.length});
  if (!fills.empty()) device.execute(fills);
}

}  // namespace gossamer::gossip
