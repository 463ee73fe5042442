// What a peer that waits for its donor knows, and forwards.
#include "gossip/membership/donor_wait.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace gossamer;
using namespace gossamer::gossip;

TEST_CASE("a waiting peer forwards once that another has begun its round") {
  std::vector<Round> sent;
  int begun = 0;
  DonorWait wait([&] { ++begun; }, [&](Round t) { sent.push_back(t); });
  wait.note_begun(5);  // it takes part
  CHECK_FALSE(wait.others_have_begun());

  wait.set(9);
  wait.note_begun(8);
  CHECK_FALSE(wait.others_have_begun());
  CHECK(sent.empty());
  wait.note_begun(9);
  CHECK(wait.others_have_begun());
  wait.note_begun(9);
  wait.note_begun(10);
  CHECK(begun == 1);
  CHECK(sent == std::vector<Round>{9});

  wait.set(10);  // known before it began to wait
  CHECK(wait.others_have_begun());
  wait.set(20);
  wait.note_begun(23);
  CHECK(begun == 2);
  CHECK(sent == std::vector<Round>{9, 23});
}

TEST_CASE("a peer that takes part announces the rounds of changes that it begins") {
  std::vector<Round> sent;
  const DonorWait wait([] {}, [&](Round t) { sent.push_back(t); });
  wait.announce(7);
  CHECK(sent == std::vector<Round>{7});
}
