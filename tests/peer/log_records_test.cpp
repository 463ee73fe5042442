// Records of logs that are not what they should be.
#include "peer/log/log_records.hpp"

#include <doctest/doctest.h>

using namespace gossamer::peer;

TEST_CASE("an event with the participants of an open run has their ids and their edges") {
  const Json good = {{"record", "membership"},
                     {"round", 12},
                     {"peer", 0},
                     {"seconds", 1.5},
                     {"event", "participants"},
                     {"neighbour", nullptr},
                     {"reachable_peers", nullptr},
                     {"cause", nullptr},
                     {"participants", "0-3,7"},
                     {"topology", {{"edge_list", nullptr}}}};
  const auto check = [&](const char* field, const Json& value) {
    Json record = good;
    if (value.is_discarded()) record.erase(field);
    else record[field] = value;
    return check_record(Json::parse(record.dump()), {0}, 1);  // numbers as they are read
  };
  CHECK_FALSE(check("round", 12));
  CHECK_FALSE(check("topology", {{"edge_list", Json::array({Json::array({0, 1})})}}));
  const Json missing(Json::value_t::discarded);
  for (const Json& ids : {missing, Json(), Json(7), Json(""), Json("x"), Json("3-1"), Json("0,0"),
                          Json("65535"), Json("0-99999999999999999999")})
    CHECK(check("participants", ids).value_or("").starts_with("participants: "));
  for (const Json& topology :
       {missing, Json(), Json("ring"), Json::object(), Json{{"edge_list", 7}},
        Json{{"edge_list", Json::array({Json::array({0, -1})})}},
        Json{{"edge_list", Json::array({Json::array({0, 1, 2})})}}})
    CHECK(check("topology", topology).value_or("").starts_with("topology: "));
}
