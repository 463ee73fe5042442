// The connections of a simulated world: one for each pair of partners in different processes.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "gossip/link.hpp"
#include "simulator/names.hpp"

namespace gossamer::simulator {

class Connection;
class World;

class ConnectionTable {
 public:
  /// Makes the connections of all peers. The world outlives the table.
  explicit ConnectionTable(World& world);
  ~ConnectionTable();

  /// All of them, in the order of their ends.
  std::vector<Connection*> all();
  /// Those with an end in the process.
  std::vector<Connection*> of(int process);
  Connection& between(int a, int b);
  /// The link from → to, of different processes.
  Link& link(int from, int to);
  /// act(connection, end) for each end that the process has.
  template <class Act>
  void for_each_end(int process, Act act) {
    for (const auto& [connection, end] : ends_of(process)) act(*connection, end);
  }

 private:
  std::vector<std::pair<Connection*, int>> ends_of(int process);

  World& world_;
  std::map<std::pair<int, int>, std::unique_ptr<Connection>> connections_;  ///< by peers, ascending
};

}  // namespace gossamer::simulator
