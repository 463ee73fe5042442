// bf16: the upper half of each float, two values to a word. A value is off by 2⁻⁸ of itself at
// most.
#include <bit>

#include "base/magnitude.hpp"
#include "gossip/codec.hpp"

namespace gossamer::gossip::codecs {
namespace {

std::uint16_t* halves(const float* message) {
  return const_cast<std::uint16_t*>(reinterpret_cast<const std::uint16_t*>(message));
}

class Bf16 final : public Codec {
 public:
  Fidelity fidelity() const override { return Fidelity::rounded; }
  std::size_t words(std::size_t length) const override { return (length + 1) / 2; }
  std::size_t first_beyond(const MessagePart& part, float largest) const override {
    const auto most = std::bit_cast<std::uint32_t>(largest);
    for (std::size_t i = 0; i < part.words.size(); ++i) {
      const auto word = std::bit_cast<std::uint32_t>(part.words[i]);
      if ((word << 16 & kMagnitudeBits) > most || (word & 0xFFFF0000U & kMagnitudeBits) > most)
        return i;
    }
    return part.words.size();
  }
  void encode(gpu::Device& device, std::span<const EncodeRequest> requests) const override {
    const auto coded = device_requests(requests, [](const EncodeRequest& r) {
      return gpu::Bf16Request{const_cast<float*>(r.values), halves(r.message), r.length};
    });
    device.to_bf16(coded);
  }
  void decode(gpu::Device& device, std::span<const DecodeRequest> requests) const override {
    const auto coded = device_requests(requests, [](const DecodeRequest& r) {
      return gpu::Bf16Request{r.values, halves(r.message), r.length, r.combine == Combine::add};
    });
    device.from_bf16(coded);
  }
};

}  // namespace

CodecKind bf16() {
  return {.name = "bf16",
          .summary = "the upper half of each float, rounded: 2 bytes a value",
          .source = "Kalamkar et al. 2019",
          .parameters = {},
          .make = make_plain_codec<Bf16>};
}

}  // namespace gossamer::gossip::codecs
