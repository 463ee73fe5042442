// gossamer doctor: what this program and this machine have to compute with, and what local.device
// would choose.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.hpp"
#include "gpu/card_names.hpp"
#include "gpu/cpu/kernels.hpp"
#include "gpu/cuda/cuda.hpp"
#include "peer/runtime/device_choice.hpp"
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

Json examine(const gpu::cuda::Survey& survey, const std::string& chosen, const std::string& note) {
  Json json;
  json["version"] = kVersion;
  json["cpu"] = {{"vectors", gpu::has_wide_kernels() ? "AVX-512" : "AVX2"}};
  Json& cuda = json["cuda"];
  cuda["built"] = survey.built;
  cuda["problem"] = survey.problem.empty() ? Json() : Json(survey.problem);
  cuda["driver"] = version_text(survey.driver_version);
  cuda["runtime"] = version_text(survey.runtime_version);
  cuda["blas"] = survey.blas.empty() ? Json() : Json(survey.blas);
  cuda["cards"] = Json::array();
  for (const gpu::cuda::CardInfo& card : survey.cards)
    cuda["cards"].push_back(
        {{"device", fmt::format("cuda:{}", card.index)},
         {"name", card.name},
         {"compute_capability", fmt::format("{}.{}", card.compute_major, card.compute_minor)},
         {"multiprocessors", card.multiprocessors},
         {"reaches", card.reaches},
         {"memory_free", card.memory_free},
         {"memory_total", card.memory_total}});
  json["auto"] = {{"device", chosen}, {"note", note.empty() ? Json() : Json(note)}};
  return json;
}

/// What a card sees of the others.
std::string reach_text(const gpu::cuda::CardInfo& card) {
  return card.reaches.empty() ? ", reaches no other"
                              : fmt::format(", reaches {}", gpu::card_names(card.reaches));
}

void print(const Json& json, const gpu::cuda::Survey& survey) {
  const auto line = [](std::string_view name, const std::string& value) {
    fmt::print("{:<18}{}\n", name, value);
  };
  line("gossamer", json["version"].get<std::string>());
  line("cpu kernels", json["cpu"]["vectors"].get<std::string>());
  line("cuda", survey.problem.empty()
                   ? fmt::format("driver {}, runtime {}, {}", version_text(survey.driver_version),
                                 version_text(survey.runtime_version), survey.blas)
                   : survey.problem);
  for (const gpu::cuda::CardInfo& card : survey.cards)
    line(
        fmt::format("cuda:{}", card.index),
        fmt::format("{}, compute capability {}.{}, {} multiprocessors, {:.1f} of {:.1f} GiB free{}",
                    card.name, card.compute_major, card.compute_minor, card.multiprocessors,
                    static_cast<double>(card.memory_free) / kGiB,
                    static_cast<double>(card.memory_total) / kGiB,
                    survey.cards.size() > 1 ? reach_text(card) : ""));
  line("device = auto", json["auto"]["device"].get<std::string>());
  if (survey.problem.empty() && !json["auto"]["note"].is_null())
    line("", json["auto"]["note"].get<std::string>());
}

Result<int> execute(bool as_json) {
  const gpu::cuda::Survey survey = gpu::cuda::survey();
  LocalOptions local;
  local.device = "auto";
  GOSSAMER_TRY(const DeviceChoice choice, choose_device(local, {}));
  const Json json = examine(survey, choice.device->description(), choice.note);
  if (as_json) fmt::print("{}\n", text_of(json, 2));
  else print(json, survey);
  return 0;
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* doctor = app.add_subcommand("doctor", "what this machine has to compute with");
  doctor->add_flag("--json", *as_json, "as JSON");
  doctor->callback([as_json, &exit_code] {
    auto result = execute(*as_json);
    exit_code = result.ok() ? *result : report(result.error());
  });
}

}  // namespace gossamer::cli
