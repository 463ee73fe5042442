#include "peer/runtime/start_agreement.hpp"

#include <algorithm>
#include <string>

namespace gossamer::peer {

Result<StartAgreement> StartAgreement::make(const Setup& setup, const std::vector<int>& hosted,
                                            const std::vector<gossip::Round>& rounds) {
  StartAgreement agreement(setup, StartRoundAgreement(hosted, setup.nodes(), rounds));
  if (Shards own = setup.workload->own_shards(); !own.empty()) {
    GOSSAMER_TRY(agreement.shards_,
                 ShardAgreement::make(std::move(own), setup.workload->standardised_features()));
  }
  return agreement;
}

net::AllGather StartAgreement::all_gather() {
  const int steps = std::max(steps_to_reach_all(*setup_), 1);
  net::AllGather gather;
  gather.steps = steps * (1 + (shards_ ? shards_->pages() : 0));
  gather.contribution = [this, steps] {
    const int page = sent_++ / steps - 1;
    return page < 0 ? rounds_.contribution() : shards_->contribution(page);
  };
  gather.merge = [this, steps](const std::string& contribution) {
    const int page = (sent_ - 1) / steps - 1;
    return page < 0 ? rounds_.merge(contribution) : shards_->merge(page, contribution);
  };
  return gather;
}

Result<StartRoundAgreement::Outcome> StartAgreement::round() const {
  return rounds_.outcome(setup_->tolerates_peer_loss());
}

Result<Shards> StartAgreement::shards() const { return shards_ ? shards_->outcome() : Shards(); }

}  // namespace gossamer::peer
