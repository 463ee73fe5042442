#include "gossip/mixing/mixer.hpp"

#include "base/check.hpp"
#include "gossip/mixing/coded_mixer.hpp"
#include "gossip/mixing/deadline_mixer.hpp"
#include "gossip/mixing/freshest_mixer.hpp"
#include "gossip/mixing/gathering_mixer.hpp"
#include "gossip/mixing/streaming_mixer.hpp"

namespace gossamer::gossip {

std::optional<Round> Mixer::period() const {
  const int period = context_.process.schedule.period();
  return period > 0 ? std::optional(static_cast<Round>(period)) : std::nullopt;
}

std::unique_ptr<Mixer> make_mixer(const MixerContext& context) {
  const ExchangeOptions& options = context.process.options;
  switch (options.policy) {
    case Policy::deadline: return std::make_unique<DeadlineMixer>(context);
    case Policy::stale: return std::make_unique<FreshestMixer>(context, options.staleness);
    case Policy::async: return std::make_unique<FreshestMixer>(context, std::nullopt);
    case Policy::sync: break;
  }
  GOSSAMER_CHECK(!is_lossy(options) || options.rule == nullptr,
                 "a rule takes the rows that a lossy codec does not send");
  if (is_lossy(options)) return std::make_unique<CodedMixer>(context);
  if (options.rule != nullptr) return std::make_unique<GatheringMixer>(context);
  return std::make_unique<StreamingMixer>(context);
}

}  // namespace gossamer::gossip
