#include "simulator/world/connection_table.hpp"

#include <algorithm>

#include "simulator/world/connection.hpp"
#include "simulator/world/process.hpp"

namespace gossamer::simulator {

ConnectionTable::ConnectionTable(World& world) : world_(world) {
  const Protocol& protocol = world.protocol();
  for (int a = 0; a < world.scenario().peers; ++a)
    for (const int b : protocol.algorithm->partners(a, *protocol.schedule))
      if (a < b && &world.process_of(a) != &world.process_of(b))
        connections_.emplace(std::pair(a, b), std::make_unique<Connection>(world, a, b));
}

ConnectionTable::~ConnectionTable() = default;

std::vector<Connection*> ConnectionTable::all() {
  std::vector<Connection*> all;
  for (const auto& [ends, connection] : connections_) all.push_back(connection.get());
  return all;
}

std::vector<std::pair<Connection*, int>> ConnectionTable::ends_of(int process) {
  std::vector<std::pair<Connection*, int>> found;
  for (const auto& [ends, connection] : connections_)
    for (const int end : connection->ends())
      if (world_.process_of(end).number() == process) found.emplace_back(connection.get(), end);
  return found;
}

std::vector<Connection*> ConnectionTable::of(int process) {
  std::vector<Connection*> found;
  for_each_end(process, [&found](Connection& connection, int) { found.push_back(&connection); });
  return found;
}

Connection& ConnectionTable::between(int a, int b) { return *connections_.at(std::minmax(a, b)); }
Link& ConnectionTable::link(int from, int to) { return between(from, to).link(from); }

}  // namespace gossamer::simulator
