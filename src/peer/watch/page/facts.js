// What the nodes of the network have done in a round, on average. A node counts from its first
// record on, as the process says: it may have joined late, or its process was started again.

/** How much a total of a node has grown since its first record. */
const since = ({ nodes }, field, id) => nodes[field][id] - nodes[`first_${field}`][id];

/** Ids of the peers that have done a round since their first record. */
function timed(state) {
  const ids = [];
  for (let id = 0; id < state.peers; ++id) if (since(state, "round", id) > 0) ids.push(id);
  return ids;
}

/** Bytes that all nodes have sent, servers too. */
export function bytesSent({ nodes, total }) {
  let sent = 0;
  for (let id = 0; id < total; ++id) sent += nodes.bytes_sent[id] || 0;
  return sent;
}

/** Bytes that all nodes have sent, servers too, for each round that a peer has done; or NaN. */
export function bytesPerRound(state) {
  let sent = 0, rounds = 0;
  for (let id = 0; id < state.total; ++id) sent += since(state, "bytes_sent", id) || 0;
  for (const id of timed(state)) rounds += since(state, "round", id);
  return rounds > 0 ? sent / rounds : NaN;
}

/** Seconds of a round, by the clock of the peer that has done most of them; or NaN. */
export function secondsPerRound(state) {
  const done = (id) => since(state, "round", id), clock = (id) => since(state, "seconds", id);
  const ids = timed(state);
  if (ids.length === 0) return NaN;
  const most = ids.reduce((a, b) => (done(b) - done(a) || clock(b) - clock(a)) > 0 ? b : a);
  return clock(most) / done(most);
}

/** Of some peers, the one with the longest training per round, and its part of the median. */
export function slowestIn(state, ids) {
  const pace = (id) => since(state, "train_seconds", id) / since(state, "round", id);
  const known = ids.filter((id) => since(state, "round", id) > 0 && pace(id) > 0);
  if (known.length < 2) return null;
  known.sort((a, b) => pace(a) - pace(b));
  const id = known[known.length - 1], median = pace(known[Math.floor(known.length / 2)]);
  return { id, part: pace(id) / median };
}
