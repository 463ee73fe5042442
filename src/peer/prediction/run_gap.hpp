// `gossamer gap`: the spectral gap that the mixing of a run realised, from its logs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "peer/config/config.hpp"
#include "peer/storage/json.hpp"

namespace gossamer::peer {

struct RunGap {
  std::string run_id, topology;
  int peers = 0;
  std::uint64_t rounds = 0;         ///< logged by every peer
  double planned = 0;               ///< topology::spectral_gap; NaN if unknown
  double realised = 0;              ///< theory::realised_gap
  std::uint64_t rows = 0;           ///< rows of neighbours that were to be mixed in these rounds
  std::uint64_t missing = 0;        ///< rows that were left out
  std::uint64_t stale = 0;          ///< rows of an earlier round
  std::uint64_t early = 0;          ///< rows of a later round
  std::uint64_t max_staleness = 0;  ///< of the stale rows, in rounds
};

/// `overrides`: where this machine has the file of the topology, as for collect(). Errors name the
/// file: (data) logs are missing, contain no round, or belong to several runs; (invalid) the run
/// does not mix, or mixes by a rule that does not weigh by W.
Result<RunGap> gap_of_run(const std::filesystem::path& folder,
                          const std::vector<Override>& overrides);

Json gap_json(const RunGap& gap);
std::string gap_text(const RunGap& gap);

}  // namespace gossamer::peer
