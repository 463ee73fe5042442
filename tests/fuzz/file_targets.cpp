// Files that a user, another program or another machine brings.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/hash.hpp"
#include "gossip/links/link_table.hpp"
#include "net/startup/rendezvous.hpp"
#include "net/tls/keys.hpp"
#include "net/wire/frame.hpp"
#include "peer/checkpoint/checkpoint.hpp"
#include "peer/config/config.hpp"
#include "peer/config/members_file.hpp"
#include "peer/log/resumed_log.hpp"
#include "peer/log/run_files.hpp"
#include "peer/probe/measurement.hpp"
#include "peer/probe/process_list.hpp"
#include "peer/runtime/shard_agreement.hpp"
#include "peer/runtime/start_round_agreement.hpp"
#include "peer/storage/json.hpp"
#include "peer/storage/probe_tables.hpp"
#include "peer/storage/safetensors.hpp"
#include "tests/fuzz/input_files.hpp"
#include "topology/graph_file.hpp"
#include "topology/mixing_matrix.hpp"
#include "train/graph/compiled_model.hpp"
#include "train/graph/model_file.hpp"

namespace gossamer::fuzz {
namespace {

// ---- graphs

void run_graph(const Result<topology::FileGraph>& graph) {
  if (!ok(graph)) return;
  for (const topology::FileEdge& edge : graph->edges)
    require(edge.from >= 0 && edge.from < graph->peers && edge.to >= 0 && edge.to < graph->peers,
            "the ends of an edge are peers");
  if (graph->peers <= 512) ok(topology::rows_of(*graph, "graph"));
}

void run_edge_list(std::span<const std::byte> input) {
  for (const bool directed : {false, true})
    run_graph(topology::parse_edge_list(text_of(input), "graph", directed));
}

std::vector<Bytes> edge_list_seeds() {
  return {bytes_of("0 1\n1 2 # a comment\n\n2 0\n"), bytes_of("0 1 0.25\n1 2 0.25\n2 0 0.5\n")};
}

void run_graphml(std::span<const std::byte> input) {
  run_graph(topology::parse_graphml(text_of(input), "graph"));
}

std::vector<Bytes> graphml_seeds() {
  return {bytes_of(R"(<?xml version="1.0"?><graphml>
<key id="w" for="edge" attr.name="weight" attr.type="double"/>
<graph edgedefault="undirected"><node id="n0"/><node id="n1"/>
<edge source="n0" target="n1"><data key="w">0.5</data></edge></graph></graphml>)"),
          bytes_of(R"(<graphml><graph edgedefault="directed"><node id="a"/><node id="b"/>
<!-- a comment --><edge source="a" target="b"/><edge source="b" target="a"/></graph></graphml>)")};
}

// ---- configuration and keys

void run_config(std::span<const std::byte> input) {
  const MemoryFile file(input);
  const auto config = peer::load_config(file.path(), {});
  if (!ok(config)) return;
  // What is written reads as the same run.
  const std::string text = config->to_toml();
  const MemoryFile again(std::as_bytes(std::span(text)));
  const auto reread = peer::load_config(again.path(), {});
  require(reread.ok(), "a resolved configuration can be read");
  require(reread->shared_hash() == config->shared_hash(), "a resolved configuration is the same");
}

std::vector<Bytes> config_seeds() {
  return {bytes_of("[run]\npeers = 8\nrounds = 20\nseed = 3\n[topology]\nkind = \"ring\"\n"),
          bytes_of("[algorithm]\nkind = \"diloco\"\nlocal_steps = 4\n[sim]\nlatency_ms = 2.5\n"
                   "[net]\npeers = [\"127.0.0.1:4000\", \"127.0.0.1:4001\"]\n")};
}

void run_model(std::span<const std::byte> input) {
  const MemoryFile file(input);
  const train::ModelContext data{.channels = 1, .height = 4, .width = 4, .classes = 3};
  const auto spec = train::read_model_file(file.path(), data);
  if (!ok(spec)) return;
  // Compiling computes sizes and allocates no tensor.
  const auto model = train::CompiledModel::compile(*spec, data, 2);
  if (ok(model))
    require(model->operations().size() == spec->operations.size(), "every operation is compiled");
}

std::vector<Bytes> model_seeds() {
  return {
      bytes_of("[[operation]]\nname = \"a\"\nkind = \"convolution\"\nchannels = 4\npadding = 1\n"
               "[[operation]]\nkind = \"add\"\ninputs = [\"a\", \"a\"]\nactivation = \"relu\"\n"
               "[[operation]]\nkind = \"dense\"\n"),
      bytes_of("loss = \"softmax_cross_entropy\"\n[[operation]]\nkind = \"embedding\"\n"
               "vocabulary = 9\nfeatures = 12\n[[operation]]\nkind = \"attention\"\nheads = 2\n"
               "[[operation]]\nkind = \"reshape\"\nheight = 0\nchannels = 8\n"
               "[[operation]]\nkind = \"dense\"\n")};
}

void run_members(std::span<const std::byte> input) {
  const MemoryFile file(input);
  const auto members = peer::read_members(file.path());
  ok(members);
  if (members.ok()) members->at(members->next_expiry(std::chrono::sys_seconds()));
}

std::vector<Bytes> members_seeds() {
  const std::string key = net::to_string(net::PublicKey{});
  return {
      bytes_of(fmt::format("[[member]]\nid = 0\nkey = \"{}\"\naddress = \"127.0.0.1:4000\"\n"
                           "[[member]]\nid = 1\nkey = \"{}\"\n",
                           key, key))};
}

void run_key(std::span<const std::byte> input) {
  const auto key = net::parse_public_key(std::string(text_of(input)));
  if (ok(key))
    require(net::parse_public_key(net::to_string(*key)).value() == *key,
            "a key that is written reads as the same key");
}

std::vector<Bytes> key_seeds() { return {bytes_of(net::to_string(net::PublicKey{}))}; }

// ---- what a run wrote, or somebody else

void run_safetensors(std::span<const std::byte> input) {
  const MemoryFile file(input);
  const auto tensors = peer::read_safetensors(file.path());
  if (!ok(tensors)) return;
  std::size_t bytes = 0;
  for (const auto& tensor : tensors->tensors) bytes += tensor.values.size_bytes();
  require(bytes <= input.size(), "the tensors lie in the file");
}

std::vector<Bytes> safetensors_seeds() {
  const std::string header =
      R"({"__metadata__":{"a":"b"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  return {bytes_of(file + header + std::string(8, '\x3f'))};
}

void run_manifest(std::span<const std::byte> input) {
  std::string text(text_of(input));
  // A checksum that is wrong hides everything else.
  if (auto json = peer::parse_json(text); json.ok() && json->is_object()) {
    json->erase("checksum");
    const std::string rest = peer::text_of(*json);
    (*json)["checksum"] = hash_hex(rest);
    text = peer::text_of(*json);
  }
  const MemoryFile file(std::as_bytes(std::span(text)));
  const auto manifest = peer::read_manifest(file.path());
  if (ok(manifest)) ok(Result<std::string>(peer::manifest_text(*manifest)));
}

std::vector<Bytes> manifest_seeds() { return {bytes_of(R"({"format":2,"round":3,"nodes":[]})")}; }

void run_log(std::span<const std::byte> input) {
  const MemoryFile file(input);
  std::size_t records = 0;
  const auto log = peer::read_log(file.path(), 0,
                                  [&records](const peer::ProcessLog&, peer::Json&&) { ++records; });
  const auto resumed = peer::ResumedLog::read(file.path(), 0);
  require(log.ok() == resumed.ok(), "both readers of a log accept the same ones");
  if (log.ok() && log->has_value()) require(!(*log)->hosted.empty(), "a log has peers");
}

std::vector<Bytes> log_seeds() { return {bytes_of("{\"record\":\"header\"}\n")}; }

// ---- tables of links

void run_link_table(std::span<const std::byte> input) {
  const auto table = gossip::LinkTable::parse(text_of(input), "table");
  if (!ok(table)) return;
  const auto regions = static_cast<std::size_t>(table->regions());
  require(table->values().size() == regions * regions, "a table is square");
  for (const double value : table->values())
    require(value >= 0 && value <= 1e9, "a value is in its range");
}

std::vector<Bytes> link_table_seeds() {
  return {bytes_of("0 10 80\n10 0 70\n80 70 0\n"), bytes_of("# ms\n1.5,2e2\n3,4 # home\n")};
}

/// What a probe reads: the lines of nodes, what a process says that it hosts, and its measurements.
void run_probe(std::span<const std::byte> input) {
  const auto nodes = peer::parse_probed_nodes(text_of(input), "nodes.txt", 2);
  if (ok(nodes)) require(nodes->size() == 2, "there is a line for each node");
  peer::ProcessList list({1, 4}, 6);
  if (list.merge(std::string(text_of(input))).ok()) {
    const auto processes = list.processes();
    if (ok(processes)) require(processes->size() >= 2, "no process hosts the nodes of another");
  }
  std::vector<float> values(peer::ProcessMeasurement::message_length(3));
  const std::size_t bytes = std::min(input.size(), values.size() * sizeof(float));
  if (bytes > 0) std::memcpy(values.data(), input.data(), bytes);
  if (const auto measured = peer::ProcessMeasurement::of(values))
    require(measured->values() == peer::ProcessMeasurement::of(measured->values())->values(),
            "measurements travel unchanged");
}

std::vector<Bytes> probe_seeds() {
  return {bytes_of("# ms\n3 0.25 100 200\n6 0 50 0\n"), bytes_of("0 2"), bytes_of("0 2 3 5"),
          bytes_of(std::string_view("\0\0\x80?\0\0\0A\0\0HB", 12))};
}

// ---- the start of a network

constexpr std::size_t kShards = 3, kFeatures = 2;

peer::ShardAgreement shards_of_process() {
  peer::Shards own(kShards);
  own[1] = {5, {0.5, -1}, {2, 0}};
  return *peer::ShardAgreement::make(own, kFeatures);
}

/// The file that a latecomer reads, and what a partner says of the shards.
void run_shards(std::span<const std::byte> input) {
  const auto file = peer::parse_shards(text_of(input), "shards-0.json", "r", kShards, kFeatures);
  if (ok(file)) train::pooled_scales(*file);
  peer::ShardAgreement agreement = shards_of_process();
  if (const Status merged = agreement.merge(0, std::string(text_of(input))); !merged.ok())
    require(!merged.error().message.empty(), "an error has a message");
  const auto shards = agreement.outcome();
  if (!ok(shards)) return;
  for (const train::ShardSummary& shard : *shards)
    for (std::size_t f = 0; f < kFeatures; ++f)
      require(shard.samples > 0 && train::is_moment(shard.means[f], shard.variances[f]),
              "a shard has samples, and moments of finite values");
}

std::vector<Bytes> shards_seeds() {
  return {bytes_of(shards_of_process().contribution(0)),
          bytes_of(R"({"schema":1,"run_id":"r",)"
                   R"("peers":[{"samples":1,"means":[1,2],"variances":[0,3]},)"
                   R"({"samples":2,"means":[1,2],"variances":[0,3]},)"
                   R"({"samples":3,"means":[1,2],"variances":[0,3]}]})")};
}

/// What the partners of a process say of their checkpoints: the first partner, and then the rest.
void run_contribution(std::span<const std::byte> input) {
  constexpr int kNodes = 8;
  peer::StartRoundAgreement agreement({2, 3}, kNodes, {0, 100, 200});
  Source source(input);
  const std::size_t first = source.number(1);
  const std::string_view text = text_of(source.rest());
  for (const std::string_view part :
       {text.substr(0, first), text.substr(std::min(first, text.size()))})
    if (const Status merged = agreement.merge(std::string(part)); !merged.ok())
      require(!merged.error().message.empty(), "an error has a message");
  require(agreement.contribution().size() <= net::kMaxContributionBytes,
          "a contribution is within its limit");
  const auto outcome = agreement.outcome(true);
  if (!ok(outcome)) return;
  for (const int node : outcome->without)
    require(node >= 0 && node < kNodes, "a node without the round is one of the network");
}

std::vector<Bytes> contribution_seeds() {
  peer::StartRoundAgreement other({0, 1}, 8, {100, 300});
  const std::string text = other.contribution();
  const std::string two = static_cast<char>(text.size()) + text + text;
  return {bytes_of(two), bytes_of(std::string(1, '\0') + "[[0,\"ff\"],[100,\"30\"]]")};
}

/// What another process, or somebody else, wrote into the rendezvous folder.
void run_rendezvous(std::span<const std::byte> input) {
  static const TemporaryFolder folder("peer-3.addr");
  folder.write(input);
  const net::Rendezvous rendezvous(folder.path(), "a-run");
  const auto address = rendezvous.find(3);
  if (!ok(address)) return;
  require(address->port > 0, "an address has a port");
  for (const unsigned char c : address->host) require(c > 32 && c < 127, "a name can be printed");
  const auto again = net::parse_address(net::to_string(*address));
  require(again.ok() && *again == *address, "an address that was read is written as the same");
  require(!rendezvous.find(4).ok(), "a peer has no address before it has a file");
}

std::vector<Bytes> rendezvous_seeds() {
  return {bytes_of("127.0.0.1:7000\na-run\n"), bytes_of("[::1]:65535\na-run\n"),
          bytes_of("host.example:1\na-run\n"), bytes_of("127.0.0.1:7000\nanother\n")};
}

}  // namespace

std::vector<Target> file_targets() {
  return {{"edge_list", run_edge_list, edge_list_seeds},
          {"graphml", run_graphml, graphml_seeds},
          {"config", run_config, config_seeds},
          {"model", run_model, model_seeds},
          {"members", run_members, members_seeds},
          {"public_key", run_key, key_seeds},
          {"safetensors", run_safetensors, safetensors_seeds},
          {"manifest", run_manifest, manifest_seeds},
          {"log", run_log, log_seeds},
          {"link_table", run_link_table, link_table_seeds},
          {"probe", run_probe, probe_seeds},
          {"shards", run_shards, shards_seeds},
          {"contribution", run_contribution, contribution_seeds},
          {"rendezvous", run_rendezvous, rendezvous_seeds}};
}

}  // namespace gossamer::fuzz
