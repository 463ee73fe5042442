// gossamer doctor: shows the devices of this machine, and the device that local.device = auto would
// choose. With a configuration, it checks what a process of that network needs.
#include <fmt/format.h>

#include <cstdlib>
#include <memory>

#include "base/printable.hpp"
#include "cli/commands.hpp"
#include "gpu/cpu/kernels.hpp"
#include "gpu/cuda/cuda.hpp"
#include "gpu/gpu_names.hpp"
#include "peer/doctor/network_check.hpp"
#include "peer/setup/device_choice.hpp"
#include "peer/storage/files.hpp"
#include "peer/version.hpp"

namespace gossamer::cli {

using namespace peer;
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

std::string version_text(int cuda_version) {
  return cuda_version == 0 ? "none"
                           : fmt::format("{}.{}", cuda_version / 1000, cuda_version % 1000 / 10);
}

Json inspect(const gpu::cuda::Discovery& discovery, const std::string& chosen,
             const std::string& note) {
  Json json;
  json["version"] = kVersion;
  json["cpu"] = {{"vectors", gpu::has_wide_kernels() ? "AVX-512" : "AVX2"}};
  Json& cuda = json["cuda"];
  cuda["built"] = discovery.built;
  cuda["problem"] = discovery.problem.empty() ? Json() : Json(discovery.problem);
  cuda["driver"] = version_text(discovery.driver_version);
  cuda["runtime"] = version_text(discovery.runtime_version);
  cuda["blas"] = discovery.blas.empty() ? Json() : Json(discovery.blas);
  cuda["gpus"] = Json::array();
  for (const gpu::cuda::GpuInfo& gpu : discovery.gpus)
    cuda["gpus"].push_back(
        {{"device", fmt::format("cuda:{}", gpu.index)},
         {"name", gpu.name},
         {"compute_capability", fmt::format("{}.{}", gpu.compute_major, gpu.compute_minor)},
         {"multiprocessors", gpu.multiprocessors},
         {"reaches", gpu.reaches},
         {"memory_free", gpu.memory_free},
         {"memory_total", gpu.memory_total}});
  json["auto"] = {{"device", chosen}, {"note", note.empty() ? Json() : Json(note)}};
  return json;
}

/// The other GPUs whose memory a GPU can access.
std::string access_text(const gpu::cuda::GpuInfo& gpu) {
  return gpu.reaches.empty() ? ", accesses no other GPU"
                             : fmt::format(", accesses {}", gpu::gpu_names(gpu.reaches));
}

void print(const Json& json, const gpu::cuda::Discovery& discovery) {
  const auto line = [](std::string_view name, const std::string& value) {
    fmt::print("{:<17} {}\n", name, value);
  };
  line("gossamer", json["version"].get<std::string>());
  line("cpu kernels", json["cpu"]["vectors"].get<std::string>());
  line("cuda",
       discovery.problem.empty()
           ? fmt::format("driver {}, runtime {}, {}", version_text(discovery.driver_version),
                         version_text(discovery.runtime_version), discovery.blas)
           : discovery.problem);
  for (const gpu::cuda::GpuInfo& gpu : discovery.gpus)
    line(
        fmt::format("cuda:{}", gpu.index),
        fmt::format("{}, compute capability {}.{}, {} multiprocessors, {:.1f} of {:.1f} GiB free{}",
                    gpu.name, gpu.compute_major, gpu.compute_minor, gpu.multiprocessors,
                    static_cast<double>(gpu.memory_free) / kGiB,
                    static_cast<double>(gpu.memory_total) / kGiB,
                    discovery.gpus.size() > 1 ? access_text(gpu) : ""));
  line("device = auto", json["auto"]["device"].get<std::string>());
  if (discovery.problem.empty() && !json["auto"]["note"].is_null())
    line("", json["auto"]["note"].get<std::string>());
}

struct DoctorCommand {
  ConfigOptions config;
  std::string id, key;
  bool as_json = false;
};

std::string state_name(Finding::State state) {
  if (state == Finding::State::ok) return "ok";
  return state == Finding::State::note ? "note" : "problem";
}

/// The findings of a configuration, and the exit code: that with which `gossamer peer` would end.
Result<int> examine(const DoctorCommand& command, Json& json) {
  GOSSAMER_TRY(const Config config, command.config.load());
  NetworkCheckRequest request;
  request.id_option = command.id;
  int exit_code = 0;
  for (const Finding& finding :
       check_network(config, request, [](const char* name) { return std::getenv(name); })) {
    json["network"].push_back({{"subject", finding.subject},
                               {"state", state_name(finding.state)},
                               {"text", finding.text}});
    if (finding.state == Finding::State::problem && exit_code == 0)
      exit_code = static_cast<int>(finding.kind);
    if (!command.as_json)
      fmt::print("{:<17} {}\n", finding.subject,
                 finding.state == Finding::State::ok
                     ? printable(finding.text)
                     : fmt::format("{}: {}", state_name(finding.state), printable(finding.text)));
  }
  return exit_code;
}

Result<int> execute(const DoctorCommand& command) {
  const gpu::cuda::Discovery discovery = gpu::cuda::discover_gpus_with_memory();
  LocalOptions local;
  local.device = "auto";
  GOSSAMER_TRY(const DeviceChoice choice, choose_device(local, {}));
  Json json = inspect(discovery, choice.device->description(), choice.note);
  if (!command.as_json) print(json, discovery);
  int exit_code = 0;
  if (!command.config.path.empty() || !command.config.overrides.empty() || !command.id.empty()) {
    GOSSAMER_TRY(exit_code, examine(command, json));
  }
  if (command.as_json) fmt::print("{}\n", text_of(json, 2));
  return exit_code;
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  auto command = std::make_shared<DoctorCommand>();
  CLI::App* doctor = app.add_subcommand(
      "doctor",
      "show the devices of this machine; with a configuration, --set, --id or --key, check what "
      "its network needs: "
      "names, ports, firewalls, keys, clock, memory");
  doctor->add_option("config", command->config.path, "TOML file of the network");
  doctor
      ->add_option("--set", command->config.overrides,
                   "section.key=value: override a key of the file; may be repeated")
      ->allow_extra_args(false);
  doctor->add_option("--id", command->id, "id of the process that is to run here");
  doctor->add_option("--key", command->key, "file of its private key (default: net.key)");
  doctor->add_flag("--json", command->as_json, "print JSON");
  doctor->callback([command, &exit_code] {
    if (!command->key.empty()) command->config.overrides.push_back("net.key=" + command->key);
    auto result = execute(*command);
    exit_code = result.ok() ? *result : print_error(result.error());
  });
}

}  // namespace gossamer::cli
