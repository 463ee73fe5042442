// bench_gpu: measures the CUDA device and compares it with the bounds of the GPU. Prints JSON
// lines:
//   {"record":"device", …}                            the GPU
//   {"record":"pairs","id":…,"ours":[…],"theirs":[…]} bytes per second, pair by pair; theirs: the
//                                                     CUDA runtime's copy
//   {"record":"rates","id":…,"ours":[…]}              rates without a bound
//   {"record":"failed","id":…,"reason":…}             the reason of a missing value
// With --serve it reads lines `WORKLOAD STEPS_PER_CALL SECONDS` from standard input and answers
// each one with a rate, so that gpu_comparison.py can measure a baseline alternately.
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>

#include "gpu/cuda/cuda.hpp"
#include "gpu_bench.hpp"

namespace gossamer::bench {
namespace {

constexpr int kStepsPerCall = 32, kQuickStepsPerCall = 2;

struct Arguments {
  bool quick = false, discover = false, serve = false, help = false;
  int gpu = 0;
  double deadline = 120, seconds = 0.3;
  std::vector<std::string> only;
  std::string problem;
};

constexpr std::string_view kHelp =
    "bench_gpu [--quick] [--only NAME[,NAME…]] [--gpu N] [--seconds S] [--deadline S] [--discover "
    "| "
    "--serve]\n"
    "  --quick      small sizes: tests the program, without measurements\n"
    "  --only       only these benchmarks: copy, mix, update, ring, …; mlp64, mlp1, cnn1\n"
    "  --gpu        the number of the GPU (0)\n"
    "  --seconds    seconds of each training measurement (0.3)\n"
    "  --deadline   seconds after which no benchmark starts (120)\n"
    "  --discover   only prints the CUDA installation and the GPU\n"
    "  --serve      answers lines of standard input: WORKLOAD STEPS_PER_CALL SECONDS\n"
    "Exit codes: 0 done, 1 a benchmark failed, 2 invalid option, 3 no GPU.\n";

template <class Number>
bool read(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  return result.ec == std::errc() && result.ptr == end;
}

Arguments parse(const std::vector<std::string>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto value = [&](auto& number) {
      if (i + 1 == words.size() || !read(words[++i], number) || number < 0)
        arguments.problem = word + ": give a number, 0 or more";
    };
    if (word == "--quick") arguments.quick = true;
    else if (word == "--discover") arguments.discover = true;
    else if (word == "--serve") arguments.serve = true;
    else if (word == "--help" || word == "-h") arguments.help = true;
    else if (word == "--gpu") value(arguments.gpu);
    else if (word == "--deadline") value(arguments.deadline);
    else if (word == "--seconds") value(arguments.seconds);
    else if (word == "--only" && i + 1 < words.size()) {
      std::istringstream names(words[++i]);
      for (std::string name; std::getline(names, name, ',');) arguments.only.push_back(name);
    } else
      arguments.problem =
          fmt::format("'{}' is no option, or lacks its value; there is --help", word);
  }
  return arguments;
}

void print_discovery(const gpu::cuda::Discovery& discovery) {
  Line line("discovery");
  line.add("built", discovery.built)
      .add("problem", discovery.problem)
      .add("driver", double(discovery.driver_version))
      .add("runtime", double(discovery.runtime_version))
      .add("blas", discovery.blas)
      .add("gpus", double(discovery.gpus.size()));
  if (!discovery.gpus.empty()) {
    const gpu::cuda::GpuInfo& gpu = discovery.gpus.front();
    line.add("gpu", gpu.name)
        .add("compute", fmt::format("{}{}", gpu.compute_major, gpu.compute_minor))
        .add("multiprocessors", double(gpu.multiprocessors))
        .add("memory_free", double(gpu.memory_free))
        .add("memory_total", double(gpu.memory_total));
  }
  line.print();
}

void answer(TrainingRates& rates, const std::string& question) {
  std::istringstream words(question);
  std::string workload;
  int steps = 0;
  double seconds = 0;
  if (!(words >> workload >> steps >> seconds) || steps < 1 || !(seconds > 0)) {
    Line("failed")
        .add("id", question)
        .add("reason", std::string_view("expected WORKLOAD STEPS_PER_CALL SECONDS"))
        .print();
    return;
  }
  try {
    const double rate = rates.measure(workload, steps, seconds);
    Line("rate").add("id", workload).add("steps_per_call", double(steps)).add("rate", rate).print();
  } catch (const std::exception& error) {
    Line("failed").add("id", workload).add("reason", std::string_view(error.what())).print();
  }
}

void run_training(TrainingRates& rates, int steps_per_call, double seconds, Parts& parts) {
  for (const std::string& workload : training_workloads()) {
    parts.run(workload, [&] {
      for (const int steps : {steps_per_call, 1}) {
        const double rate = rates.measure(workload, steps, seconds);
        Line("rates")
            .add("id", steps == 1 ? workload + "_single" : workload)
            .add("unit", std::string_view("steps/s"))
            .add("ours", std::vector<double>{rate})
            .print();
      }
    });
  }
}

int run(const Arguments& arguments) {
  const gpu::cuda::Discovery discovery = gpu::cuda::discover_gpus_with_memory();
  print_discovery(discovery);
  if (arguments.discover) return 0;
  auto made = gpu::cuda::make_cuda_device({.gpus = {arguments.gpu}});
  if (!made.ok()) {
    Line("failed")
        .add("id", std::string_view("device"))
        .add("reason", made.error().message)
        .print();
    return 3;
  }
  gpu::Device& device = **made;
  const Scale scale = arguments.quick ? quick_scale() : Scale{};
  Line("device").add("description", device.description()).add("quick", arguments.quick).print();
  TrainingRates rates(device, scale);
  if (arguments.serve) {
    for (std::string line; std::getline(std::cin, line);) answer(rates, line);
    return 0;
  }
  Parts parts(arguments.only, arguments.deadline);
  run_rows(device, scale, parts);
  if (arguments.quick) run_training(rates, kQuickStepsPerCall, 1e-3, parts);
  else run_training(rates, kStepsPerCall, arguments.seconds, parts);
  return parts.ok() ? 0 : 1;
}

}  // namespace
}  // namespace gossamer::bench

int main(int count, char** words) {
  const auto arguments = gossamer::bench::parse({words + 1, words + count});
  if (!arguments.problem.empty()) {
    fmt::print(stderr, "bench_gpu: {}\n", arguments.problem);
    return 2;
  }
  if (arguments.help) {
    fmt::print("{}", gossamer::bench::kHelp);
    return 0;
  }
  try {
    return gossamer::bench::run(arguments);
  } catch (const std::exception& error) {
    using gossamer::bench::Line;
    Line("failed")
        .add("id", std::string_view("device"))
        .add("reason", std::string_view(error.what()))
        .print();
    return 1;
  }
}
