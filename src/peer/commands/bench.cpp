// gossamer bench: what is measured inside the process, for experiments/benchmarks/ to set against its rivals.
#include "peer/commands/commands.hpp"

namespace gossamer::peer {

void add_bench(CLI::App& app, int&) { app.add_subcommand("bench", "measure training, mixing and the runtime")->require_subcommand(1); }

}  // namespace gossamer::peer
