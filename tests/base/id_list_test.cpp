// Lists of ids as people write and read them.
#include "base/id_list.hpp"

#include <doctest/doctest.h>

using namespace gossamer;

TEST_CASE("lists of ids in their shortest form, and as messages name the peers of a process") {
  CHECK(ids_text({0, 1, 2, 3, 7}) == "0-3,7");
  CHECK(ids_text({4, 5}) == "4,5");
  CHECK(peers_text({4}) == "peer 4");
  CHECK(peers_text({4, 5}) == "peers 4, 5");
  CHECK(peers_text({0, 1, 2, 3, 7}) == "peers 0-3, 7");
}
