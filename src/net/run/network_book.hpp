// The address book and the discovery of a network, made from its options.
#pragma once

#include <string>

#include "net/discovery/discovery.hpp"
#include "net/listening.hpp"
#include "net/options.hpp"
#include "net/tls/authenticator.hpp"

namespace gossamer::net {

/// `authenticator` signs and checks records; null: the network has no keys. It outlives the book.
AddressBookOptions book_options(const std::string& run_id, int nodes, const NetOptions& options,
                                const Listening& listening, const Authenticator* authenticator);

/// Without callbacks. net.seeds must be valid.
DiscoveryOptions discovery_options(const NetOptions& options, const Listening& listening);

/// The longest time for a connection or a handshake: a machine that is not there answers nothing at
/// all.
gossip::Time exchange_deadline(const NetOptions& options);

}  // namespace gossamer::net
