// bf16: the upper half of each float, two values to a word. A value is off by 2⁻⁸ of itself at
// most.
#include <bit>

#include "base/magnitude.hpp"
#include "gossip/codec.hpp"

namespace gossamer::gossip::codecs::bf16 {
namespace {

class Bf16 final : public Codec {
 public:
  Fidelity fidelity() const override { return Fidelity::rounded; }
  std::size_t words(std::size_t length) const override { return (length + 1) / 2; }
  bool is_valuewise() const override { return true; }
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
    device.execute(device_requests(requests, [](const EncodeRequest& r) {
      return gpu::EncodeBf16Request{r.values, reinterpret_cast<std::uint16_t*>(r.message),
                                    r.length};
    }));
  }
  void decode(gpu::Device& device, std::span<const DecodeRequest> requests) const override {
    device.execute(device_requests(requests, [](const DecodeRequest& r) {
      return gpu::DecodeBf16Request{reinterpret_cast<const std::uint16_t*>(r.message), r.values,
                                    r.length, r.combine == Combine::add};
    }));
  }
};

}  // namespace

CodecKind descriptor() {
  return {.name = "bf16",
          .summary = "the upper half of each float, rounded: 2 bytes a value",
          .source = "Kalamkar et al. 2019",
          .parameters = {},
          .make = make_plain_codec<Bf16>};
}

}  // namespace gossamer::gossip::codecs::bf16
