// Admission without a network: for how long a peer that violated the protocol stays away, when a
// second process of one id is reported, and how fast connections are read.
#include "net/run/admission.hpp"

#include <doctest/doctest.h>

#include <string>

#include "net/io/back_off.hpp"
#include "net/startup/accept_pace.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace std::chrono_literals;

TEST_CASE("a session that broke without a fault of the peer begins again at once") {
  Admission admission;
  CHECK(admission.on_failure(10s, {}) == 0s);
  CHECK(!admission.is_barred(10s));
  CHECK(admission.on_failure(10s, {.silent = true}) == BackOff::kLongest);
  CHECK(!admission.is_barred(10s));
}

TEST_CASE("a peer that violated the protocol is barred for the longest pause") {
  Admission admission;
  CHECK(admission.on_failure(10s, {.violated = true}) == BackOff::kLongest);
  CHECK(admission.is_barred(10s + BackOff::kLongest - 1ns));
  CHECK(!admission.is_barred(10s + BackOff::kLongest));
}

TEST_CASE("a peer whose rows are overdue is barred twice as long each time, within bounds") {
  Admission admission;
  gossip::Time now = 0s, expected = 60s;
  for (int failure = 0; failure < 40; ++failure) {
    admission.on_overdue(60s);
    const gossip::Time pause = admission.on_failure(now, {.violated = true});
    CHECK(pause == expected);
    CHECK(admission.is_barred(now + pause - 1ns));
    now += pause;
    CHECK(!admission.is_barred(now));
    if (failure < 16) expected *= 2;
  }
  // A later violation of another kind is no longer about rows.
  CHECK(admission.on_failure(now, {.violated = true}) == BackOff::kLongest);
}

TEST_CASE("a second process of one id is reported once, and not before the failure timeout") {
  Admission admission;
  CHECK(!admission.on_duplicate(10s, 5s));
  CHECK(!admission.on_duplicate(14s, 5s));
  CHECK(admission.on_duplicate(15s, 5s));
  CHECK(!admission.on_duplicate(30s, 5s));
  admission.on_session();
  CHECK(!admission.on_duplicate(40s, 5s));
  CHECK(admission.on_duplicate(45s, 5s));
}

TEST_CASE("pauses double from 50 ms to 1 s, and begin anew") {
  BackOff back_off;
  for (const gossip::Time expected : {50ms, 100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms})
    CHECK(back_off.next() == expected);
  back_off.reset();
  CHECK(back_off.next() == 50ms);
}

TEST_CASE("an address has a burst of connections, and then some in a second") {
  AcceptPace pace(3, false), encrypted(3, true);
  const auto admitted = [&](const std::string& host, int tries, gossip::Time now) {
    int count = 0;
    for (int i = 0; i < tries; ++i) count += pace.admit(host, now) ? 1 : 0;
    return count;
  };
  CHECK(admitted("10.0.0.1", 1000, 0ns) == 70);
  CHECK(admitted("10.0.0.1", 1000, 1s) == 56);
  CHECK(admitted("10.0.0.1", 1000, 1s) == 0);
  CHECK(admitted("10.0.0.2", 1000, 1s) == 70);  // another address is not its concern
  CHECK(admitted("10.0.0.1", 1000, 1h) == 70);
  for (int i = 0; i < 1000; ++i) encrypted.admit("10.0.0.1", 0ns);
  int later = 0;
  for (int i = 0; i < 1000; ++i) later += encrypted.admit("10.0.0.1", 1s) ? 1 : 0;
  CHECK(later == 31);
}

TEST_CASE("connections of members do not count") {
  AcceptPace pace(0, false);
  for (int i = 0; i < 10'000; ++i) {
    CHECK(pace.admit("host", 0ns));
    pace.on_member("host");
  }
  pace.on_member("never seen");
  CHECK(pace.admit("never seen", 0ns));
}

TEST_CASE("of many addresses the one that was silent longest is forgotten") {
  AcceptPace pace(0, false);
  for (int i = 0; i < 1000; ++i) pace.admit("first", 0ns);
  CHECK_FALSE(pace.admit("first", 1ms));
  for (int i = 0; i < 2000; ++i) CHECK(pace.admit("host " + std::to_string(i), 2ms));
  CHECK(pace.admit("first", 2ms));
}
