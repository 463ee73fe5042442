#include "peer/log/log_records.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string_view>

#include "base/id_list.hpp"
#include "base/printable.hpp"
#include "train/split/options.hpp"

namespace gossamer::peer {
namespace {

constexpr std::uint64_t kMaxPeers = 65535;  // as the limit of run.peers
constexpr std::uint64_t kMaxNodes = 2 * kMaxPeers;

/// The set of values that a field may have.
enum class FieldType {
  schema,
  count,
  positive,
  peers,
  peer_list,
  not_negative,
  number_or_null,
  text,
  name,
  reason,
  clock,
  config,
  hashes,
  event,
  route,
  node_or_null,
  name_or_null,
  refusals,
  links,
  deviations,
  distances,
  ids,
  topology
};

struct Field {
  const char* name;
  FieldType type;
};

constexpr Field kHeader[] = {{"schema", FieldType::schema},    {"run_id", FieldType::name},
                             {"peers", FieldType::peers},      {"servers", FieldType::count},
                             {"hosted", FieldType::peer_list}, {"parameters", FieldType::positive},
                             {"time", FieldType::clock},       {"config", FieldType::config}};
constexpr Field kRound[] = {{"round", FieldType::count},
                            {"peer", FieldType::count},
                            {"seconds", FieldType::not_negative},
                            {"train_loss", FieldType::number_or_null},
                            {"test_loss", FieldType::number_or_null},
                            {"test_accuracy", FieldType::number_or_null},
                            {"bytes_sent", FieldType::count},
                            {"bytes_received", FieldType::count},
                            {"train_seconds", FieldType::not_negative},
                            {"wait_seconds", FieldType::not_negative},
                            {"mix_seconds", FieldType::not_negative}};
constexpr Field kServer[] = {{"round", FieldType::count},
                             {"server", FieldType::count},
                             {"seconds", FieldType::not_negative},
                             {"test_loss", FieldType::number_or_null},
                             {"test_accuracy", FieldType::number_or_null},
                             {"bytes_sent", FieldType::count},
                             {"bytes_received", FieldType::count},
                             {"train_seconds", FieldType::not_negative},
                             {"wait_seconds", FieldType::not_negative}};
constexpr Field kNetwork[] = {{"round", FieldType::count},
                              {"consensus_distance", FieldType::number_or_null},
                              {"averaged_loss", FieldType::number_or_null},
                              {"averaged_accuracy", FieldType::number_or_null},
                              {"distance_to_optimum", FieldType::number_or_null},
                              {"averaged_distance_to_optimum", FieldType::number_or_null}};
constexpr Field kDistances[] = {{"distances_from_mean", FieldType::distances}};
constexpr Field kPrivacy[] = {{"private_steps", FieldType::count},
                              {"epsilon", FieldType::not_negative}};
constexpr Field kBackdoor[] = {{"backdoor_success", FieldType::number_or_null}};
constexpr Field kMembership[] = {{"round", FieldType::count},
                                 {"peer", FieldType::count},
                                 {"seconds", FieldType::not_negative},
                                 {"event", FieldType::event},
                                 {"neighbour", FieldType::node_or_null},
                                 {"reachable_peers", FieldType::node_or_null},
                                 {"cause", FieldType::name_or_null}};
constexpr Field kParticipants[] = {{"participants", FieldType::ids},
                                   {"topology", FieldType::topology}};
constexpr Field kRouted[] = {{"neighbour", FieldType::count},
                             {"route", FieldType::route},
                             {"relay", FieldType::node_or_null}};
constexpr Field kDeviations[] = {
    {"round", FieldType::count}, {"peer", FieldType::count}, {"deviations", FieldType::deviations}};
constexpr Field kEnd[] = {{"reason", FieldType::reason},
                          {"message", FieldType::text},
                          {"rounds", FieldType::count},
                          {"seconds", FieldType::not_negative},
                          {"wall_seconds", FieldType::not_negative},
                          {"node_steps", FieldType::count},
                          {"bytes_sent", FieldType::count},
                          {"refused_connections", FieldType::refusals},
                          {"lending_links", FieldType::links},
                          {"row_hashes", FieldType::hashes}};

constexpr std::string_view kReasons[] = {"finished",  "left",     "interrupted",
                                         "lost_peer", "diverged", "failed"};
constexpr const char* kRefusals[] = {"keys", "handshakes", "hellos"};
constexpr std::string_view kEvents[] = {"link_lost", "link_restored", "link_routed",
                                        "reachable", "joined",        "participants"};
constexpr std::string_view kRoutes[] = {"direct", "reversed", "relayed"};

bool is_one_of(const Json& value, std::span<const std::string_view> choices) {
  return value.is_string() && std::find(choices.begin(), choices.end(),
                                        value.get_ref<const std::string&>()) != choices.end();
}

bool is_text(const Json& value) {
  return value.is_string() && !value.get_ref<const std::string&>().empty();
}

bool is_count(const Json& value, std::uint64_t min, std::uint64_t max) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() >= min &&
         value.get<std::uint64_t>() <= max;
}

/// The nodes of a process: not empty, ascending.
bool is_peer_list(const Json& value) {
  if (!value.is_array() || value.empty()) return false;
  std::int64_t before = -1;
  for (const Json& peer : value) {
    if (!is_count(peer, 0, kMaxNodes - 1) || peer.get<std::int64_t>() <= before) return false;
    before = peer.get<std::int64_t>();
  }
  return true;
}

bool is_config(const Json& value) {
  if (!value.is_object()) return false;
  if (!std::all_of(value.begin(), value.end(),
                   [](const Json& section) { return section.is_object(); }))
    return false;
  const auto algorithm = value.find("algorithm");
  return algorithm != value.end() && algorithm->contains("kind") && is_text(algorithm->at("kind"));
}

bool is_deviation(const Json& value) {
  constexpr auto any = std::numeric_limits<std::uint64_t>::max();
  if (!value.is_object() || !value.contains("round") || !value.contains("from") ||
      !value.contains("used_round"))
    return false;
  const Json& used = value.at("used_round");
  const bool row_is_valid = !value.contains("row") || is_count(value.at("row"), 1, any);
  const bool values_are_valid = !value.contains("values") || is_count(value.at("values"), 1, any);
  return is_count(value.at("round"), 0, any) && is_count(value.at("from"), 0, kMaxPeers - 1) &&
         row_is_valid && values_are_valid && (used.is_null() || is_count(used, 0, any));
}

/// Numbers of connections that were refused, by reason; null where there were no connections.
bool is_refusals(const Json& value) {
  constexpr auto any = std::numeric_limits<std::uint64_t>::max();
  return value.is_null() ||
         (value.is_object() && std::ranges::all_of(kRefusals, [&value](const char* reason) {
            return value.contains(reason) && is_count(value.at(reason), 0, any);
          }));
}

/// Pairs of nodes; null where there were no connections.
bool is_links(const Json& value) {
  const auto is_link = [](const Json& link) {
    return link.is_array() && link.size() == 2 && std::ranges::all_of(link, [](const Json& node) {
             return is_count(node, 0, kMaxNodes - 1);
           });
  };
  return value.is_null() || (value.is_array() && std::ranges::all_of(value, is_link));
}

/// Ids as text: "0-3,7".
bool is_ids(const Json& value) {
  if (!is_text(value)) return false;
  const auto ids = parse_ids(value.get_ref<const std::string&>(), "participants");
  return ids.ok() && ids->back() < static_cast<int>(kMaxPeers);
}

/// Its edges are pairs of nodes, or not given.
bool is_topology(const Json& value) {
  return value.is_object() && value.contains("edge_list") && is_links(value.at("edge_list"));
}

bool fits(const Json& value, FieldType type) {
  constexpr auto any = std::numeric_limits<std::uint64_t>::max();
  switch (type) {
    case FieldType::schema: return is_count(value, 1, 1);
    case FieldType::count: return is_count(value, 0, any);
    case FieldType::positive: return is_count(value, 1, any);
    case FieldType::peers: return is_count(value, 1, kMaxPeers);
    case FieldType::peer_list: return is_peer_list(value);
    case FieldType::not_negative: return value.is_number() && value.get<double>() >= 0;
    case FieldType::number_or_null: return value.is_number() || value.is_null();
    case FieldType::text: return value.is_string();
    case FieldType::name: return is_text(value);
    case FieldType::clock: return value == "virtual" || value == "real";
    case FieldType::config: return is_config(value);
    case FieldType::hashes:
      return value.is_array() && std::all_of(value.begin(), value.end(), is_text);
    case FieldType::reason: return is_one_of(value, kReasons);
    case FieldType::event: return is_one_of(value, kEvents);
    case FieldType::route: return is_one_of(value, kRoutes);
    case FieldType::node_or_null: return value.is_null() || is_count(value, 0, kMaxNodes);
    case FieldType::name_or_null: return value.is_null() || is_text(value);
    case FieldType::refusals: return is_refusals(value);
    case FieldType::links: return is_links(value);
    case FieldType::deviations:
      return value.is_array() && std::all_of(value.begin(), value.end(), is_deviation);
    case FieldType::ids: return is_ids(value);
    case FieldType::topology: return is_topology(value);
    case FieldType::distances:
      return value.is_array() && value.size() <= kMaxPeers &&
             std::ranges::all_of(value, [](const Json& distance) {
               return fits(distance, FieldType::number_or_null);
             });
  }
  return false;
}

std::string description(FieldType type) {
  switch (type) {
    case FieldType::schema: return "1, the only one that this version reads";
    case FieldType::count: return "an integer ≥ 0";
    case FieldType::positive: return "an integer ≥ 1";
    case FieldType::peers: return fmt::format("an integer from 1 to {}", kMaxPeers);
    case FieldType::peer_list:
      return fmt::format("an ascending list of nodes from 0 to {}", kMaxNodes - 1);
    case FieldType::not_negative: return "a number ≥ 0";
    case FieldType::number_or_null: return "a number or null";
    case FieldType::text: return "a text";
    case FieldType::name: return "a text that is not empty";
    case FieldType::clock: return "virtual or real";
    case FieldType::config: return "a configuration, by section and key";
    case FieldType::hashes: return "a list of hashes";
    case FieldType::reason: return fmt::format("one of {}", fmt::join(kReasons, ", "));
    case FieldType::event: return fmt::format("one of {}", fmt::join(kEvents, ", "));
    case FieldType::route: return fmt::format("one of {}", fmt::join(kRoutes, ", "));
    case FieldType::node_or_null:
      return fmt::format("a node or a number of nodes, from 0 to {}, or null", kMaxNodes);
    case FieldType::name_or_null: return "a text that is not empty, or null";
    case FieldType::refusals:
      return fmt::format("integers ≥ 0 for {}, or null", fmt::join(kRefusals, ", "));
    case FieldType::links: return "a list of pairs of nodes, or null";
    case FieldType::deviations: return "a list of round, from and used_round";
    case FieldType::distances: return "a list with a number or null for each peer";
    case FieldType::ids: return "a list of peers, in the form 0-3,7";
    case FieldType::topology: return "a topology with its edge_list";
  }
  return {};
}

Problem check_epsilons(const Json& value, std::size_t most) {
  const auto is_epsilon = [](const Json& one) { return fits(one, FieldType::not_negative); };
  if (value.is_array() && value.size() <= most && std::ranges::all_of(value, is_epsilon)) return {};
  return fmt::format("epsilons: {} is not a list of numbers ≥ 0, one for each hosted peer",
                     excerpt(text_of(value)));
}

Problem check_fields(const Json& record, std::span<const Field> fields) {
  for (const Field& field : fields) {
    const auto found = record.find(field.name);
    if (found == record.end())
      return fmt::format("{}: missing in this {} record; expected {}", field.name,
                         record_type(record), description(field.type));
    if (!fits(*found, field.type))
      return fmt::format("{}: {} is not {}", field.name, excerpt(text_of(*found)),
                         description(field.type));
  }
  return {};
}

}  // namespace

std::string record_type(const Json& record) {
  if (!record.is_object()) return {};
  const auto type = record.find("record");
  return type != record.end() && type->is_string() ? type->get<std::string>() : std::string();
}

Problem check_header(const Json& record) {
  if (record_type(record) != "header")
    return "record: the first record of a log must be its header";
  if (Problem problem = check_fields(record, kHeader)) return problem;
  const auto last = record.at("hosted").back().get<std::uint64_t>(),
             peers = record.at("peers").get<std::uint64_t>();
  const auto servers = record.at("servers").get<std::uint64_t>();
  if (servers > kMaxPeers) return fmt::format("servers: {} is more than {}", servers, kMaxPeers);
  constexpr int most = train::SplitOptions::kMostLayers * train::SplitOptions::kMostParameters;
  if (const auto part = record.find("part");
      part != record.end() &&
      (!part->is_number_unsigned() || part->get<std::uint64_t>() >= std::uint64_t{most}))
    return fmt::format("part: {} is not one of {} parts", text_of(*part), most);
  if (last >= peers + servers)
    return fmt::format("hosted: there is no node {} in a network of {} peers and {} servers", last,
                       peers, servers);
  return {};
}

Problem check_record(const Json& record, const std::vector<int>& hosted, std::size_t models) {
  const std::string type = record_type(record);
  if (type == "header") return "record: a second header";
  if (type == "network") {
    if (Problem problem = check_fields(record, kNetwork)) return problem;
    if (record.contains("distances_from_mean"))
      if (Problem problem = check_fields(record, kDistances)) return problem;
    return record.contains("backdoor_success") ? check_fields(record, kBackdoor) : Problem();
  }
  if (type == "round" || type == "server" || type == "membership" || type == "deviations") {
    const char* node_field = type == "server" ? "server" : "peer";
    const std::span<const Field> fields = type == "round"    ? std::span<const Field>(kRound)
                                          : type == "server" ? std::span<const Field>(kServer)
                                          : type == "membership"
                                              ? std::span<const Field>(kMembership)
                                              : std::span<const Field>(kDeviations);
    if (Problem problem = check_fields(record, fields)) return problem;
    if (type == "membership" && record.at("event") == "participants")
      if (Problem problem = check_fields(record, kParticipants)) return problem;
    if (type == "membership" && record.at("event") == "link_routed")
      if (Problem problem = check_fields(record, kRouted)) return problem;
    if (type == "round" && (record.contains("private_steps") || record.contains("epsilon")))
      if (Problem problem = check_fields(record, kPrivacy)) return problem;
    const auto node = record.at(node_field).get<std::uint64_t>();
    if (node < kMaxNodes &&
        std::binary_search(hosted.begin(), hosted.end(), static_cast<int>(node)))
      return {};
    return fmt::format("{}: {} is not hosted by this process", node_field, node);
  }
  if (type == "end") {
    if (Problem problem = check_fields(record, kEnd)) return problem;
    if (record.contains("epsilons"))
      if (Problem problem = check_epsilons(record.at("epsilons"), hosted.size())) return problem;
    if (record.at("row_hashes").size() == models) return {};
    return fmt::format("row_hashes: there are {} hashes of {} rows", record.at("row_hashes").size(),
                       models);
  }
  return "record: not one of header, round, server, network, membership, deviations, end";
}

}  // namespace gossamer::peer
