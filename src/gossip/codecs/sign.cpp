// Scaled signs in blocks of 1,024 values: one scale a block, the mean of |x|, and one bit a value.
// The message: all scales, then all bits. ‖C(x) − x‖² = ‖x‖² − ‖x‖₁² / d in each block of d values.
#include "gossip/codec.hpp"

namespace gossamer::gossip::codecs::sign {
namespace {

class Sign final : public Codec {
 public:
  Fidelity fidelity() const override { return Fidelity::partial; }
  std::size_t words(std::size_t length) const override {
    return gpu::sign_blocks(length) + gpu::sign_words(length);
  }
  // As in int8: ⌈d / 1,024⌉ scales, and a word for each 32 values.
  std::size_t first_beyond(const MessagePart& part, float largest) const override {
    constexpr std::size_t block_words = 1 + gpu::kSignBlock / 32;
    return first_number_beyond(part, (part.total + block_words - 1) / block_words, largest);
  }
  void encode(gpu::Device& device, std::span<const EncodeRequest> requests) const override {
    device.execute(device_requests(requests, [](const EncodeRequest& r) {
      float* bits = r.message + gpu::sign_blocks(r.length);
      return gpu::EncodeSignsRequest{r.values, reinterpret_cast<std::uint32_t*>(bits), r.message,
                                     r.length};
    }));
  }
  void decode(gpu::Device& device, std::span<const DecodeRequest> requests) const override {
    device.execute(device_requests(requests, [](const DecodeRequest& r) {
      const float* bits = r.message + gpu::sign_blocks(r.length);
      return gpu::DecodeSignsRequest{reinterpret_cast<const std::uint32_t*>(bits), r.message,
                                     r.values, r.length, r.combine == Combine::add};
    }));
  }
};

}  // namespace

CodecKind descriptor() {
  return {.name = "sign",
          .summary = "one bit a value, and the mean magnitude of each block of 1,024 values",
          .source = "Karimireddy et al. 2019",
          .parameters = {},
          .make = make_plain_codec<Sign>};
}

}  // namespace gossamer::gossip::codecs::sign
