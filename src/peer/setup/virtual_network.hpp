// The simulated network that [sim] describes.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "gossip/links/network_model.hpp"
#include "gossip/links/simulated_link.hpp"
#include "gossip/step_times.hpp"
#include "peer/config/config.hpp"
#include "peer/storage/probe_tables.hpp"
#include "train/split/pipeline.hpp"

namespace gossamer::peer {

struct Setup;

/// The links of the simulated network, and its nodes if they were measured (sim.probe).
struct VirtualNetwork {
  gossip::NetworkModel links;
  std::vector<ProbedNode> nodes;  ///< by node; empty: the other keys of [sim] describe them
};

/// Reads the tables and checks the settings. Errors (invalid) name the key; errors of a table (data
/// if it cannot be read or parsed) also name the file and the line.
Result<VirtualNetwork> make_virtual_network(const Config& config, int servers);

/// The mean duration of a local step on a worker that holds the whole model, in milliseconds.
double whole_step_ms(const Setup& setup);
/// The costs of a local step of a cut model. The workers of a replica exchange outputs over links
/// with the means that [sim] gives: no random factors.
train::PipelineCosts pipeline_costs(const Setup& setup);
/// The microbatches of a step of a cut model.
int microbatches(const Setup& setup);
/// The values of a row over those of its largest part. The workers of two replicas exchange their
/// parts side by side, over links of their own, so that a row travels as if each link were faster
/// by this factor. 1: the model is whole, or servers hold it whole.
double parts_side_by_side(const Setup& setup);

/// A link between two nodes, or, of a cut model, all links between their workers.
gossip::LinkModel link_model(const Setup& setup, int from, int to);
/// What all links of a node share.
gossip::NodeModel node_model(const Setup& setup, int node);
/// The durations of local steps in virtual time.
gossip::StepTimes step_times(const Setup& setup);
/// The longest time that a local step of any peer can take, in milliseconds.
double longest_step_ms(const Setup& setup);
/// The least bandwidth that the links out of, and into, any node share, in Mbit/s; 0: no limit.
double least_uplink_mbit_s(const Setup& setup);
double least_downlink_mbit_s(const Setup& setup);

}  // namespace gossamer::peer
