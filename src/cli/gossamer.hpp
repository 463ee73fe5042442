// The program `gossamer`, apart from its main().
#pragma once

namespace gossamer::cli {

/// Carries out a command line; returns the exit code, after messages for people.
int run_gossamer(int argc, char** argv);

}  // namespace gossamer::cli
