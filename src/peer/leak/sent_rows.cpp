#include "peer/leak/sent_rows.hpp"

#include <limits>
#include <memory>
#include <utility>

#include "base/check.hpp"
#include "gpu/cpu_device.hpp"

namespace gossamer::peer {

/// Sees the rows of each round once, in order, as the one "hostile" peer of the plan. It makes no
/// message, since the plan begins after every run.
class RowKeeper final : public gossip::Attack {
 public:
  explicit RowKeeper(SentRows& kept) : kept_(kept) {}

  void observe(const gossip::AttackView& view) override {
    GOSSAMER_CHECK(std::ssize(view.rows) == kept_.peers_, "the rows of all peers");
    for (int peer = 0; peer < kept_.peers_; ++peer)
      kept_.keep(peer, view.t, {.exact = view.rows[static_cast<std::size_t>(peer)]});
  }
  std::vector<double> message(const gossip::AttackView&, int, double) const override { return {}; }

 private:
  SentRows& kept_;
};

/// Stands in for the codec of a run, and decodes every message for itself.
class CodecTap final : public gossip::Codec {
 public:
  /// `starts`: the peers' starting rows, if messages are of differences from what receivers have
  /// decoded before; else empty.
  CodecTap(std::unique_ptr<gossip::Codec> codec, std::vector<std::vector<float>> starts,
           SentRows& kept)
      : codec_(std::move(codec)), starts_(std::move(starts)), kept_(kept) {
    for (const std::vector<float>& start : starts_) estimates_.emplace_back(start.size());
  }

  gossip::Fidelity fidelity() const override { return codec_->fidelity(); }
  std::size_t words(std::size_t length) const override { return codec_->words(length); }
  std::size_t scratch(std::size_t length) const override { return codec_->scratch(length); }
  bool is_valuewise() const override { return codec_->is_valuewise(); }
  void decode(gpu::Device& device, std::span<const gossip::DecodeRequest> requests) const override {
    codec_->decode(device, requests);
  }
  std::size_t first_beyond(const gossip::MessagePart& part, float largest) const override {
    return codec_->first_beyond(part, largest);
  }
  const char* refusal() const override { return codec_->refusal(); }

  void encode(gpu::Device& device, std::span<const gossip::EncodeRequest> requests) const override {
    codec_->encode(device, requests);
    for (const gossip::EncodeRequest& request : requests) {
      std::vector<float> message(words(request.length)), values(request.length),
          decoded(request.length), scratch(codec_->scratch(request.length));
      device.download(message.data(), request.message, message.size() * sizeof(float));
      device.download(values.data(), request.values, values.size() * sizeof(float));
      const gossip::DecodeRequest decode{.message = message.data(),
                                         .values = decoded.data(),
                                         .length = decoded.size(),
                                         .peer = request.peer,
                                         .round = request.round,
                                         .scratch = scratch.data()};
      codec_->decode(host_, {&decode, 1});
      SentRows::Sent sent{.exact = std::move(values), .decoded = std::move(decoded)};
      if (!starts_.empty()) add_up(static_cast<std::size_t>(request.peer), sent);
      kept_.keep(request.peer, request.round, std::move(sent));
    }
  }

 private:
  /// Makes rows of a difference and of what was decoded of it.
  void add_up(std::size_t peer, SentRows::Sent& sent) const {
    std::vector<float>&estimate = estimates_[peer], &start = starts_[peer];
    const bool omits = fidelity() == gossip::Fidelity::partial;
    if (omits) sent.guessed.resize(estimate.size());
    for (std::size_t k = 0; k < estimate.size(); ++k) {
      const float came = sent.decoded[k];
      sent.exact[k] += estimate[k];
      estimate[k] += came;
      sent.decoded[k] = estimate[k];
      if (came != 0) start[k] = 0;
      if (omits) sent.guessed[k] = estimate[k] + start[k];
    }
  }

  std::unique_ptr<gossip::Codec> codec_;
  mutable gpu::CpuDevice host_{1};
  mutable std::vector<std::vector<float>> starts_,  ///< 0 where a value has come since
      estimates_;                                   ///< sums of what was decoded
  SentRows& kept_;
};

void SentRows::listen(Setup& setup) {
  const bool differences = setup.config.algorithm.kind == "choco";
  if (!differences && setup.codec->fidelity() == gossip::Fidelity::exact) {
    setup.attack = plan();
    return;
  }
  std::vector<std::vector<float>> starts;
  for (int peer = 0; differences && peer < peers_; ++peer)
    setup.workload->initialise(peer, starts.emplace_back(setup.parameters));
  setup.codec = std::make_unique<CodecTap>(std::move(setup.codec), std::move(starts), *this);
}

void SentRows::keep(int peer, gossip::Round t, Sent sent) {
  if (t >= sent_.size()) return;
  Sent& kept = sent_[t][static_cast<std::size_t>(peer)];
  GOSSAMER_CHECK(kept.exact.empty(), "a peer sends one row in a round");
  kept = std::move(sent);
  ++rows_;
}

gossip::AttackPlan SentRows::plan() {
  gossip::AttackPlan plan;
  plan.hostile = {0};
  plan.from = std::numeric_limits<gossip::Round>::max();
  plan.reads_honest_rows = true;
  plan.make = [this] { return std::make_unique<RowKeeper>(*this); };
  return plan;
}

}  // namespace gossamer::peer
