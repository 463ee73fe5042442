// The k values of largest magnitude (ties: the lower index), and where they belong. The message: k
// values, then k indices of 4 bytes, ascending. ‖C(x) − x‖² ≤ (1 − k/d) ‖x‖².
#include "gossip/codec.hpp"

namespace gossamer::gossip::codecs::topk {
namespace {

class TopK final : public Codec {
 public:
  explicit TopK(const FractionOptions& options) : fraction_(options.fraction) {}

  Fidelity fidelity() const override { return Fidelity::partial; }
  std::size_t words(std::size_t length) const override {
    return 2 * sent_values(fraction_, length);
  }

  std::size_t first_beyond(const MessagePart& part, float largest) const override {
    return first_number_beyond(part, part.total / 2, largest);
  }

  void encode(gpu::Device& device, std::span<const EncodeRequest> requests) const override {
    device.execute(device_requests(requests, [this](const EncodeRequest& r) {
      const std::size_t k = sent_values(fraction_, r.length);
      return gpu::TopKRequest{r.values, r.length, r.message,
                              reinterpret_cast<std::uint32_t*>(r.message + k), k};
    }));
  }

  void decode(gpu::Device& device, std::span<const DecodeRequest> requests) const override {
    clear_replaced(device, requests);
    device.execute(device_requests(requests, [this](const DecodeRequest& r) {
      const std::size_t k = sent_values(fraction_, r.length);
      return gpu::ScatterAddRequest{
          r.message, reinterpret_cast<const std::uint32_t*>(r.message + k),
          k,         r.values,
          r.length,  r.fault,
          r.tag};
    }));
  }
  const char* refusal() const override {
    return "its indices do not ascend, or do not all lie within the row";
  }

 private:
  double fraction_;
};

}  // namespace

CodecKind descriptor() {
  return {.name = "topk",
          .summary = "the values of largest magnitude with their indices, 8 bytes each",
          .source = "Aji and Heafield 2017; Stich, Cordonnier and Jaggi 2018",
          .parameters = fraction_parameters().specs(),
          .make = [](const ParameterValues& values,
                     const CodecContext&) -> Result<std::unique_ptr<Codec>> {
            GOSSAMER_TRY(const FractionOptions options,
                         fraction_parameters().read("codec", values));
            return std::unique_ptr<Codec>(std::make_unique<TopK>(options));
          }};
}

}  // namespace gossamer::gossip::codecs::topk
