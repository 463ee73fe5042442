// The services that the peers of a process share.
#pragma once

#include "gossip/compute.hpp"
#include "gossip/process/fault_reporter.hpp"
#include "gossip/process/link_registry.hpp"
#include "gossip/process/options.hpp"
#include "gossip/process/validator.hpp"
#include "gossip/process/zero_rows.hpp"
#include "gossip/scheduler.hpp"
#include "topology/mixing_matrix.hpp"

namespace gossamer::gossip {

/// All of them outlive the peers' messengers and mixers.
struct ProcessContext {
  Scheduler& scheduler;
  Compute& compute;
  const topology::MixingSchedule& schedule;
  const ExchangeOptions& options;
  LinkRegistry& links;
  FaultReporter& faults;
  Validator& validator;
  ZeroRows& zeros;

  gpu::Device& device() const { return compute.device(); }
};

}  // namespace gossamer::gossip
