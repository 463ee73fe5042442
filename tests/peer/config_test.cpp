// The configuration: errors and their messages, writing and reading, and its hash.
#include "tests/peer/test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

/// The error of a file "c.toml" with this content.
std::string refusal(const std::string& toml, const Overrides& overrides = {}) {
  const Folder folder;
  const auto config = load_config(written(folder.path / "c.toml", toml), overrides);
  REQUIRE_FALSE(config.ok());
  CHECK(config.error().kind == ErrorKind::invalid);
  const std::string place = folder.path.string() + "/";
  std::string message = config.error().message;
  if (message.starts_with(place)) message.erase(0, place.size());
  return message;
}

bool says(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    if (message.find(part) == std::string::npos) {
      MESSAGE("'" << message << "' does not say '" << part << "'");
      return false;
    }
  return true;
}

/// Writes the configuration and reads it: equal values, equal hash, equal text.
void check_round_trip(const Config& config) {
  const Folder folder;
  const auto again = load_config(written(folder.path / "resolved.toml", config.to_toml()), {});
  REQUIRE_MESSAGE(again.ok(), (again.ok() ? "" : again.error().message));
  CHECK(again->resolved == config.resolved);
  CHECK(again->shared_hash() == config.shared_hash());
  CHECK(again->run_id() == config.run_id());
  CHECK(again->to_toml() == config.to_toml());
}

}  // namespace

TEST_CASE("every error names the file, the line, the key and the possible values") {
  struct Case {
    std::string toml;
    std::vector<std::string> words;
  };
  for (const Case& each : std::vector<Case>{
           {"[run]\npeers = 0\n", {"c.toml:2: run.peers: 0 is too small, give at least 1 peers"}},
           {"[run]\nseed = -1\n", {"c.toml:2: run.seed: -1 is too small"}},
           {"[run]\npeers = \"four\"\n", {"c.toml:2: run.peers: 'four' is not an integer"}},
           {"[run]\n\npeer = 4\n",
            {"c.toml:3: run.peer: unknown (did you mean 'peers'?); there are: ", "peers",
             "rounds"}},
           {"[run]\npeers = 2.0\n", {"c.toml:2: run.peers", "not an integer"}},
           {"[run]\nseed = 1979-05-27\n", {"c.toml:2: run.seed: this is not a boolean"}},
           {"[run]\nkind = \"ring\"\n", {"c.toml:2: run.kind: unknown"}},
           {"[runs]\npeers = 4\n",
            {"c.toml:1: unknown section [runs] (did you mean 'run'?); there are: run, topology, "}},
           {"peers = 4\n", {"c.toml:1: unknown section [peers]"}},
           {"run = 4\n", {"c.toml:1: run is a section: write [run]"}},
           {"[[run]]\npeers = 4\n", {"c.toml:1: run is a section"}},
           {"[run]\npeers =\n", {"c.toml:", "not TOML: "}},
           {"[run]\npeers = 4\npeers = 5\n", {"c.toml:3: not TOML: "}},
           {"\xff\xfe\x01[run", {"c.toml:1: not TOML: "}},
           {"[topology]\nkind = \"rng\"\n",
            {"c.toml:2: topology.kind: there is no 'rng' (did you mean 'ring'?); there are: ",
             "ring", "torus"}},
           {"[topology]\nkind = 3\n", {"c.toml:2: topology.kind: '3' is not a text"}},
           {"[topology]\nkind = \"ring\"\nrows = 4\n",
            {"c.toml:3: topology.rows: unknown for kind ring; there are: ", "weights"}},
           {"[topology]\nweights = \"equal\"\n",
            {"c.toml:2: topology.weights: 'equal' is not one of auto, metropolis, uniform, "
             "best_constant, out_degree, in_degree, given"}},
           {"[data]\nbatch = [1]\n", {"c.toml:2: data.batch: '[1]' is not an integer"}},
           {"[optimizer]\nrate = 0\n",
            {"c.toml:2: optimizer.rate: 0 is too small, give more than 0"}},
           {"[optimizer]\nrate = nan\n", {"c.toml:2: optimizer.rate: ", "not a finite number"}},
           {"[optimizer]\nschedule = \"linear\"\n",
            {"c.toml:2: optimizer.schedule: 'linear' is not one of constant, step, cosine"}},
           {"[optimizer]\nkind = \"adam\"\nmomentum = 0.9\n",
            {"c.toml:3: optimizer.momentum: unknown for kind adam; there are: ", "beta1",
             "warmup_steps"}},
           {"[optimizer]\nschedule = \"step\"\n",
            {"optimizer.milestones: the schedule 'step' needs"}},
           {"[model]\nkind = \"mlp\"\nhidden = [\"a\"]\n",
            {"c.toml:3: model.hidden: ", "not a list of integers"}},
           {"[net]\npeers = [\"a:1\", 3]\n",
            {"c.toml:2: net.peers: a list contains either integers or texts"}},
           {"[log]\nevery = 99999999999\n", {"c.toml:2: log.every: ", "too large"}}}) {
    CAPTURE(each.toml);
    CHECK(says(refusal(each.toml), each.words));
  }
}

TEST_CASE("--set gives the same errors as a file, and takes precedence over it") {
  CHECK(says(refusal("", {"run.peers"}), {"--set run.peers: write it as section.key=value"}));
  CHECK(says(refusal("", {"peers=4"}), {"--set peers=4: write it as section.key=value"}));
  CHECK(says(refusal("", {"runs.peers=4"}), {"--set runs.peers=4: unknown section [runs]"}));
  CHECK(says(refusal("", {"run.peer=4"}),
             {"--set run.peer=4: run.peer: unknown (did you mean 'peers'?); there are: "}));
  CHECK(says(refusal("", {"run.peers=many"}),
             {"--set run.peers=many: run.peers: 'many' is not an integer"}));
  CHECK(says(refusal("", {"topology.kind=rng"}),
             {"--set topology.kind=rng: topology.kind: there is no 'rng'", "torus"}));

  const Folder folder;
  const std::string file =
      written(folder.path / "c.toml", "[run]\npeers = 4\nseed = 3\n[topology]\nkind = \"star\"\n");
  const auto config = load_config(file, {"run.peers=9", "topology.kind=torus", "topology.rows=3",
                                         "run.peers=6", "local.out=a=b.c"});
  REQUIRE(config.ok());
  CHECK(config->run.peers == 6);
  CHECK(config->run.seed == 3);
  CHECK(config->local.out == fs::absolute("a=b.c"));  // paths are absolute once read
  CHECK(config->topology.kind == "torus");
  CHECK(config->topology.values.at("rows") == ParameterValue(std::int64_t{3}));
}

TEST_CASE("a missing file, a folder, and an empty file") {
  const Folder folder;
  for (const std::string& name : {std::string("missing.toml"), std::string(".")}) {
    const auto config = load_config((folder.path / name).string(), {});
    REQUIRE_FALSE(config.ok());
    CHECK(config.error().kind == ErrorKind::data);
    CHECK(says(config.error().message, {"cannot read", name}));
  }
  CHECK(load_config(written(folder.path / "empty.toml", ""), {}).ok());
}

TEST_CASE(
    "a written configuration can be read: every kind of every section, and special characters") {
  check_round_trip(configured({}));
  for (const SectionSpec& section : section_specs()) {
    const auto config = load_config("", {section.name + ".kind="});
    if (config.ok()) continue;
    const std::string& message = config.error().message;
    const auto list = message.find("there are: ");
    if (message.find("there is no ''") == std::string::npos) continue;  // a section without kinds
    std::string kinds = message.substr(list + 11) + ",";
    for (std::size_t begin = 0, end; (end = kinds.find(',', begin)) != std::string::npos;
         begin = end + 2) {
      CAPTURE(kinds.substr(begin, end - begin));
      check_round_trip(configured({section.name + ".kind=" + kinds.substr(begin, end - begin)}));
    }
  }
  check_round_trip(configured(
      {"run.id=a-1_b.c", "net.rendezvous=a \"quoted\" \\ back\nline\ttab \x7f ünï ' ''' \"\"\"",
       "net.peers=[a:1, b\"c:2]", "optimizer.rate=1e-300",
       "optimizer.weight_decay=123456789.123456789", "sim.latency_ms=1e8", "optimizer.momentum=0.1",
       "log.sketch=on", "run.rounds=1000000000000"}));
}

TEST_CASE("the hash depends on what is run, and not on where it runs") {
  const Config base = configured({"data.kind=idx"});
  for (const char* same :
       {"run.id=name", "net.failure_timeout=1", "local.threads=3", "local.out=x", "log.every=1",
        "sim.latency_ms=3", "data.path=/elsewhere", "data.images=a", "data.labels=b",
        "data.test_images=c", "data.test_labels=d"})
    CHECK_MESSAGE(configured({"data.kind=idx", same}).shared_hash() == base.shared_hash(), same);
  for (const char* other :
       {"run.seed=1", "run.peers=15", "run.rounds=1", "run.init=different", "topology.kind=path",
        "topology.lazy=true", "algorithm.kind=allreduce", "algorithm.policy=async",
        "algorithm.local_steps=2", "model.kind=mlp", "data.batch=1", "data.scale=1",
        "optimizer.rate=0.2", "optimizer.nesterov=true"})
    CHECK_MESSAGE(configured({"data.kind=idx", other}).shared_hash() != base.shared_hash(), other);
  CHECK(configured({"run.id=name"}).run_id() == "name");
  CHECK(base.run_id() == base.shared_hash().substr(0, 16));
}

TEST_CASE(
    "a relative path is resolved against the folder of the file, or with --set against the working "
    "directory") {
  const Folder folder;
  fs::create_directories(folder.path / "sub");
  const std::string file = written(
      folder.path / "sub" / "c.toml",
      "[data]\nkind = \"idx\"\npath = \"../mnist\"\nimages = \"i\"\n[net]\nrendezvous = \"meet\"\n"
      "[local]\nout = \"/absolute/out\"\n");
  const auto config = load_config(file, {});
  REQUIRE(config.ok());
  CHECK(config->data.values.at("path") == ParameterValue((folder.path / "mnist").string()));
  CHECK(config->data.values.at("images") == ParameterValue(std::string("i")));
  CHECK(config->net.rendezvous == (folder.path / "sub" / "meet").string());
  CHECK(config->local.out == "/absolute/out");
  const auto overridden = load_config(file, {"data.path=here", "local.out="});
  REQUIRE(overridden.ok());
  CHECK(overridden->data.values.at("path") ==
        ParameterValue((fs::current_path() / "here").string()));
  CHECK(overridden->local.out.empty());
  check_round_trip(*config);
}

TEST_CASE("keys of peers stand beside their addresses in a file, and apart on the command line") {
  const Folder folder;
  const auto config = load_config(
      written(folder.path / "c.toml",
              "[net]\npeers = [{address = \"a:1\", key = \"00\"}, {address = \"b:2\", key = "
              "\"01\"}]\n"),
      {});
  REQUIRE(config.ok());
  CHECK(config->net.peers == std::vector<std::string>{"a:1", "b:2"});
  CHECK(config->net.keys == std::vector<std::string>{"00", "01"});
  for (const char* entry : {"{address = \"a:1\"}", "{address = \"a:1\", key = 1}", "{}",
                            "{address = \"a:1\", key = \"00\", id = 3}"})
    CHECK(says(refusal("[net]\npeers = [" + std::string(entry) + "]\n"),
               {"c.toml:2: net.peers: each entry is a text, or each is"}));
  CHECK(refusal("", {"net.peers=[{address=\"a:1\", key=\"00\"}]"}) ==
        "--set net.peers=[{address=\"a:1\", key=\"00\"}]: net.peers is a list of addresses here; "
        "give the keys as net.keys");
  CHECK(load_config("", {"net.peers=[\"w{peer}.local:7000\"]"}).ok());
}

TEST_CASE("a run id is a name, not a path") {
  const std::vector<std::string> ids = {"..",  ".hidden", "../up",     "/abs",
                                        "a b", "\xff",    "new\nline", std::string(64, 'a')};
  for (const std::string& id : ids) {
    const auto config = load_config("", {"run.id=" + id});
    REQUIRE_FALSE(config.ok());
    CHECK(says(config.error().message, {"run.id"}));
  }
  CHECK(load_config("", {"run.id=study-3_b.1"}).ok());
}

TEST_CASE("a path that is not UTF-8 is refused: the run could not read its configuration again") {
  const auto message_of = [](const std::string& path, const Overrides& overrides) {
    const auto config = load_config(path, overrides);
    REQUIRE_FALSE(config.ok());
    CHECK(config.error().kind == ErrorKind::invalid);
    return config.error().message;
  };
  CHECK(message_of("", {"local.out=/runs/\xff"}) ==
        "--set local.out=/runs/\xff: local.out: '/runs/\xff' is not UTF-8, as the files of a run "
        "are; give another text, or rename the file or folder that it names, or the folder that it "
        "is in");
  CHECK(message_of("", {"model.kind=external", "model.extra=\xc3"}).find("'\xc3' is not UTF-8") !=
        std::string::npos);
  // A relative path of a file begins in the folder of the file.
  const Folder folder;
  fs::create_directory(folder.path / "\xff");
  const std::string file = written(folder.path / "\xff" / "run.toml", "[local]\nout = \"run\"\n");
  CHECK(message_of(file, {}).find("/\xff/run' is not UTF-8") != std::string::npos);
  CHECK(load_config("", {"local.out=/runs/ä"}).ok());
}

TEST_CASE("infinity is not a valid number") {
  CHECK(says(refusal("[optimizer]\nrate = inf\n"), {"c.toml:2: optimizer.rate", "finite"}));
}

TEST_CASE("an external model takes the settings of its task, with the type of their file") {
  const Folder folder;
  const std::string file = written(
      folder.path / "task.toml",
      "[model]\nkind = \"external\"\nfile = \"task.py\"\nsize = \"1\"\nrate = 0.5\nwide = true\n");
  const auto loaded = [&file](const Overrides& overrides) {
    const auto config = load_config(file, overrides);
    REQUIRE_MESSAGE(config.ok(), (config.ok() ? "" : config.error().message));
    return *config;
  };
  const Config config = loaded({"model.rate=2", "model.size=3", "model.steps=4", "model.decay=1e-3",
                                "model.name=a=b", "model.deep=false"});
  const ParameterValues& model = config.model.values;
  CHECK(std::get<std::string>(model.at("file")) == (folder.path / "task.py").string());
  CHECK(std::get<double>(model.at("rate")) == 2);
  CHECK(std::get<std::string>(model.at("size")) == "3");
  CHECK(std::get<bool>(model.at("wide")));
  CHECK(std::get<std::int64_t>(model.at("steps")) == 4);
  CHECK(std::get<double>(model.at("decay")) == 1e-3);
  CHECK(std::get<std::string>(model.at("name")) == "a=b");
  CHECK_FALSE(std::get<bool>(model.at("deep")));
  check_round_trip(config);
  CHECK(loaded({"model.rate=0.25"}).shared_hash() != loaded({}).shared_hash());
  CHECK(loaded({"model.file=elsewhere.py"}).shared_hash() == loaded({}).shared_hash());
  // A second --set has the file's type too.
  CHECK(std::get<std::string>(loaded({"model.size=3", "model.size=4"}).model.values.at("size")) ==
        "4");
  const auto wrong = load_config(file, {"model.rate=fast"});
  REQUIRE_FALSE(wrong.ok());
  CHECK(says(wrong.error().message, {"--set model.rate=fast", "model.rate", "a number"}));
  CHECK(says(refusal("[model]\nkind = \"external\"\n\"a b\" = 1\n"),
             {"c.toml:3: model.a b", "letters"}));
  CHECK(says(refusal("[model]\nkind = \"external\"\nat = 1979-05-27\n"), {"c.toml:3: model.at"}));
  CHECK(says(refusal("[model]\nkind = \"mlp\"\nsize = \"1\"\n"),
             {"c.toml:3: model.size: unknown for kind mlp"}));
  CHECK(says(refusal("[optimizer]\nsize = 1\n[model]\nkind = \"external\"\n"), {"optimizer.size"}));
}

TEST_CASE("combinations that cannot run are refused at the start, with a reason") {
  const auto refused = [](const Overrides& overrides, ErrorKind kind = ErrorKind::invalid) {
    const auto setup = make_setup(configured(overrides));
    REQUIRE_FALSE(setup.ok());
    CHECK(setup.error().kind == kind);
    return setup.error().message;
  };
  CHECK(says(refused({"topology.kind=hypercube", "run.peers=12"}), {"12", "16"}));
  CHECK(says(refused({"topology.kind=torus", "run.peers=7"}), {"torus", "7"}));
  CHECK(says(refused({"algorithm.kind=allreduce", "algorithm.policy=async"}),
             {"algorithm.policy", "allreduce", "sync"}));
  CHECK(says(refused({"algorithm.kind=gradient_tracking", "algorithm.policy=async"}),
             {"algorithm.policy", "sums", "sync"}));
  CHECK(says(refused({"algorithm.kind=d2", "topology.kind=ring", "run.peers=16"}),
             {"-0.333", "topology.lazy = true"}));
  CHECK(make_setup(configured({"algorithm.kind=d2", "topology.kind=ring", "run.peers=16",
                               "topology.lazy=true"}))
            .ok());
  CHECK(make_setup(configured({"algorithm.kind=d2", "topology.kind=ring", "run.peers=9"})).ok());
  CHECK(says(refused({"algorithm.kind=d2", "topology.kind=one_peer_exponential"}),
             {"topology.kind", "d2", "symmetric", "gradient_tracking"}));
  CHECK(says(refused({"algorithm.kind=allreduce", "run.init=different"}),
             {"run.init", "allreduce", "same"}));
  CHECK(says(refused({"algorithm.kind=consensus", "sim.latency_ms=1e9", "run.rounds=1000000"}),
             {"virtual time"}));
  const Folder folder;
  const std::string table = written(folder.path / "ms.csv", "0 1 2\n1 0 x\n2 1 0\n");
  CHECK(says(refused({"sim.latency_file=" + table}, ErrorKind::data),
             {"sim.latency_file", "ms.csv:2", "'x'"}));
  CHECK(says(refused({"sim.bandwidth_file=" + (folder.path / "none").string()}, ErrorKind::data),
             {"sim.bandwidth_file", "none"}));
  const std::string good = written(folder.path / "good.csv", "0 1 2\n1 0 1\n2 1 0\n");
  CHECK(says(refused({"sim.latency_file=" + good, "run.peers=2"}),
             {"sim.latency_file", "good.csv", "3 regions", "2 peers"}));
  CHECK(make_setup(configured({"sim.latency_file=" + good, "run.peers=2", "algorithm.kind=server"}))
            .ok());  // one is the server's
  CHECK(says(refused({"sim.latency_file=" + good, "sim.latency_ms=3"}),
             {"sim.latency_file", "sim.latency_ms", "set only one"}));
  CHECK(says(refused({"sim.spread=uniform", "sim.latency_spread=1"}),
             {"sim.latency_spread", "below 1", "log_normal"}));
  CHECK(says(refused({"algorithm.kind=consensus", "sim.latency_ms=1e6", "sim.latency_spread=2"}),
             {"virtual time"}));
  CHECK(says(refused({"data.batch=1000"}), {"peer", "1000", "data.batch"}));
  CHECK(says(refused({"run.peers=2000", "data.batch=1"}), {"2000", "data"}));
  CHECK(says(refused({"model.kind=linear"}), {"linear"}));
  CHECK(says(refused({"data.kind=quadratic"}), {"softmax"}));
}
