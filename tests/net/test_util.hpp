// The vocabulary of the network tests: several processes' networks on one thread and one scheduler,
// a receiver that keeps what it gets, rows that count their leases, and a raw client that sends any
// bytes.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "net/network.hpp"
#include "net/startup/handshake_stream.hpp"
#include "net/startup/rendezvous.hpp"
#include "net/tls/tls_socket.hpp"
#include "net/wire/frame.hpp"

namespace gossamer::net::words {

using namespace std::chrono_literals;

/// A folder that is removed at the end of the test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "gossamer-net-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

/// A row to send, with the number of its leases.
struct Row final : gossip::BufferOwner {
  explicit Row(std::size_t length, float seed = 0) : values(length) {
    for (std::size_t i = 0; i < length; ++i) values[i] = seed + static_cast<float>(i % 8191);
  }
  void on_lease_end() override { --leases; }

  gossip::Chunk chunk(int from, int to, gossip::Round round = 0, std::size_t offset = 0,
                      std::size_t count = SIZE_MAX) {
    ++leases;
    count = std::min(count, values.size() - offset);
    return {{from, to, round, 0, offset, values.size()},
            std::span<const float>(values).subspan(offset, count),
            gossip::Lease(*this)};
  }

  std::vector<float> values;
  int leases = 0;
};

/// Keeps the chunks that come: copies of their values, or the whole chunk if `hold`.
struct Memory final : gossip::Receiver {
  Status deliver(gossip::Chunk chunk) override {
    if (receiver != nullptr) return receiver->deliver(std::move(chunk));
    headers.push_back(chunk.header);
    if (journal != nullptr)
      journal->push_back(fmt::format("chunk {}.{}", chunk.header.round, chunk.header.offset));
    bytes += chunk.values.size_bytes();
    received.insert(received.end(), chunk.values.begin(), chunk.values.end());
    if (hold) held.push_back(std::move(chunk));
    return refuse.empty() ? Status() : Status(Error{ErrorKind::lost_peer, refuse});
  }

  std::vector<gossip::ChunkHeader> headers;
  std::vector<float> received;
  std::vector<gossip::Chunk> held;
  std::size_t bytes = 0;
  bool hold = false;
  std::string refuse;
  std::vector<std::string>* journal = nullptr;
  gossip::Receiver* receiver = nullptr;  ///< receives the chunks instead
};

inline Identity identity(int peers) {
  return {"run-1", peers, "ring 77ab", "mlp 0102", "conf 55aa"};
}

using Journal = std::vector<std::string>;

/// One process: its network, and everything that it reported.
struct Process {
  Memory memory;
  std::vector<std::string> lines;
  std::vector<Error> faults;
  std::function<void()> on_restored = [] {};
  std::function<void(int other, const Error& why)> on_lost = [](int, const Error&) {};
  std::function<Status(const Figures& figures)> on_figures = [](const Figures&) {
    return Status();
  };
  std::vector<std::string> leaves;  ///< of partners that left: "0-1"
  Journal journal;  ///< in order: "lost 0-1", "restored 0-1", and "chunk <round>.<offset>"
  std::unique_ptr<SharedMemory> shared;  ///< null: the process shares no memory
  std::unique_ptr<Network> network;

  /// How often the journal has the entry.
  auto count(const std::string& entry) const { return std::ranges::count(journal, entry); }

  bool said(const std::string& part) const {
    for (const auto& line : lines)
      if (line.find(part) != std::string::npos) return true;
    return false;
  }
};

/// An all-gather of `steps` steps in which no process learns anything.
inline AllGather all_gather_of(int steps = 1) {
  AllGather made;
  made.steps = steps;
  made.contribution = [] { return std::string("here"); };
  made.merge = [](int, int, const std::string&) { return Status(); };
  return made;
}

/// Networks of several processes, all on the calling thread.
class World {
 public:
  using Pairs = std::vector<std::pair<int, int>>;

  explicit World(int peers) : peers_(peers) {
    options.rendezvous = folder.path();
    options.failure_timeout = 20;
    options.join_timeout = 20;
  }
  ~World() {
    for (auto& process : processes) process->memory.held.clear();
  }

  /// Adds the process that hosts `hosted`, with its share of all pairs.
  Process& add(std::vector<int> hosted, const Pairs& edges, Identity who) {
    processes.push_back(std::make_unique<Process>());
    Process& process = *processes.back();
    NetworkSetup setup;
    setup.options = options;
    setup.words = words;
    if (!keys.empty())
      setup.credentials = Credentials{keys.at(static_cast<std::size_t>(hosted.front())), members()};
    setup.identity = std::move(who);
    setup.detour_patience = detour_patience;
    for (auto [a, b] : edges) {
      const bool has_a = std::ranges::find(hosted, a) != hosted.end(),
                 has_b = std::ranges::find(hosted, b) != hosted.end();
      if (has_a && !has_b) setup.pairs.push_back({a, b});
      if (has_b && !has_a) setup.pairs.push_back({b, a});
    }
    setup.hosted = std::move(hosted);
    setup.message = [&process](const std::string& line) { process.lines.push_back(line); };
    process.memory.journal = &process.journal;
    setup.on_link_lost = [&process, borne = tolerates_loss](int here, int there, const Error& why) {
      process.journal.push_back(fmt::format("lost {}-{}", here, there));
      process.on_lost(there, why);
      return borne;
    };
    setup.on_figures = [&process](int, int, const Figures& figures) {
      return process.on_figures(figures);
    };
    setup.on_link_restored = [&process](int here, int there) {
      process.journal.push_back(fmt::format("restored {}-{}", here, there));
      process.on_restored();
    };
    setup.on_peer_left = [&process](int here, int there) {
      process.leaves.push_back(fmt::format("{}-{}", here, there));
    };
    setup.memory.chunks = {[this, memory = setup.memory.chunks](std::size_t bytes) {
                             ++buffers;
                             return memory.allocate(bytes);
                           },
                           [this, memory = setup.memory.chunks](void* area) {
                             --buffers;
                             memory.release(area);
                           }};
    if (shares_memory) process.shared = SharedMemory::reserve().value();
    setup.memory.rows = process.shared.get();
    setup.fault = [&process](const Error& error) { process.faults.push_back(error); };
    auto made = Network::make(scheduler, std::move(setup), process.memory);
    REQUIRE_MESSAGE(made.ok(), made.error().message);
    process.network = std::move(made).value();
    if (receives_at_once) process.network->release_chunks();
    return process;
  }
  Process& add(std::vector<int> hosted, const Pairs& edges) {
    return add(std::move(hosted), edges, identity(peers_));
  }

  /// The members by their keys.
  MemberList members() const {
    std::map<int, Member> all;
    for (std::size_t id = 0; id < keys.size(); ++id)
      all[static_cast<int>(id)].keys = {keys[id].public_key()};
    return MemberList(std::move(all));
  }

  /// Ends a process as SIGKILL does: it sends nothing more.
  void kill(Process& process) {
    std::erase_if(processes, [&](const auto& each) { return each.get() == &process; });
  }

  /// Restarts a process with one peer, and joins it.
  Process& again(int peer, const Pairs& edges) {
    Process& process = add({peer}, edges);
    const Status joined = process.network->join();
    REQUIRE_MESSAGE(joined.ok(), joined.error().message);
    return process;
  }

  /// Runs until `done`, or fails the test after 20 s.
  void run_until(const std::function<bool()>& done) {
    bool late = false;
    const auto deadline = scheduler.after(20s, [&late] { late = true; });
    scheduler.run_until([&] { return late || done(); });
    scheduler.cancel(deadline);
    REQUIRE_FALSE(late);
  }

  void join() {
    for (auto& process : processes) REQUIRE(process->network->start().ok());
    run_until([&] { return all([](Process& p) { return p.network->joined(); }); });
  }
  /// Runs an all_gather_of() of all processes to its end.
  void all_gather() {
    for (auto& process : processes) process->network->begin_all_gather(all_gather_of());
    run_until([&] { return all([](Process& p) { return p.network->all_gathered(); }); });
  }
  void leave() {
    for (auto& process : processes) process->network->begin_leave();
    run_until([&] { return all([](Process& p) { return p.network->left(); }); });
  }
  template <class Predicate>
  bool all(Predicate predicate) {
    return std::ranges::all_of(processes, [&](auto& process) { return predicate(*process); });
  }

  Folder folder;
  NetOptions options;
  PeerWords words;
  std::vector<KeyPair> keys;          ///< of the peers, by id; empty: connections are not encrypted
  bool tolerates_loss = false;        ///< processes go on without a lost link
  gossip::Time detour_patience = 3s;  ///< NetworkSetup
  bool receives_at_once = true;       ///< no process waits with release_chunks()
  bool shares_memory = false;         ///< processes have memory that others may read
  int buffers = 0;                    ///< of all processes, alive or not
  RealScheduler scheduler;
  std::vector<std::unique_ptr<Process>> processes;

 private:
  int peers_;
};

inline const World::Pairs kTriangle = {{0, 1}, {0, 2}, {1, 2}};

using Wrap = std::function<std::unique_ptr<Socket>(std::unique_ptr<Socket>)>;

/// A client with this key, which takes any server; `change` alters its settings.
inline Wrap client_of(
    World& world, const KeyPair& key,
    const std::function<void(ssl_ctx_st*)>& change = [](ssl_ctx_st*) {}) {
  const auto context = std::make_shared<TlsContext>(key);
  change(context->get());
  return [&world, context](std::unique_ptr<Socket> socket) {
    return encrypted(world.scheduler, std::move(socket), *context, TlsRole::client,
                     [](const PublicKey&) { return true; });
  };
}

/// A raw client: connects and sends the bytes that the test wants, over what `wrap` makes of the
/// socket.
class RawClient {
 public:
  RawClient(
      World& world, const Address& address,
      const Wrap& wrap = [](std::unique_ptr<Socket> socket) { return socket; })
      : world_(world) {
    auto attempt =
        connect(world.scheduler, address, [this, &wrap](Result<std::unique_ptr<Socket>> socket) {
          REQUIRE(socket.ok());
          stream_ = std::make_shared<HandshakeStream>(
              world_.scheduler, wrap(std::move(socket).value()), 20s,
              [this](const std::string& why) { ended = why; });
        });
    world.run_until([&] { return stream_ != nullptr; });
  }
  ~RawClient() { close(); }

  RawClient& send(std::span<const std::byte> bytes) {
    bool said = false;
    stream_->write(bytes, [&] { said = true; });
    world_.run_until([&] { return said || !ended.empty(); });
    return *this;
  }
  RawClient& send(std::string_view text) { return send(std::as_bytes(std::span(text))); }
  /// The next `count` bytes; empty if the other end closes before.
  std::vector<std::byte> receive(std::size_t count) {
    std::vector<std::byte> bytes;
    stream_->read(count,
                  [&](std::span<const std::byte> got) { bytes.assign(got.begin(), got.end()); });
    world_.run_until([&] { return !bytes.empty() || !ended.empty(); });
    return bytes;
  }
  /// Sends a hello; returns the answer, of which a rejection has the result alone.
  Hello ask(const Hello& hello) {
    send(encode_hello(hello));
    auto answer = receive(kHelloPrefixBytes);
    REQUIRE(answer.size() == kHelloPrefixBytes);
    const auto prefix = decode_hello_prefix(std::span(answer).first<kHelloPrefixBytes>());
    REQUIRE(prefix.has_value());
    Hello rejection;
    rejection.result = prefix->result;
    if (!is_accepted(prefix->result)) return rejection;
    const auto rest = receive(kHelloBytes - kHelloPrefixBytes);
    REQUIRE(rest.size() == kHelloBytes - kHelloPrefixBytes);
    answer.insert(answer.end(), rest.begin(), rest.end());
    return *decode_hello(answer);
  }
  /// Sends a hello as peer `from`; returns the answer.
  Hello ask(int from, int to, const Identity& who) {
    return ask({HandshakeResult::accepted, from, to, 60'000ms, who});
  }
  /// Sends a hello as peer `from` and requires that it is accepted.
  RawClient& hello(int from, int to, const Identity& who) {
    REQUIRE(ask(from, to, who).result == HandshakeResult::accepted);
    return *this;
  }
  void close() {
    if (stream_) stream_->close();
    stream_.reset();
  }

  std::string ended;

 private:
  World& world_;
  std::shared_ptr<HandshakeStream> stream_;
};

/// A row from a to b arrives whole, and its lease ends.
inline void check_carries(World& world, Process& a, int from, Process& b, int to) {
  Row row(1000, static_cast<float>(from));
  const std::size_t chunks = b.memory.headers.size();
  b.memory.received.clear();
  a.network->link(from, to).send(row.chunk(from, to, 0, 0, 400));
  a.network->link(from, to).send(row.chunk(from, to, 0, 400));
  world.run_until([&] { return b.memory.headers.size() == chunks + 2 && row.leases == 0; });
  CHECK(b.memory.received == row.values);
}

/// 200 bytes that are no frame and no hello.
inline std::vector<std::byte> garbage() { return std::vector<std::byte>(200, std::byte{'x'}); }

/// The bytes of a frame, payload included; `damage` is added to the hash of its payload.
inline std::vector<std::byte> frame_bytes(FrameHeader header, std::span<const std::byte> payload,
                                          std::uint64_t damage = 0) {
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  std::vector<std::byte> bytes(kFrameHeaderBytes + payload.size());
  encode_header(header, hash64(payload) + damage, std::span(bytes).first<kFrameHeaderBytes>());
  std::ranges::copy(payload, bytes.begin() + kFrameHeaderBytes);
  return bytes;
}

/// The header of a frame of run-1.
inline FrameHeader frame_header(int from, int to, const FrameBody& body) {
  return {short_run("run-1"), from, to, 0, body};
}
inline FrameHeader data_header(int from, int to, std::uint64_t total, std::uint64_t offset = 0,
                               gossip::Round round = 0) {
  return frame_header(from, to, DataFrame{round, 0, offset, total});
}

/// The bytes of a data frame from 0 to 1: `count` zero values of a row of that length, with
/// `damage` as of frame_bytes.
inline std::vector<std::byte> data_frame(std::size_t count, gossip::Round round = 0,
                                         std::uint64_t damage = 0) {
  const Row row(count);
  return frame_bytes(data_header(0, 1, count, 0, round), std::as_bytes(std::span(row.values)),
                     damage);
}

}  // namespace gossamer::net::words
