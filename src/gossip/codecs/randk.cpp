// k values at random places. The places are keyed by (seed, sender, round), so both ends know them
// and only values travel. They are one of each of k nearly equal strata of the row rather than any
// k of d: O(k) to draw, in ascending order, and as each value is sent with probability 1/⌈d/k⌉ at
// least, E‖C(x) − x‖² ≤ (1 − 1/⌈d/k⌉) ‖x‖², as with any k where k divides d.
#include "gossip/codec.hpp"

namespace gossamer::gossip::codecs::randk {
namespace {

class RandK final : public Codec {
 public:
  RandK(const FractionOptions& options, std::uint64_t seed)
      : fraction_(options.fraction), seed_(seed) {}

  Fidelity fidelity() const override { return Fidelity::partial; }
  std::size_t words(std::size_t length) const override { return sent_values(fraction_, length); }

  std::size_t first_beyond(const MessagePart& part, float largest) const override {
    return first_number_beyond(part, part.total, largest);
  }
  void encode(gpu::Device& device, std::span<const EncodeRequest> requests) const override {
    device.execute(device_requests(requests, [this](const EncodeRequest& r) {
      return gpu::SampleRequest{r.values, r.length, r.message, sample(r)};
    }));
  }
  void decode(gpu::Device& device, std::span<const DecodeRequest> requests) const override {
    clear_replaced(device, requests);
    device.execute(device_requests(requests, [this](const DecodeRequest& r) {
      return gpu::AddSampledRequest{r.message, r.values, r.length, sample(r)};
    }));
  }

 private:
  template <class Request>
  gpu::StratifiedSample sample(const Request& r) const {
    return {.count = sent_values(fraction_, r.length),
            .seed = seed_,
            .peer = static_cast<std::uint32_t>(r.peer),
            .purpose = Purpose::codec,
            .step = r.round};
  }

  double fraction_;
  std::uint64_t seed_;
};

}  // namespace

CodecKind descriptor() {
  return {.name = "randk",
          .summary = "values at random indices that both ends know, 4 bytes each",
          .source = "Stich, Cordonnier and Jaggi 2018",
          .parameters = fraction_parameters().specs(),
          .make = [](const ParameterValues& values,
                     const CodecContext& context) -> Result<std::unique_ptr<Codec>> {
            GOSSAMER_TRY(const FractionOptions options,
                         fraction_parameters().read("codec", values));
            return std::unique_ptr<Codec>(std::make_unique<RandK>(options, context.seed));
          }};
}

}  // namespace gossamer::gossip::codecs::randk
