// The program `gossamer`.
#include "cli/gossamer.hpp"

int main(int argc, char** argv) { return gossamer::cli::run_gossamer(argc, argv); }
