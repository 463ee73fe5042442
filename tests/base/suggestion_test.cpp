// Misspelt names.
#include "base/suggestion.hpp"

#include <doctest/doctest.h>

using namespace gossamer;

TEST_CASE(
    "a name that takes few edits is near: letters that lack, are too many, wrong or swapped") {
  const std::vector<std::string> names{"run", "peer", "ring", "optimizer", "--version", "adam"};
  for (const auto& [word, name] : {std::pair{"runn", "run"},
                                   {"rin", "run"},
                                   {"rign", "ring"},
                                   {"optmizer", "optimizer"},
                                   {"optimiezrs", "optimizer"},
                                   {"version", "--version"},
                                   {"adma", "adam"},
                                   {"peer", "peer"}})
    CHECK_MESSAGE(nearest_name(word, names) == name, word);
  for (const char* word : {"", "x", "sweep", "torus", "simulate", "ru_n_x"})
    CHECK_MESSAGE(nearest_name(word, names).empty(), word);
  CHECK(nearest_name("ring", {}).empty());
  CHECK(nearest_name(std::string(100'000, 'r'), names).empty());
}

TEST_CASE("a message ends with the nearest name and all others") {
  CHECK(known_names("rign", {"path", "ring"}) == " (did you mean 'ring'?); there are: path, ring");
  CHECK(known_names("torus", {"path", "ring"}) == "; there are: path, ring");
}
