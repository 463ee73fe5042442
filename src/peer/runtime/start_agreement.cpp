#include "peer/runtime/start_agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/id_list.hpp"
#include "net/wire/frame.hpp"

namespace gossamer::peer {
namespace {

/// Each page goes from one end of the graph to the other, in contributions of nearly their largest
/// size.
Status check_duration(int pages, int steps) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;  // to each neighbour
  const auto messages = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(steps);
  if (messages * net::kMaxContributionBytes <= kMostBytes) return {};
  return invalid_error(
      fmt::format("own data: the moments of all shards would take {} messages to each neighbour at "
                  "the start, more than {}; scale the files (data.standardise = false), or give "
                  "the moments of fewer features, or choose a topology with a smaller diameter",
                  messages, kMostBytes / net::kMaxContributionBytes));
}

}  // namespace

Result<StartAgreement> StartAgreement::make(const Setup& setup, const std::vector<int>& hosted,
                                            const std::vector<gossip::Round>& rounds) {
  const auto needs_no_state = [&setup, hosted](gossip::Round round) {
    return setup.counted(hosted, round).empty();
  };
  // Peers that join an open run later, or never take part, have no state that counts, and no
  // process that could say so.
  std::vector<int> known = hosted;
  const topology::Participants& participants = setup.schedule->participants();
  for (int peer = 0; peer < setup.workers(); ++peer)
    if (participants.is_open() ? !participants.takes_part(peer, 0)
                               : !participants.next_round(peer, 0))
      known.push_back(peer);
  const auto idles = [&](int node) {
    return !participants.is_open() && !participants.next_round(node, 0);
  };
  if (std::ranges::all_of(hosted, idles))  // it has no neighbours to agree with
    return invalid_error(
        fmt::format("run.participants: {} {} part in no round, so this process has nothing to do; "
                    "give the ids to one that hosts others too",
                    peers_text(hosted), hosted.size() == 1 ? "takes" : "take"));
  StartAgreement agreement(setup, StartRoundAgreement(known, setup.nodes(), rounds, needs_no_state),
                           std::max(steps_to_reach_all(setup), 1));
  if (Shards own = setup.workload->own_shards(); !own.empty()) {
    GOSSAMER_TRY(agreement.shards_,
                 ShardAgreement::make(std::move(own), setup.workload->standardised_features()));
    GOSSAMER_TRY_STATUS(check_duration(agreement.shards_->pages(), agreement.steps_));
  }
  return agreement;
}

net::AllGather StartAgreement::all_gather() {
  net::AllGather gather;
  SecretPairs* const pairs = setup_->workload->secret_pairs();
  const int pages = shards_ ? shards_->pages() : 0;
  gather.steps = steps_ * (1 + pages) + (pairs != nullptr ? 1 : 0);
  gather.contribution = [this, pairs, pages] {
    const int page = sent_++ / steps_ - 1;
    if (page == pages) return pairs->contribution();
    return page < 0 ? rounds_.contribution() : shards_->contribution(page);
  };
  gather.merge = [this, pairs, pages](int here, int there, const std::string& contribution) {
    const int page = (sent_ - 1) / steps_ - 1;
    if (page == pages) return pairs->agree(here, there, contribution);
    return page < 0 ? rounds_.merge(contribution) : shards_->merge(page, contribution);
  };
  return gather;
}

Result<StartRoundAgreement::Outcome> StartAgreement::round() const {
  return rounds_.outcome(setup_->tolerates_peer_loss());
}

Result<Shards> StartAgreement::shards() const { return shards_ ? shards_->outcome() : Shards(); }

}  // namespace gossamer::peer
