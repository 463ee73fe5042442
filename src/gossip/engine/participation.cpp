#include "gossip/engine/participation.hpp"

#include <algorithm>

namespace gossamer::gossip {

Round Participation::next_round(Round t, Round end) const {
  return std::min(participants().next_round(node_.id(), t).value_or(end), end);
}

std::uint64_t Participation::steps_of_round() const {
  const int epochs = algorithm_.epochs_per_round();
  return epochs > 0 ? static_cast<std::uint64_t>(epochs) * node_.batches_per_epoch(node_.id())
                    : static_cast<std::uint64_t>(algorithm_.steps_per_round());
}

void Participation::expect_donor(Round t) {
  const auto joining = donors_.next(node_.id(), t);
  node_.endpoint().expect_state_from(joining ? std::optional(joining->donor) : std::nullopt,
                                     /*soon=*/false);
}

task<Participation::Wait> Participation::await_rows(Round t, Membership* membership,
                                                    std::function<bool()> stops) {
  Endpoint& endpoint = node_.endpoint();
  const int donor = donors_.next(node_.id(), t)->donor;
  expect_donor(t);
  if (membership != nullptr) membership->set_wait(t);
  const auto has_rows = [&] {
    return endpoint.messenger().has_chunk(donor, endpoint.state_channel());
  };
  const auto donor_is_missed = [&] {
    return membership != nullptr && !endpoint.view().is_present(donor, t) &&
           membership->wait().others_have_begun();
  };
  waits_ = true;
  while (!stops() && !has_rows() && !donor_is_missed()) co_await endpoint.messenger().wait_event();
  waits_ = false;
  if (stops()) co_return Wait::stopped;
  if (!has_rows()) co_return Wait::donor_lost;
  const bool taken = co_await take_rows(donor, t);
  if (!taken) co_return Wait::donor_lost;
  endpoint.begin_at(t);
  if (membership != nullptr) membership->set_wait(std::nullopt);
  expect_donor(t + 1);
  co_return Wait::taken;
}

/// Returns false if the donor is lost before all rows have arrived.
task<bool> Participation::take_rows(int donor, Round t) {
  Endpoint& endpoint = node_.endpoint();
  endpoint.expect_state_from(donor, /*soon=*/true);
  const bool whole = co_await node_.receive_state(donor);
  endpoint.expect_state_from(std::nullopt);
  if (!whole) co_return false;
  node_.set_steps_done(t * steps_of_round());
  co_await node_.reinitialise_rows();
  co_await node_.reset_optimizer();
  co_return true;
}

task<bool> Participation::begin_round(Round last, Round t, Membership* membership) {
  give_rows(last + 1, t);
  if (membership != nullptr) membership->wait().announce(t);
  if (!node_.conserves_sums()) co_return false;
  co_await node_.reinitialise_sums();
  co_return true;
}

void Participation::give_rows(Round first, Round last) {
  for (const int receiver : donors_.receivers(node_.id(), first, last))
    if (node_.endpoint().view().is_present(receiver, last)) node_.send_state(receiver);
}

}  // namespace gossamer::gossip
