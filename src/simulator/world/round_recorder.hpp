// Records the rounds of a process's peers in the trace, and saves their states.
#pragma once

#include "gossip/engine/peer_engine.hpp"
#include "simulator/names.hpp"
#include "simulator/world/trace.hpp"

namespace gossamer::simulator {

class Process;
class World;

class RoundRecorder final : public EngineHooks {
 public:
  /// Both outlive the recorder.
  RoundRecorder(World& world, Process& process) : world_(world), process_(process) {}

  bool joined(PeerEngine& engine) override;
  void on_part(PeerEngine& engine, Part part) override;
  void before_round(PeerEngine& engine, bool reinitialised) override;
  bool after_round(PeerEngine& engine) override;
  task<void> save(PeerEngine& engine) override;
  task<void> completed(PeerEngine& engine) override;
  void finished(PeerEngine& engine) override;

 private:
  Incarnation& incarnation_of(const PeerEngine& engine);

  World& world_;
  Process& process_;
};

}  // namespace gossamer::simulator
