// Runs a fuzz target on its seeds, on the inputs in the corpus, and on changed ones.
//
//   test_fuzz_asan                      names the targets
//   test_fuzz_asan TARGET [RUNS] [SEED] RUNS changed inputs, 2,000 unless it says otherwise
//   test_fuzz_asan TARGET FILE…         these inputs alone
//
// An input that fails is left in fuzz-TARGET.input.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/mutator.hpp"
#include "tests/fuzz/target.hpp"

using namespace gossamer;
using namespace gossamer::fuzz;
namespace fs = std::filesystem;

extern "C" void __sanitizer_set_death_callback(void (*)()) __attribute__((weak));

namespace {

constexpr unsigned kMostSeconds = 10;  // of one input

std::span<const std::byte> current;
std::string failed_path;

void keep_input() {
  const int file = ::open(failed_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(file, current.data(), current.size());
  ::close(file);
}

void on_signal(int signal) {
  keep_input();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void run(const Target& target, std::span<const std::byte> input) {
  current = input;
  ::alarm(kMostSeconds);
  target.run(input);
  ::alarm(0);
}

Bytes read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    fmt::print(stderr, "{}: cannot be read\n", path.string());
    std::exit(2);
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return bytes_of(text);
}

/// Seeds, and the files of the target's folder in the corpus, in a fixed order.
std::vector<Bytes> corpus_of(const Target& target) {
  std::vector<Bytes> corpus = target.seeds();
  std::vector<fs::path> files;
  const fs::path folder = fs::path(GOSSAMER_SOURCE_DIR) / "tests/fuzz/corpus" / target.name;
  if (fs::is_directory(folder))
    for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::sort(files);
  for (const fs::path& file : files) corpus.push_back(read(file));
  return corpus;
}

bool parse(const char* text, std::uint64_t& number) {
  const std::string_view digits(text);
  return std::from_chars(digits.data(), digits.data() + digits.size(), number).ptr ==
         digits.data() + digits.size();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<Target> targets = all_targets();
  const auto target = argc < 2 ? targets.end() : std::ranges::find(targets, argv[1], &Target::name);
  if (target == targets.end()) {
    for (const Target& each : targets) fmt::print("{}\n", each.name);
    return argc < 2 ? 0 : 2;
  }
  failed_path = fmt::format("fuzz-{}.input", target->name);
  for (const int signal : {SIGABRT, SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    ::signal(signal, on_signal);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(keep_input);

  std::uint64_t runs = 2000, seed = 1;
  if (argc > 2 && !parse(argv[2], runs)) {
    for (int k = 2; k < argc; ++k) run(*target, read(argv[k]));
    fmt::print("{}: {} files\n", target->name, argc - 2);
    return 0;
  }
  if (argc > 3 && !parse(argv[3], seed)) {
    fmt::print(stderr, "the seed is a number, not '{}'\n", argv[3]);
    return 2;
  }
  const std::vector<Bytes> corpus = corpus_of(*target);
  for (const Bytes& input : corpus) run(*target, input);
  RandomStream random(seed, kNoPeer, Purpose::test);
  for (std::uint64_t k = 0; k < runs; ++k) run(*target, mutated(corpus, random));
  fmt::print("{}: {} inputs and {} changed ones\n", target->name, corpus.size(), runs);
  return 0;
}
