// Figures of nodes on their way to pages of the run. Each process sends the newest records of its
// nodes to its neighbours and forwards those of other nodes, as long as some process has a page and
// wishes for them. docs/WIRE.md specifies the frames.
//
// What a process says of its nodes, and what it forwards, is not verified: a member can invent
// figures. They are shown, and used for nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "gossip/scheduler.hpp"
#include "net/network.hpp"
#include "peer/storage/json.hpp"
#include "peer/watch/node_report.hpp"

namespace gossamer::peer {

struct FigureExchangeOptions {
  int nodes = 0;             ///< of the run
  std::uint64_t rounds = 0;  ///< of the run
  std::vector<int> hosted;   ///< nodes of this process, ascending
  std::uint64_t log_every = 1;
  bool wishes = false;  ///< this process has a page
  /// Of a process with a page: receives each record of any node that is to be shown.
  std::function<void(int node, const Json& record)> on_record = [](int, const Json&) {};
  /// The same: receives each new report of a node of another process.
  std::function<void(int node, NodeReport report)> on_report = [](int, const NodeReport&) {};
};

/// Thread: the scheduler's.
class FigureExchange {
 public:
  /// (peer here, peer of another process)
  using Link = std::pair<int, int>;

  /// The most records of a node, those of one turn, that travel together.
  static constexpr std::size_t kMostRecords = 8;
  /// The most bytes of these records and of its report, in a network of so many nodes: 16 KiB, and
  /// less where the entries of all nodes would have more than 64 MiB.
  static std::size_t entry_limit(int nodes);
  /// A wish holds for so long.
  static constexpr gossip::Time kWishLife = std::chrono::seconds(15);

  explicit FigureExchange(FigureExchangeOptions options);

  /// A record, of type round or server, that a hosted node has written to the log. It replaces the
  /// last one if that is of the same round.
  void add(Json record);
  /// What else there is to say of a hosted node now.
  void report(int node, const NodeReport& report);
  /// A turn begins: next() is called for each link that takes figures, once. `clock` is the wall
  /// clock in microseconds, which makes the figures of a process that is started again newer.
  void begin_turn(gossip::Time now, std::uint64_t clock);
  /// Records that were added, and reports that have changed, go out, and to the page, now.
  /// begin_turn() calls it, less often where the network is large.
  void close_batches(std::uint64_t clock);
  /// What to send over a link in this turn; nothing if nobody wishes for figures, or there is no
  /// news.
  std::optional<net::Figures> next(Link link, gossip::Time now);
  /// What has come over a link. Error (lost_peer): a clause that says how it breaks the protocol.
  Status receive(Link link, const net::Figures& figures, gossip::Time now);

  /// Some process wishes for figures.
  bool is_wished() const { return wished_; }
  /// Bytes of the figures that are kept: entry_limit() for each node at most.
  std::size_t kept_bytes() const;

 private:
  struct Wish {
    std::uint64_t number = 0;
    gossip::Time heard{0};
  };
  using Version = std::uint64_t;
  struct Entry {
    Version version = 0;
    std::string text;  ///< a list of records as JSON, of which the last may be a report
  };
  /// What the other end of a link is known to have.
  struct LinkState {
    std::map<int, Version> versions;      ///< by node
    std::map<int, std::uint64_t> wishes;  ///< by asker
    int last_sent = -1;                   ///< node of the entry that was sent last
  };
  /// Records of a hosted node since the last turn in which its records were sent, and its report.
  struct Batch {
    std::uint64_t stride = 1;   ///< of logged rounds, a power of 2
    std::vector<Json> records;  ///< those of the stride, and the newest
    NodeReport report;
    bool reports = false;  ///< the report has changed since
    Json newest;           ///< the last record that was sent, without its sketch; null: none
  };

  std::optional<std::pair<int, Wish>> newest_wish(gossip::Time now) const;
  bool is_chosen(const Batch& batch, const Json& record) const;
  void close(int node, Batch& batch, std::uint64_t clock);
  std::optional<std::string> entry_text(std::vector<Json> records, Json report) const;
  std::string entries_for(LinkState& link) const;
  void hear(LinkState& link, const net::FiguresFrame& frame, gossip::Time now);
  void take(LinkState& link, int node, Version version, std::string text);
  void show(int node, const std::string& text);
  void show(int node, const Json& record);

  FigureExchangeOptions options_;
  std::map<int, Wish> wishes_;    ///< by asker, a node of its process
  std::map<int, Entry> entries_;  ///< by node
  std::map<int, Batch> batches_;  ///< by hosted node
  std::map<Link, LinkState> links_;
  std::map<int, std::uint64_t> shown_;  ///< by node: its latest round that was shown
  std::uint64_t turns_ = 0;
  bool wished_ = false;
};

}  // namespace gossamer::peer
