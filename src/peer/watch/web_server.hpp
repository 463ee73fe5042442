// Serves short answers to GET requests over HTTP/1.1, on a thread of its own: whatever clients do,
// the run does not wait for them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "net/io/address.hpp"

namespace gossamer::peer {

struct WebAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";  ///< of the content
  std::string content = {};
};

/// What clients may take: they are strangers.
struct WebLimits {
  int connections = 64;     ///< at once; a further one is closed
  int of_one_address = 32;  ///< of them; one address does not keep the others away
  /// For the header of a request, which may have 128 KiB. A connection lasts no longer than this
  /// and `answer` together.
  std::chrono::milliseconds request{10'000};
  std::chrono::milliseconds answer{30'000};  ///< for the client to take an answer
};

/// An answer ends its connection. On an address of this machine alone, a request must name this
/// machine, or the host of the address, in its field Host: a page of another site that a browser
/// shows cannot read the answers (DNS rebinding).
class WebServer {
 public:
  /// The answer to a path with its query, such as "/state?after=3". Called on the server's thread;
  /// throws nothing.
  using Answer = std::function<WebAnswer(std::string_view path)>;

  /// Listens, and starts the thread. Port 0: any free port. Error (network): names `name`, the
  /// address, and the system's reason.
  static Result<std::unique_ptr<WebServer>> start(const std::string& name,
                                                  const net::Address& address, Answer answer,
                                                  const WebLimits& limits = {});
  WebServer(const WebServer&) = delete;
  WebServer& operator=(const WebServer&) = delete;
  /// Closes all connections. Thread: the one that started the server.
  ~WebServer();

  std::uint16_t port() const { return port_; }
  /// Only this machine reaches it.
  bool is_local() const { return is_local_; }
  /// "http://127.0.0.1:8080/". An address of all interfaces has the name "localhost" here.
  std::string url() const;

 private:
  class Loop;
  explicit WebServer(net::Address address);

  net::Address address_;  ///< as people write it, where it is of every interface: localhost
  bool is_local_ = false;
  std::uint16_t port_ = 0;
  std::unique_ptr<Loop> loop_;
};

}  // namespace gossamer::peer
