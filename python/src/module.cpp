// The extension gossamer._core: background runs, requests and views of rows. Everything for people
// is in python/gossamer/.
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <utility>

#include "background_run.hpp"
#include "own_data.hpp"
#include "peer/config/config_json.hpp"
#include "peer/log/summary.hpp"
#include "peer/prediction/prediction.hpp"
#include "peer/runtime/network_ids.hpp"
#include "peer/version.hpp"

namespace nb = nanobind;

namespace gossamer::python {
namespace {

/// Becomes gossamer.Error, with the exit code of its kind.
struct PythonError : std::runtime_error {
  explicit PythonError(const std::string& message, ErrorKind of = ErrorKind::invalid)
      : std::runtime_error(message), kind(of) {}
  explicit PythonError(const Error& error) : PythonError(error.message, error.kind) {}
  ErrorKind kind;
};

template <class Value>
Value value_or_raise(Result<Value> result) {
  if (!result.ok()) throw PythonError(result.error());
  return std::move(result).value();
}

/// For people; with Python's lock.
void log_message(const std::string& line) {
  nb::module_::import_("gossamer.runs").attr("log_message")(line);
}

using Row = nb::ndarray<nb::array_api, float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// A view of a row, which keeps the memory of the run alive.
Row view_of(const std::shared_ptr<BackgroundRun>& run, const float* values, std::size_t length) {
  struct Owner {
    std::shared_ptr<BackgroundRun> run;
    ~Owner() { run->remove_view(); }
  };
  auto owner = std::make_unique<Owner>(Owner{run});
  run->add_view();
  nb::capsule capsule(owner.release(),
                      [](void* held) noexcept { delete static_cast<Owner*>(held); });
  return Row(const_cast<float*>(values), {length}, capsule);
}

/// A request in Python. It is valid until the batch is complete.
struct PythonRequest {
  Request request;
  std::shared_ptr<BackgroundRun> run;
  bool complete = false;

  Row row(std::span<float> values) const {
    if (complete) throw PythonError("the rows of a request are not available after complete()");
    return view_of(run, values.data(), values.size());
  }
};

/// By operation.
constexpr const char* kOperationNames[] = {"initialise", "local_steps", "gradient",
                                           "update",     "reset",       "evaluate",
                                           "save",       "restore",     "agree"};

/// A background run in Python. A forked child has the object, but not the threads of the run.
class PythonRun {
 public:
  explicit PythonRun(std::shared_ptr<BackgroundRun> run)
      : run_(std::move(run)), process_(::getpid()) {}
  PythonRun(const PythonRun&) = delete;
  PythonRun& operator=(const PythonRun&) = delete;
  ~PythonRun() {
    if (is_forked()) new std::shared_ptr<BackgroundRun>(std::move(run_));  // left to the system
    else close();
  }

  const BackgroundRun& run() const { return *run_; }

  /// The next batch; empty at the end of the run. Python's signal handlers run while it waits.
  std::vector<std::shared_ptr<PythonRequest>> next() {
    check_process();
    constexpr std::chrono::milliseconds kPatience(50);
    for (bool ready = false; !ready;) {
      {
        const nb::gil_scoped_release released;
        ready = run_->handoff().wait(kPatience);
      }
      for (const std::string& line : run_->take_messages()) log_message(line);
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
    requests_.clear();
    if (const std::vector<Request>* batch = run_->handoff().batch()) {
      for (const Request& request : *batch)
        requests_.push_back(std::make_shared<PythonRequest>(PythonRequest{request, run_}));
    } else if (const std::optional<Error> error = run_->error()) {
      throw PythonError(*error);
    }
    return requests_;
  }

  void complete() {
    check_process();
    std::vector<Request>* batch = run_->handoff().batch();
    if (batch == nullptr || batch->size() != requests_.size())
      throw PythonError("complete() without a batch of next()");
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      requests_[i]->complete = true;
      (*batch)[i].losses = requests_[i]->request.losses;
      (*batch)[i].rate = requests_[i]->request.rate;
      (*batch)[i].evaluation = requests_[i]->request.evaluation;
      (*batch)[i].state = std::move(requests_[i]->request.state);
    }
    requests_.clear();
    run_->handoff().complete();
  }

  void stop() {
    if (!is_forked()) run_->stop();
  }
  void leave() {
    check_process();
    run_->leave();
  }

  void close() {
    if (is_forked()) return;
    for (const auto& request : requests_) request->complete = true;
    requests_.clear();
    const nb::gil_scoped_release released;
    run_->close();
  }

  std::vector<Row> final_rows() {
    check_process();
    std::vector<Row> rows;
    for (const std::span<const float> row : run_->final_rows())
      rows.push_back(view_of(run_, row.data(), row.size()));
    return rows;
  }
  std::string last_record() { return peer::text_of(run_->last_record()); }
  std::vector<std::string> take_messages() { return run_->take_messages(); }
  void check_process() const {
    if (is_forked())
      throw PythonError(
          "this process was forked after it joined the run, and has no connections; join in the "
          "process that trains, or start workers with the method 'spawn'");
  }

 private:
  bool is_forked() const { return ::getpid() != process_; }

  std::shared_ptr<BackgroundRun> run_;
  std::vector<std::shared_ptr<PythonRequest>> requests_;
  pid_t process_;
};

using Tensors = std::vector<std::tuple<std::string, std::vector<std::int64_t>>>;

/// Means and deviations, by feature.
std::tuple<std::vector<double>, std::vector<double>> scales_of(const PythonRequest& self) {
  std::tuple<std::vector<double>, std::vector<double>> scales;
  for (const auto& [mean, deviation] : self.request.scales)
    std::get<0>(scales).push_back(mean), std::get<1>(scales).push_back(deviation);
  return scales;
}

peer::WorkloadSpec spec_of(const Tensors& tensors) {
  peer::WorkloadSpec spec;
  for (const auto& [name, shape] : tensors) {
    train::ParameterBlock block;
    block.name = name;
    block.offset = spec.parameters;
    block.length = 1;
    for (const std::int64_t size : shape) {
      if (size < 0 || size > std::numeric_limits<int>::max())
        throw PythonError(fmt::format("tensor {}: a dimension of {}", name, size));
      block.shape.push_back(static_cast<int>(size));
      block.length *= static_cast<std::size_t>(size);
    }
    spec.parameters += block.length;
    spec.blocks.push_back(std::move(block));
  }
  if (spec.parameters == 0) throw PythonError("there are no parameters to train");
  return spec;
}

/// May wait for other processes, without Python's lock; looks for an interrupt of the program.
peer::NetworkIds find_ids(const std::string& ids, const std::string& config,
                          const std::vector<std::string>& overrides) {
  peer::NetworkIdsRequest request;
  request.option = ids;
  request.origin = "--id";  // gossamer.messages names the argument of the call
  request.message = [](const std::string& line) {
    const nb::gil_scoped_acquire held;
    log_message(line);
  };
  bool interrupted = false;
  request.stopped = [&interrupted] {
    const nb::gil_scoped_acquire held;
    return interrupted = interrupted || PyErr_CheckSignals() != 0;
  };
  const peer::Config loaded = value_or_raise(peer::load_config(config, overrides));
  request.folder = peer::run_folder(loaded);
  auto found = [&] {
    const nb::gil_scoped_release released;
    return peer::find_network_ids(loaded, request,
                                  [](const char* name) { return std::getenv(name); });
  }();
  if (interrupted) throw nb::python_error();
  return value_or_raise(std::move(found));
}

std::string configuration(const std::string& config, const std::vector<std::string>& overrides) {
  return peer::text_of(peer::config_json(value_or_raise(peer::load_config(config, overrides))));
}

/// A run that is not started.
class CheckedRun {
 public:
  explicit CheckedRun(BackgroundRunRequest request)
      : setup_(value_or_raise(make_task_setup(std::move(request), handoff_))) {}

  /// What `gossamer run --check --json` prints.
  std::string size() const { return peer::text_of(peer::size_json(setup_)); }
  /// What `gossamer predict` prints, as JSON or as text.
  std::string predict(double decay, bool json) const {
    const nb::gil_scoped_release released;
    if (const Status status = peer::check_predictable(setup_.config); !status.ok())
      throw PythonError(status.error());
    const peer::Prediction prediction = peer::predict(setup_, decay);
    return json ? peer::text_of(peer::prediction_json(setup_, prediction))
                : peer::prediction_text(setup_, prediction);
  }

 private:
  Handoff handoff_;
  peer::Setup setup_;
};

CheckedRun* check(BackgroundRunRequest request) {
  const nb::gil_scoped_release released;
  return new CheckedRun(std::move(request));
}

PythonRun* start(BackgroundRunRequest request) {
  const nb::gil_scoped_release released;
  return new PythonRun(value_or_raise(BackgroundRun::start(std::move(request))));
}

std::string summary_text(const std::string& summary) {
  return peer::summary_text(value_or_raise(peer::parse_json(summary)));
}

void bind_request(nb::module_& module) {
  nb::class_<PythonRequest>(module, "Request")
      .def_prop_ro("operation",
                   [](const PythonRequest& self) {
                     return kOperationNames[static_cast<int>(self.request.operation)];
                   })
      .def_prop_ro("peer", [](const PythonRequest& self) { return self.request.peer; })
      .def_prop_ro("shard_of", [](const PythonRequest& self) { return self.request.shard_of; })
      .def_prop_ro("averaged", [](const PythonRequest& self) { return self.request.averaged; })
      .def_prop_ro("step", [](const PythonRequest& self) { return self.request.step; })
      .def_prop_ro("steps", [](const PythonRequest& self) { return self.request.steps; })
      .def_prop_ro(
          "x", [](const PythonRequest& self) { return self.row(self.request.x); },
          nb::rv_policy::automatic)
      .def_prop_ro(
          "gradient", [](const PythonRequest& self) { return self.row(self.request.gradient); },
          nb::rv_policy::automatic)
      .def_prop_ro("state",
                   [](const PythonRequest& self) {
                     const std::string& state = self.request.state;
                     return nb::bytes(state.data(), state.size());
                   })
      .def_prop_ro("scales", &scales_of)
      .def("set_state",
           [](PythonRequest& self, const nb::bytes& state) {
             self.request.state.assign(state.c_str(), state.size());
           })
      .def("add_loss",
           [](PythonRequest& self, double loss) {
             self.request.losses.sum += loss;
             ++self.request.losses.count;
           })
      .def("set_rate", [](PythonRequest& self, double rate) { self.request.rate = rate; })
      .def("set_evaluation", [](PythonRequest& self, double loss, double accuracy) {
        self.request.evaluation = {loss, accuracy};
      });
}

void bind_run(nb::module_& module) {
  nb::class_<peer::NetworkIds>(module, "NetworkIds").def_ro("ids", &peer::NetworkIds::ids);
  nb::class_<PythonRun>(module, "BackgroundRun")
      .def("next", &PythonRun::next)
      .def("complete", &PythonRun::complete)
      .def("check_process", &PythonRun::check_process)
      .def("stop", &PythonRun::stop)
      .def("leave", &PythonRun::leave)
      .def("close", &PythonRun::close)
      .def("final_rows", &PythonRun::final_rows)
      .def("last_record", &PythonRun::last_record)
      .def("take_messages", &PythonRun::take_messages)
      .def_prop_ro("folder", [](const PythonRun& self) { return self.run().folder(); })
      .def_prop_ro("hosted", [](const PythonRun& self) { return self.run().hosted(); })
      .def_prop_ro("peers", [](const PythonRun& self) { return self.run().config().run.peers; })
      .def_prop_ro("is_open", [](const PythonRun& self) { return self.run().config().run.open; })
      .def_prop_ro("rounds", [](const PythonRun& self) { return self.run().config().run.rounds; });
  nb::class_<CheckedRun>(module, "CheckedRun")
      .def("size", &CheckedRun::size)
      .def("predict", &CheckedRun::predict, nb::kw_only(), nb::arg("decay"), nb::arg("json"));
}

/// A function of the extension that takes a run: `use` of the request that its arguments make.
template <class Use>
void bind_request_function(nb::module_& module, const char* name, Use use) {
  module.def(
      name,
      [use](const std::string& config, const std::vector<std::string>& overrides,
            const peer::NetworkIds* ids, const Tensors& tensors, bool averages, bool linear_steps,
            bool has_buffers, const ShardTuples& shards, std::size_t features, bool evaluates,
            bool saves_state, const std::string& initial_hash, const std::string& resume,
            bool shows_progress) {
        BackgroundRunRequest request{
            config,   overrides,        ids == nullptr ? peer::NetworkIds() : *ids,
            resume,   spec_of(tensors), shards_of(shards),
            features, shows_progress,   initial_hash};
        request.spec.averages = averages;
        request.spec.linear_steps = linear_steps;
        request.spec.has_buffers = has_buffers;
        request.spec.evaluates = evaluates;
        request.spec.saves_state = saves_state;
        return use(std::move(request));
      },
      nb::arg("config"), nb::kw_only(), nb::arg("overrides"), nb::arg("ids").none(),
      nb::arg("tensors"), nb::arg("averages"), nb::arg("linear_steps"), nb::arg("has_buffers"),
      nb::arg("shards"), nb::arg("features"), nb::arg("evaluates"), nb::arg("saves_state"),
      nb::arg("initial_hash"), nb::arg("resume"), nb::arg("shows_progress"),
      nb::rv_policy::take_ownership);
}

/// gossamer.Error. Errors that Python code raises have the exit code of the class.
void bind_error(nb::module_& module) {
  nb::dict members;
  members["exit_code"] = static_cast<int>(ErrorKind::invalid);
  const nb::object error = nb::steal(PyErr_NewExceptionWithDoc(
      "gossamer.Error",
      "A run that cannot start, or ended early: what happened, to whom, and what to do.\n\n"
      "exit_code  the exit code of the program `gossamer` for this kind of error",
      PyExc_RuntimeError, members.ptr()));
  if (!error.is_valid()) throw nb::python_error();
  module.attr("Error") = error;
  nb::register_exception_translator(
      [](const std::exception_ptr& thrown, void* type) {
        try {
          std::rethrow_exception(thrown);
        } catch (const PythonError& failure) {
          const nb::object raised = nb::borrow(static_cast<PyObject*>(type))(failure.what());
          raised.attr("exit_code") = static_cast<int>(failure.kind);
          PyErr_SetObject(static_cast<PyObject*>(type), raised.ptr());
        }
      },
      error.ptr());
}

}  // namespace
}  // namespace gossamer::python

NB_MODULE(_core, module) {
  using namespace gossamer::python;
  module.attr("__version__") = gossamer::peer::kVersion;
  bind_error(module);
  bind_request(module);
  bind_run(module);
  module.def("find_ids", &find_ids, nb::arg("ids"), nb::kw_only(), nb::arg("config"),
             nb::arg("overrides"));
  module.def("configuration", &configuration, nb::arg("config"), nb::kw_only(),
             nb::arg("overrides"));
  module.def("moments", &moments, nb::arg("rows"));
  module.def("summary_text", &summary_text, nb::arg("summary"));
  bind_request_function(module, "check", &check);
  bind_request_function(module, "start", &start);
}
