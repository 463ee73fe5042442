// No codec: the row itself, 4 bytes a value.
#include "gossip/codec.hpp"

namespace gossamer::gossip::codecs::none {
namespace {

class None final : public Codec {
 public:
  Fidelity fidelity() const override { return Fidelity::exact; }
  std::size_t words(std::size_t length) const override { return length; }
  bool is_valuewise() const override { return true; }
  std::size_t first_beyond(const MessagePart& part, float largest) const override {
    return first_number_beyond(part, part.total, largest);
  }
  void encode(gpu::Device& device, std::span<const EncodeRequest> requests) const override {
    const auto copies = device_requests(requests, [](const EncodeRequest& r) {
      return gpu::CopyRequest<float>{r.values, r.message, r.length};
    });
    device.execute(copies);
  }
  void decode(gpu::Device& device, std::span<const DecodeRequest> requests) const override {
    clear_replaced(device, requests);
    const auto sums = device_requests(requests, [](const DecodeRequest& r) {
      return gpu::AxpyRequest<float>{1.0F, r.message, r.values, r.length};
    });
    device.execute(sums);
  }
};

}  // namespace

CodecKind descriptor() {
  return {.name = "none",
          .summary = "no encoding: 4 bytes a value",
          .source = "",
          .parameters = {},
          .make = make_plain_codec<None>};
}

}  // namespace gossamer::gossip::codecs::none
