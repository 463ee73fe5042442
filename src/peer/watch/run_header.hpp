// What the page of a run reads of the header of a log, which may come from a hostile file.
#pragma once

#include <cstdint>
#include <vector>

#include "peer/storage/json.hpp"
#include "topology/participants/participants.hpp"

namespace gossamer::peer {

/// Whether a value is a list of integers of 0 to `most`.
bool is_list(const Json& value, std::int64_t most);

/// The header, which passed the checks of logs (log_records.hpp), with null in place of fields that
/// the page reads, that these checks let through, and that are not what they should be.
Json checked_header(Json header);

// Of a checked header:

/// The neighbours of each peer, in both directions; empty if edges are not known.
std::vector<std::vector<int>> neighbours_of(const Json& header, int peers);

/// The peers that attack.peers does not name, ascending.
std::vector<int> honest_of(const Json& header, int peers);

/// logged_multiple() of its run; 1 if that is not known.
std::uint64_t logged_multiple_of(const Json& header);

/// Which peers take part in which rounds; all peers in all of them where run.participants is not
/// sound, or longer than the page can use.
topology::Participants participants_of(const Json& header, int peers);

/// Adds a change to those of an open run, in place of one from the same round.
void add_change(topology::Participants& participants, topology::ParticipantChange change);

}  // namespace gossamer::peer
