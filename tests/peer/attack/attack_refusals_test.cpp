// Attacks that a configuration cannot have, each refused by name.
#include "gossip/attack.hpp"
#include "tests/peer/attack/attack_test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

TEST_CASE("settings of hostile peers that make no sense are refused") {
  CHECK(
      attack_refusal_of({"attack.peers=[1]"}) ==
      "attack.peers: has no effect with attack.kind = none; set attack.kind, which `gossamer list` "
      "explains, or remove the key");
  CHECK(attack_refusal_of({"attack.strength=2"}).starts_with("attack.strength: has no effect"));
  CHECK(attack_refusal_of({"attack.from=2"}).starts_with("attack.from: has no effect"));
  CHECK(attack_refusal_of({"attack.fraction=0.5"}).starts_with("attack.fraction: has no effect"));
  CHECK(attack_refusal_of({"attack.line_search=true"})
            .starts_with("attack.line_search: has no effect"));
  CHECK(attack_refusal_of({"attack.kind=backdoor", "attack.peers=[1]", "data.crop=1"})
            .starts_with("data.crop and data.flip would cut off the trigger"));
  CHECK(attack_refusal_of({"attack.kind=ipm"}) ==
        "attack.peers: name the hostile peers of 'ipm', as attack.peers = [0, 1], or set "
        "attack.fraction");
  CHECK(attack_refusal_of({"attack.kind=ipm", "attack.peers=[1, 4, 1]"}) ==
        "attack.peers: peer 1 is named twice; remove one");
  CHECK(attack_refusal_of({"attack.kind=ipm", "attack.peers=[9]"}) ==
        "attack.peers: there is no peer 9; the peers are 0 to 8");
  CHECK(attack_refusal_of({"attack.kind=ipm", "attack.peers=[-1]"})
            .starts_with("attack.peers: there is no peer -1"));
  CHECK(attack_refusal_of({"run.peers=2", "attack.kind=ipm", "attack.peers=[0, 1]"})
            .starts_with("attack.peers: all 2 peers are hostile"));
  CHECK(attack_refusal_of(attacked("mimic", {"attack.strength=1"})) ==
        "attack.strength: 'mimic' has no strength; remove the key");
  CHECK(attack_refusal_of(attacked("alie", {"run.peers=8"}))
            .starts_with("attack.strength: with 2 hostile of 8"));
  CHECK(attack_refusal_of({"attack.kind=alie", "attack.peers=[0, 1, 2]"}) == "");
  CHECK(load_config("", {"attack.kind=magic"}).error().message.find("there is no 'magic'") !=
        std::string::npos);
  CHECK(load_config("", {"attack.kind=ipm", "attack.lag=2"})
            .error()
            .message.find("attack.lag: unknown for kind ipm") != std::string::npos);
}

TEST_CASE("a search is refused where there is nothing to search") {
  const Overrides search{"attack.line_search=true"};
  CHECK(attack_refusal_of(attacked("noise") + search) ==
        "attack.line_search: 'noise' has no strength that depends on honest rows; set it to false, "
        "or choose an attack whose strength can be searched (alie, dissensus, ipm, "
        "spectral_heterogeneity)");
  CHECK(attack_refusal_of(attacked("mimic") + search).starts_with("attack.line_search: 'mimic'"));
  CHECK(attack_refusal_of(attacked("ipm", {"attack.strength=2"}) + search) ==
        "attack.strength: has no effect with attack.line_search; remove one");
  CHECK(attack_refusal_of(attacked("ipm", {"mixing.rule=ubar"}) + search)
            .starts_with("attack.line_search: the mix of mixing.rule = ubar depends on losses"));
  CHECK(attack_refusal_of(attacked("ipm", {"run.participants=[\"0-5\", \"4: 0-8\"]"}))
            .starts_with("run.participants: 'ipm' reads the rows of all peers in each round"));
  CHECK(attack_refusal_of(attacked("alie", {"run.peers=8"}) + search) == "");
  CHECK(attack_refusal_of(attacked("spectral_heterogeneity",
                                   {"topology.kind=one_peer_exponential", "run.peers=8"}))
            .starts_with("attack.kind: 'spectral_heterogeneity' attacks one graph, and W of "
                         "topology.kind = one_peer_exponential changes"));
}

TEST_CASE("an attack is refused by name where it cannot be carried out") {
  for (const gossip::AlgorithmKind& kind : gossip::algorithms::catalog()) {
    CAPTURE(kind.name);
    const Overrides problem = fitted({"run.peers=9", "algorithm.kind=" + kind.name});
    const bool mixes_one_row = kind.name == "dpsgd" || kind.name == "qg_momentum" ||
                               kind.name == "decentlam" || kind.name == "consensus" ||
                               kind.name == "d2" || kind.name == "extra";
    const std::string refused = attack_refusal_of(problem + attacked("sign_flip"));
    CHECK(refused.empty() == mixes_one_row);
    CHECK((mixes_one_row ||
           refused.find("'" + kind.name + "' does not only mix one row") != std::string::npos));
  }
  for (const char* policy : {"deadline", "stale", "async"})
    CHECK(attack_refusal_of(attacked("ipm", {std::string("algorithm.policy=") + policy}))
              .find(std::string("set algorithm.policy = sync in place of ") + policy) !=
          std::string::npos);
  CHECK(attack_refusal_of(attacked("ipm", {"codec.kind=int8"}))
            .starts_with("codec.kind: the messages of the attack 'ipm' are not encoded"));
  for (const char* policy : {"sync", "stale"})
    CHECK(attack_refusal_of(attacked("silence", {std::string("algorithm.policy=") + policy})) ==
          std::string("attack.kind: the hostile peers of 'silence' send no rows, and under "
                      "algorithm.policy = ") +
              policy +
              " their neighbours would wait for them without end; set algorithm.policy = deadline "
              "or async");
  CHECK(attack_refusal_of(attacked("silence", {"algorithm.policy=async"})) == "");
  for (const char* kind : {"mimic", "stale"})
    CHECK(attack_refusal_of(attacked(kind, {"checkpoint.every=5"}))
              .starts_with("checkpoint.every: a checkpoint does not contain what the attack"));
  CHECK(attack_refusal_of(attacked("label_flip", {"model.kind=linear", "data.kind=quadratic"}))
            .starts_with("attack.kind: 'label_flip' changes classes, and 'quadratic' has none"));
  CHECK(attack_refusal_of(attacked("backdoor", {"model.kind=linear", "data.kind=quadratic"}))
            .starts_with("attack.kind: 'backdoor' changes classes, and 'quadratic' has none"));
  CHECK(attack_refusal_of(attacked("backdoor", {"attack.target=10"})) ==
        "attack.target: there is no class 10; the classes of 'digits' are 0 to 9");
  CHECK(load_config("", attacked("backdoor", {"attack.share=1.5"}))
            .error()
            .message.find("attack.share: 1.5 is too large") != std::string::npos);
  CHECK(attack_refusal_of(attacked("label_flip", {"attack.from=3"}))
            .starts_with("attack.from: 'label_flip' changes the data before the first round"));
}
