#include "peer/watch/run_header.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "peer/watch/record_fields.hpp"

namespace gossamer::peer {

bool is_list(const Json& value, std::int64_t most) {
  return value.is_array() && std::ranges::all_of(value, [most](const Json& one) {
           return one.is_number_integer() && one.get<std::int64_t>() >= 0 &&
                  one.get<std::int64_t>() <= most;
         });
}

Json checked_header(Json header) {
  const auto peers = header.at("peers").get<std::int64_t>();
  const auto is_edge = [peers](const Json& edge) {
    return edge.is_array() && edge.size() == 2 && is_list(edge, peers - 1);
  };
  const auto null_unless = [](Json& object, const char* field, auto is_sound) {
    if (object.contains(field) && !is_sound(object[field])) object[field] = nullptr;
  };
  null_unless(header, "topology", [](const Json& value) { return value.is_object(); });
  if (header.contains("topology") && header["topology"].is_object()) {
    null_unless(header["topology"], "edge_list", [&](const Json& edges) {
      return edges.is_array() && std::ranges::all_of(edges, is_edge);
    });
    null_unless(header["topology"], "lattice",
                [&](const Json& sides) { return is_list(sides, peers); });
  }
  Json& config = header["config"];
  if (config.contains("attack"))
    null_unless(config["attack"], "peers",
                [&](const Json& ids) { return is_list(ids, peers - 1); });
  return header;
}

std::vector<std::vector<int>> neighbours_of(const Json& header, int peers) {
  const auto topology = header.find("topology");
  if (topology == header.end() || !topology->is_object()) return {};
  const auto edges = topology->find("edge_list");
  if (edges == topology->end() || edges->is_null()) return {};
  std::vector<std::vector<int>> neighbours(static_cast<std::size_t>(peers));
  for (const Json& edge : *edges) {
    const int a = edge[0].get<int>(), b = edge[1].get<int>();
    neighbours[static_cast<std::size_t>(a)].push_back(b);
    neighbours[static_cast<std::size_t>(b)].push_back(a);
  }
  return neighbours;
}

std::vector<int> honest_of(const Json& header, int peers) {
  std::vector<int> honest;
  std::set<int> hostile;
  const Json& config = header.at("config");
  if (config.contains("attack") && config["attack"].contains("peers"))
    for (const Json& peer : config["attack"]["peers"]) hostile.insert(peer.get<int>());
  for (int peer = 0; peer < peers; ++peer)
    if (!hostile.contains(peer)) honest.push_back(peer);
  return honest;
}

std::uint64_t logged_multiple_of(const Json& header) {
  const Json& config = header.at("config");
  const Json log = config.contains("log") ? config["log"] : Json();
  return count(log, "last") > 1 ? 1 : std::max<std::uint64_t>(1, count(log, "every"));
}

topology::Participants participants_of(const Json& header, int peers) {
  constexpr std::size_t kMostIds = 10'000'000;  // in all changes
  const topology::Participants all(peers);
  const auto run = header.at("config").find("run");
  if (run == header.at("config").end() || !run->is_object()) return all;
  const auto found = run->find("participants");
  const auto is_text = [](const Json& one) { return one.is_string(); };
  if (found == run->end() || !found->is_array() || !std::ranges::all_of(*found, is_text) ||
      found->size() > kMostIds / static_cast<std::size_t>(peers))
    return all;
  const auto texts = found->get<std::vector<std::string>>();
  const auto open = run->find("open");
  const auto read = open != run->end() && *open == Json(true)
                        ? topology::Participants::parse_open(texts, peers, "the header")
                        : topology::Participants::parse(texts, peers, "the header");
  return read.ok() ? read.value() : all;
}

void add_change(topology::Participants& participants, topology::ParticipantChange change) {
  const auto known = participants.changes();
  std::vector<topology::ParticipantChange> changes(known.begin() + 1, known.end());
  const auto place =
      std::ranges::lower_bound(changes, change.first, {}, &topology::ParticipantChange::first);
  if (place != changes.end() && place->first == change.first) *place = std::move(change);
  else changes.insert(place, std::move(change));
  participants.set_changes(changes);
}

}  // namespace gossamer::peer
