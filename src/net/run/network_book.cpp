#include "net/run/network_book.hpp"

#include <algorithm>

namespace gossamer::net {

using namespace std::chrono_literals;

namespace {

constexpr gossip::Time kLongestAttempt = 5s;
// A suspected process has this many failure timeouts to refute the suspicion, within these bounds.
constexpr int kTimeoutsOfSuspicion = 5;
constexpr gossip::Time kShortestSuspicion = 5s, kLongestSuspicion = 60s;

}  // namespace

AddressBookOptions book_options(const std::string& run_id, int nodes, const NetOptions& options,
                                const Listening& listening, const Authenticator* authenticator) {
  AddressBookOptions book;
  book.nodes = nodes;
  book.network = book_network(run_id, nodes);
  book.process = listening.process;
  book.suspicion_time =
      std::clamp<gossip::Time>(kTimeoutsOfSuspicion * gossip::from_seconds(options.failure_timeout),
                               kShortestSuspicion, kLongestSuspicion);
  if (authenticator == nullptr) return book;
  book.sign = [authenticator](const std::string& text) { return authenticator->sign(text); };
  book.is_signed = [authenticator](int peer, const std::string& text, const Signature& signature) {
    const Member* member = authenticator->members().find(peer);
    return member != nullptr && std::ranges::any_of(member->keys, [&](const PublicKey& key) {
             return has_signed(key, text, signature);
           });
  };
  return book;
}

DiscoveryOptions discovery_options(const NetOptions& options, const Listening& listening) {
  DiscoveryOptions discovery;
  for (const std::string& seed : options.seeds)
    discovery.seeds.push_back(parse_address(seed).value());
  discovery.listening = listening.address;
  discovery.deadline = exchange_deadline(options);
  discovery.patience = gossip::from_seconds(options.join_timeout);
  discovery.may_call = [options](const Address& address) {
    return !address.is_none() && check_reach(options, address, "").ok();
  };
  return discovery;
}

gossip::Time exchange_deadline(const NetOptions& options) {
  return std::min(gossip::from_seconds(options.failure_timeout), kLongestAttempt);
}

}  // namespace gossamer::net
