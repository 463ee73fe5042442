// The web server against strangers: requests that are cut, slow, large, many, or for another host.
#include "peer/watch/web_server.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tests/peer/watch/web_client.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

using namespace std::chrono_literals;

std::unique_ptr<WebServer> served(const WebLimits& limits = {}, std::string content = "hello",
                                  const std::string& host = "127.0.0.1") {
  auto server = WebServer::start(
      "net.http", {host, 0},
      [content = std::move(content)](std::string_view path) -> WebAnswer {
        if (path == "/") return {200, "text/plain", content};
        return {404, "text/plain", "no " + std::string(path)};
      },
      limits);
  REQUIRE_MESSAGE(server.ok(), (server.ok() ? "" : server.error().message));
  return std::move(server).value();
}

std::string answer(const WebServer& server, const std::string& request) {
  return answer_at(server.port(), request);
}

const std::string kGet = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

bool is_served(const WebServer& server) {
  return answer(server, kGet).starts_with("HTTP/1.1 200 OK\r\n");
}

}  // namespace

TEST_CASE("An answer has its status, its type and headers that keep other sites out") {
  const auto server = served();
  const std::string text = answer(*server, kGet);
  CHECK(text.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(text.ends_with("\r\n\r\nhello"));
  CHECK(text.find("Content-Security-Policy: default-src 'self'") != text.npos);
  CHECK(text.find("X-Content-Type-Options: nosniff") != text.npos);
  CHECK(text.find("Access-Control") == text.npos);
  CHECK(answer(*server, "GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .starts_with("HTTP/1.1 404"));
  const std::string head =
      answer(*server, "HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  CHECK(head.starts_with("HTTP/1.1 200"));
  CHECK(head.ends_with("\r\n\r\n"));
}

TEST_CASE("Only requests that read are answered") {
  const auto server = served();
  for (const char* method : {"POST", "PUT", "DELETE"}) {
    CAPTURE(method);
    const std::string text =
        answer(*server, std::string(method) +
                            " / HTTP/1.1\r\nHost: localhost\r\n"
                            "Content-Length: 3\r\nConnection: close\r\n\r\nabc");
    CHECK(text.starts_with("HTTP/1.1 405"));
    CHECK(text.find("\r\nAllow: GET, HEAD\r\n") != text.npos);
  }
}

TEST_CASE("On an address of this machine, a request for another host is refused") {
  const auto server = served();
  const auto with_host = [&](const std::string& host) {
    return answer(*server, "GET / HTTP/1.1\r\n" + host + "Connection: close\r\n\r\n");
  };
  for (const char* own : {"localhost", "localhost:8080", "127.0.0.1:1", "[::1]:9", "127.0.0.2"}) {
    CAPTURE(own);
    CHECK(with_host("Host: " + std::string(own) + "\r\n").starts_with("HTTP/1.1 200"));
  }
  for (const char* other : {"evil.example", "evil.example:8080", "localhost.evil.example", "[",
                            "[::1]evil.example", "[::1", ""}) {
    CAPTURE(other);
    CHECK(with_host("Host: " + std::string(other) + "\r\n").starts_with("HTTP/1.1 403"));
  }
  CHECK(with_host("").starts_with("HTTP/1.1 403"));
  CHECK(answer(*served({}, "hello", "0.0.0.0"),
               "GET / HTTP/1.1\r\nHost: node7:8080\r\nConnection: close\r\n\r\n")
            .starts_with("HTTP/1.1 200"));
}

TEST_CASE("An answer ends its connection: a client cannot keep it with further requests") {
  const auto server = served();
  const auto begin = std::chrono::steady_clock::now();
  const std::string text = answer(*server, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(text.ends_with("hello"));
  CHECK(text.find("Connection: close") != text.npos);
  CHECK(std::chrono::steady_clock::now() - begin < 5s);  // KJ would wait so long for another one
}

TEST_CASE("Of several requests that come at once the first one alone is answered") {
  const auto server = served();
  const std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const std::string text = answer(*server, request + request + request);
  CHECK(text.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(text.ends_with("\r\n\r\nhello"));
  CHECK(text.find("HTTP/1.1", 1) == text.npos);
  CHECK(is_served(*server));
}

TEST_CASE("A name of this machine is local, and may be asked for") {
  const auto alias = served({}, "hello", "::ffff:127.0.0.1");
  CHECK(alias->is_local());
  CHECK(answer(*alias, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").starts_with("HTTP/1.1 403"));
  CHECK(answer(*alias, "GET / HTTP/1.1\r\nHost: [::ffff:127.0.0.1]:80\r\n\r\n")
            .starts_with("HTTP/1.1 200"));
  const auto open = served({}, "hello", "0.0.0.0");
  CHECK_FALSE(open->is_local());
  CHECK(open->url() == fmt::format("http://localhost:{}/", open->port()));
  for (const char* host : {"unix", "unix-abstract", "*"}) {
    CAPTURE(host);
    CHECK_FALSE(
        WebServer::start("net.http", {host, 5}, [](std::string_view) { return WebAnswer(); }).ok());
  }
}

TEST_CASE("What is no HTTP, or too long, ends the connection and nothing else") {
  const auto server = served();
  for (const std::string& bytes :
       {std::string("\x16\x03\x01\x02\x00\x01"), std::string("GET\r\n\r\n"),
        std::string(100, '\0') + "\r\n\r\n", "GET /" + std::string(1 << 20, 'a'),
        "GET / HTTP/1.1\r\nX: " + std::string(1 << 20, 'b') + "\r\n\r\n"}) {
    Client client(server->port());
    client.send(bytes + "\r\n\r\n");
    CHECK(client.all().find("200 OK") == std::string::npos);
  }
  CHECK(is_served(*server));
}

TEST_CASE("A request that does not end is cut off, while others are served") {
  const auto server = served({.request = 300ms});
  Client idle(server->port()), slow(server->port());
  slow.send("GET / HTTP/1.1\r\nHost: loc");
  CHECK(is_served(*server));
  CHECK(idle.all().find("200") == std::string::npos);
  CHECK(slow.all().find("200") == std::string::npos);
}

TEST_CASE("Connections beyond the limit are closed, and there is room when others end") {
  const auto server = served({.connections = 4, .request = 300ms});
  std::vector<std::unique_ptr<Client>> clients;
  for (int k = 0; k < 4; ++k) clients.push_back(std::make_unique<Client>(server->port()));
  Client fifth(server->port());
  CHECK(fifth.all().empty());
  for (const auto& client : clients) client->all();  // their time is over
  CHECK(is_served(*server));
}

TEST_CASE("One address does not take all places: others are served beside it") {
  const auto server = served({.connections = 4, .of_one_address = 2, .request = 300ms});
  Client first(server->port(), 2), second(server->port(), 2), third(server->port(), 2);
  CHECK(third.all().empty());
  Client other(server->port(), 3);
  other.send(kGet);
  CHECK(other.all().starts_with("HTTP/1.1 200 OK"));
  first.all();  // their time is over
  second.all();
  Client later(server->port(), 2);
  later.send(kGet);
  CHECK(later.all().starts_with("HTTP/1.1 200 OK"));
}

TEST_CASE("Clients that reset their connections before these are accepted end nothing") {
  const auto server = served();
  for (int k = 0; k < 300; ++k) Client(server->port()).reset();
  CHECK(is_served(*server));
}

TEST_CASE("A client that does not take its answer is cut off, and holds nobody up") {
  constexpr std::size_t kLength = 32 << 20;  // more than the system buffers
  const auto server =
      served({.connections = 1, .request = 60s, .answer = 1s}, std::string(kLength, 'x'));
  Client deaf(server->port());
  deaf.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  // There is room for another once the deaf one is cut off.
  const auto begin = std::chrono::steady_clock::now();
  std::string text;
  while (text.size() < kLength && std::chrono::steady_clock::now() - begin < 20s)
    text = answer(*server, kGet);
  CHECK(text.size() > kLength);
}

TEST_CASE("An address in use, or of another machine, is an error that names the option") {
  const auto server = served();
  const auto again = WebServer::start("net.http", {"127.0.0.1", server->port()},
                                      [](std::string_view) { return WebAnswer(); });
  REQUIRE_FALSE(again.ok());
  CHECK(again.error().message == fmt::format("net.http: cannot listen at 127.0.0.1:{}: Address "
                                             "already in use",
                                             server->port()));
  CHECK_FALSE(WebServer::start("net.http", {"192.0.2.1", 8080}, [](std::string_view) {
                return WebAnswer();
              }).ok());
}

TEST_CASE("The thread takes no signals, and a server ends with its connections") {
  auto server = served();
  Client client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: localhost\r\n");
  server.reset();
  CHECK(client.all().find("200") == std::string::npos);
}
