// Which way the connection between two peers goes.
#pragma once

#include <string>

namespace gossamer::net {

struct Route {
  enum class Way {
    direct,    ///< the end that sends the hello has made the connection
    reversed,  ///< the other end has made it, because it cannot be called
    relayed,   ///< both ends have made one to another process, which passes the bytes on
  };
  Way way = Way::direct;
  int relay = -1;  ///< if relayed: a peer of the process that does so

  bool operator==(const Route&) const = default;
  bool is_direct() const { return way == Way::direct; }
};

/// As logs have it: "direct", "reversed" or "relayed".
inline std::string name_of(Route::Way way) {
  return way == Route::Way::direct     ? "direct"
         : way == Route::Way::reversed ? "reversed"
                                       : "relayed";
}

}  // namespace gossamer::net
