// The gap that a run's mixing really had, from its logs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "peer/config/config.hpp"
#include "peer/storage/files.hpp"

namespace gossamer::peer {

struct RunGap {
  std::string run_id, topology;
  int peers = 0;
  std::uint64_t rounds = 0;   ///< that every peer has logged
  double planned = 0;         ///< topology::spectral_gap; NaN: not known
  double realised = 0;        ///< theory::realised_gap
  std::uint64_t rows = 0;     ///< that were to be mixed in these rounds
  std::uint64_t missing = 0;  ///< of them: left out,
  std::uint64_t stale = 0;    ///< those of an earlier round,
  std::uint64_t early = 0;    ///< and of a later one
  std::uint64_t latest = 0;   ///< how many rounds late the latest was
};

/// `overrides`: as collect's, where this machine has the topology's file. Errors (data) name the
/// file and what is wrong with it: logs missing or of several runs, no round in them; invalid: a
/// run that does not mix.
Result<RunGap> gap_of_run(const std::filesystem::path& folder,
                          const std::vector<Override>& overrides);

Json gap_json(const RunGap& gap);
std::string gap_text(const RunGap& gap);

}  // namespace gossamer::peer
