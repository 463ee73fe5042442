// A client of a web server on this machine, for the tests of peer/watch: it sends any bytes.
#pragma once

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>

namespace gossamer::peer::testing {

/// A connection of a stranger.
class Client {
 public:
  /// From 127.0.0.`host` to 127.0.0.1.
  explicit Client(std::uint16_t port, std::uint32_t host = 1)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + host - 1);
    REQUIRE(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    const timeval limit{20, 0};  // a server that hangs fails the test
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { ::close(socket_); }

  void send(const std::string& text) {
    std::size_t sent = 0;
    while (sent < text.size()) {
      const auto count = ::send(socket_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return;  // the server has closed the connection
      sent += static_cast<std::size_t>(count);
    }
  }
  /// Ends the connection with a reset.
  void reset() {
    const linger at_once{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ::close(std::exchange(socket_, -1));
  }
  /// What comes until the server closes the connection.
  std::string all() {
    std::string text;
    char bytes[4096];
    for (ssize_t count = 0; (count = ::recv(socket_, bytes, sizeof bytes, 0)) > 0;)
      text.append(bytes, static_cast<std::size_t>(count));
    return text;
  }

 private:
  int socket_;
};

inline std::string answer_at(std::uint16_t port, const std::string& request) {
  Client client(port);
  client.send(request);
  return client.all();
}

}  // namespace gossamer::peer::testing
