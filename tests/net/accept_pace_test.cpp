#include "net/startup/accept_pace.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

using namespace std::chrono_literals;
using gossamer::net::AcceptPace;

TEST_CASE("an address has a burst of connections, and then some in a second") {
  AcceptPace pace(3);
  const auto admitted = [&](const std::string& host, int tries, gossamer::gossip::Time now) {
    int count = 0;
    for (int i = 0; i < tries; ++i) count += pace.admit(host, now) ? 1 : 0;
    return count;
  };
  CHECK(admitted("10.0.0.1", 1000, 0ns) == 70);
  CHECK(admitted("10.0.0.1", 1000, 1s) == 56);
  CHECK(admitted("10.0.0.1", 1000, 1s) == 0);
  CHECK(admitted("10.0.0.2", 1000, 1s) == 70);  // another address is not its concern
  CHECK(admitted("10.0.0.1", 1000, 1h) == 70);
}

TEST_CASE("connections of members do not count") {
  AcceptPace pace(0);
  for (int i = 0; i < 10'000; ++i) {
    CHECK(pace.admit("host", 0ns));
    pace.on_member("host");
  }
  pace.on_member("never seen");
  CHECK(pace.admit("never seen", 0ns));
}

TEST_CASE("of many addresses the one that was silent longest is forgotten") {
  AcceptPace pace(0);
  for (int i = 0; i < 1000; ++i) pace.admit("first", 0ns);
  CHECK_FALSE(pace.admit("first", 1ms));
  for (int i = 0; i < 2000; ++i) CHECK(pace.admit("host " + std::to_string(i), 2ms));
  CHECK(pace.admit("first", 2ms));
}
