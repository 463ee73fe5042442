// The entries of libFuzzer (tests/fuzz.sh). GOSSAMER_FUZZ_TARGET names the target; without it the
// program prints the targets. Seeds are written to the folder GOSSAMER_FUZZ_SEEDS.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "tests/fuzz/target.hpp"

using namespace gossamer::fuzz;

namespace {

const Target& target() {
  static const std::vector<Target> targets = all_targets();
  static const auto found = [] {
    const char* name = std::getenv("GOSSAMER_FUZZ_TARGET");
    return std::ranges::find(targets, name == nullptr ? "" : name, &Target::name);
  }();
  if (found != targets.end()) return *found;
  for (const Target& each : targets) fmt::print("{}\n", each.name);
  std::exit(0);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const Target& chosen = target();
  const char* folder = std::getenv("GOSSAMER_FUZZ_SEEDS");
  if (folder == nullptr) return 0;
  int number = 0;
  for (const Bytes& seed : chosen.seeds()) {
    std::ofstream file(fmt::format("{}/seed-{}", folder, number++), std::ios::binary);
    file.write(reinterpret_cast<const char*>(seed.data()),
               static_cast<std::streamsize>(seed.size()));
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  target().run(std::as_bytes(std::span(data, size)));
  return 0;
}
