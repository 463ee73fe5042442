// Admission without a network: for how long a peer that violated the protocol stays away, and when
// a second process of one id is reported.
#include "net/run/admission.hpp"

#include <doctest/doctest.h>

#include "net/io/back_off.hpp"

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
