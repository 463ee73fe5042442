#include "peer/log/log_records.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string_view>

namespace gossamer::peer {
namespace {

constexpr std::uint64_t kMostPeers = 65535;  // as run.peers
constexpr std::uint64_t kMostNodes = 2 * kMostPeers;

/// What a field holds.
enum class Form {
  schema,
  count,
  positive,
  peers,
  peer_list,
  seconds,
  figure,
  text,
  name,
  reason,
  clock,
  config,
  hashes,
  event,
  node,
  deviations
};

struct Field {
  const char* name;
  Form form;
};

constexpr Field kHeader[] = {{"schema", Form::schema},    {"run_id", Form::name},
                             {"peers", Form::peers},      {"servers", Form::count},
                             {"hosted", Form::peer_list}, {"parameters", Form::positive},
                             {"time", Form::clock},       {"config", Form::config}};
constexpr Field kRound[] = {{"round", Form::count},           {"peer", Form::count},
                            {"seconds", Form::seconds},       {"train_loss", Form::figure},
                            {"test_loss", Form::figure},      {"test_accuracy", Form::figure},
                            {"bytes_sent", Form::count},      {"bytes_received", Form::count},
                            {"train_seconds", Form::seconds}, {"wait_seconds", Form::seconds},
                            {"mix_seconds", Form::seconds}};
constexpr Field kServer[] = {{"round", Form::count},          {"server", Form::count},
                             {"seconds", Form::seconds},      {"test_loss", Form::figure},
                             {"test_accuracy", Form::figure}, {"bytes_sent", Form::count},
                             {"bytes_received", Form::count}, {"train_seconds", Form::seconds},
                             {"wait_seconds", Form::seconds}};
constexpr Field kNetwork[] = {{"round", Form::count},
                              {"consensus_distance", Form::figure},
                              {"averaged_loss", Form::figure},
                              {"averaged_accuracy", Form::figure},
                              {"distance_to_optimum", Form::figure}};
constexpr Field kMembership[] = {{"round", Form::count},     {"peer", Form::count},
                                 {"seconds", Form::seconds}, {"event", Form::event},
                                 {"of", Form::node},         {"within_reach", Form::node}};
constexpr Field kDeviations[] = {
    {"round", Form::count}, {"peer", Form::count}, {"deviations", Form::deviations}};
constexpr Field kEnd[] = {{"reason", Form::reason},        {"message", Form::text},
                          {"rounds", Form::count},         {"seconds", Form::seconds},
                          {"wall_seconds", Form::seconds}, {"node_steps", Form::count},
                          {"bytes_sent", Form::count},     {"row_hashes", Form::hashes}};

constexpr std::string_view kReasons[] = {"finished", "interrupted", "lost_peer", "diverged",
                                         "failed"};
constexpr std::string_view kEvents[] = {"lost", "back", "reach", "joined"};

bool is_one_of(const Json& value, std::span<const std::string_view> words) {
  return value.is_string() &&
         std::find(words.begin(), words.end(), value.get_ref<const std::string&>()) != words.end();
}

bool is_text(const Json& value) {
  return value.is_string() && !value.get_ref<const std::string&>().empty();
}

bool is_count(const Json& value, std::uint64_t smallest, std::uint64_t largest) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() >= smallest &&
         value.get<std::uint64_t>() <= largest;
}

/// Nodes of a process: some, ascending.
bool is_peer_list(const Json& value) {
  if (!value.is_array() || value.empty()) return false;
  std::int64_t before = -1;
  for (const Json& peer : value) {
    if (!is_count(peer, 0, kMostNodes - 1) || peer.get<std::int64_t>() <= before) return false;
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
  const bool of_row = !value.contains("row") || is_count(value.at("row"), 1, any);
  const bool in_part = !value.contains("values") || is_count(value.at("values"), 1, any);
  return is_count(value.at("round"), 0, any) && is_count(value.at("from"), 0, kMostPeers - 1) &&
         of_row && in_part && (used.is_null() || is_count(used, 0, any));
}

bool fits(const Json& value, Form form) {
  constexpr auto any = std::numeric_limits<std::uint64_t>::max();
  switch (form) {
    case Form::schema: return is_count(value, 1, 1);
    case Form::count: return is_count(value, 0, any);
    case Form::positive: return is_count(value, 1, any);
    case Form::peers: return is_count(value, 1, kMostPeers);
    case Form::peer_list: return is_peer_list(value);
    case Form::seconds: return value.is_number() && value.get<double>() >= 0;
    case Form::figure: return value.is_number() || value.is_null();
    case Form::text: return value.is_string();
    case Form::name: return is_text(value);
    case Form::clock: return value == "virtual" || value == "real";
    case Form::config: return is_config(value);
    case Form::hashes: return value.is_array() && std::all_of(value.begin(), value.end(), is_text);
    case Form::reason: return is_one_of(value, kReasons);
    case Form::event: return is_one_of(value, kEvents);
    case Form::node: return value.is_null() || is_count(value, 0, kMostNodes);
    case Form::deviations:
      return value.is_array() && std::all_of(value.begin(), value.end(), is_deviation);
  }
  return false;
}

std::string words_for(Form form) {
  switch (form) {
    case Form::schema: return "1, the only one that this version reads";
    case Form::count: return "a whole number from 0";
    case Form::positive: return "a whole number from 1";
    case Form::peers: return fmt::format("a whole number from 1 to {}", kMostPeers);
    case Form::peer_list:
      return fmt::format("an ascending list of nodes from 0 to {}", kMostNodes - 1);
    case Form::seconds: return "a number from 0";
    case Form::figure: return "a number or null";
    case Form::text: return "a text";
    case Form::name: return "a text that is not empty";
    case Form::clock: return "virtual or real";
    case Form::config: return "a configuration, by section and key";
    case Form::hashes: return "a list of hashes";
    case Form::reason: return fmt::format("one of {}", fmt::join(kReasons, ", "));
    case Form::event: return fmt::format("one of {}", fmt::join(kEvents, ", "));
    case Form::node:
      return fmt::format("a node or a number of them, from 0 to {}, or null", kMostNodes);
    case Form::deviations: return "a list of round, from and used_round";
  }
  return {};
}

/// A value as a message shows it: its beginning.
std::string shown(const Json& value) {
  const std::string text = text_of(value);
  return text.size() <= 60 ? text : text.substr(0, 60) + "…";
}

Fault fields_fault(const Json& record, std::span<const Field> fields) {
  for (const Field& field : fields) {
    const auto found = record.find(field.name);
    if (found == record.end())
      return fmt::format("{}: missing in this {} record; it is {}", field.name, sort_of(record),
                         words_for(field.form));
    if (!fits(*found, field.form))
      return fmt::format("{}: {} is not {}", field.name, shown(*found), words_for(field.form));
  }
  return {};
}

}  // namespace

std::string sort_of(const Json& record) {
  if (!record.is_object()) return {};
  const auto sort = record.find("record");
  return sort != record.end() && sort->is_string() ? sort->get<std::string>() : std::string();
}

Fault header_fault(const Json& record) {
  if (sort_of(record) != "header") return "record: a log begins with its header";
  if (Fault fault = fields_fault(record, kHeader)) return fault;
  const auto last = record.at("hosted").back().get<std::uint64_t>(),
             peers = record.at("peers").get<std::uint64_t>();
  const auto servers = record.at("servers").get<std::uint64_t>();
  if (servers > kMostPeers) return fmt::format("servers: {} is more than {}", servers, kMostPeers);
  if (last >= peers + servers)
    return fmt::format("hosted: node {} of a network of {} peers and {} servers", last, peers,
                       servers);
  return {};
}

Fault record_fault(const Json& record, const std::vector<int>& hosted, std::size_t models) {
  const std::string sort = sort_of(record);
  if (sort == "header") return "record: a second header";
  if (sort == "network") return fields_fault(record, kNetwork);
  if (sort == "round" || sort == "server" || sort == "membership" || sort == "deviations") {
    const char* who = sort == "server" ? "server" : "peer";
    const std::span<const Field> fields = sort == "round"    ? std::span<const Field>(kRound)
                                          : sort == "server" ? std::span<const Field>(kServer)
                                          : sort == "membership"
                                              ? std::span<const Field>(kMembership)
                                              : std::span<const Field>(kDeviations);
    if (Fault fault = fields_fault(record, fields)) return fault;
    const auto node = record.at(who).get<std::uint64_t>();
    if (node < kMostNodes &&
        std::binary_search(hosted.begin(), hosted.end(), static_cast<int>(node)))
      return {};
    return fmt::format("{}: {} is not hosted by this process", who, node);
  }
  if (sort == "end") {
    if (Fault fault = fields_fault(record, kEnd)) return fault;
    if (record.at("row_hashes").size() == models) return {};
    return fmt::format("row_hashes: {} of {} rows", record.at("row_hashes").size(), models);
  }
  return "record: not one of header, round, server, network, membership, deviations, end";
}

}  // namespace gossamer::peer
