// Where the drawing of a graph places the peers, by the kind of its topology. Units are arbitrary:
// the drawing fits them to its size.

const MOST_ON_A_CIRCLE = 160;

/** Clockwise from the top. */
function circle(count, radius = 1) {
  return Array.from({ length: count }, (_, k) => {
    const turn = (2 * Math.PI * k) / Math.max(1, count);
    return [radius * Math.sin(turn), -radius * Math.cos(turn)];
  });
}

/** A disc that is filled evenly, from the inside out, beyond a hole. */
function disc(count, hole = 0) {
  const golden = Math.PI * (3 - Math.sqrt(5));
  return Array.from({ length: count }, (_, k) => {
    const radius = Math.sqrt(hole * hole + (1 - hole * hole) * ((k + 0.5) / count));
    return [radius * Math.sin(k * golden), -radius * Math.cos(k * golden)];
  });
}

/** A ring of many peers in folds, like a cogwheel: its line is long enough to tell them apart. */
function foldedRing(count) {
  const inside = 0.36;
  // As many folds as make the distance between two folds, inside, that between two peers.
  const folds = Math.max(4, Math.round(Math.sqrt((Math.PI * inside * count) / 1.5)));
  const corners = [];
  for (let fold = 0; fold < folds; ++fold)
    for (const [radius, half] of [[inside, 0], [1, 0], [1, 1], [inside, 1]]) {
      const turn = (2 * Math.PI * (fold + half / 2)) / folds;
      corners.push([radius * Math.sin(turn), -radius * Math.cos(turn)]);
    }
  corners.push(corners[0]);
  const lengths = [0];
  for (let k = 1; k < corners.length; ++k) {
    const [x, y] = corners[k], [u, v] = corners[k - 1];
    lengths.push(lengths[k - 1] + Math.hypot(x - u, y - v));
  }
  return Array.from({ length: count }, (_, peer) => {
    const length = (lengths.at(-1) * peer) / count;
    const k = lengths.findLastIndex((begin) => begin <= length);
    const part = (length - lengths[k]) / (lengths[k + 1] - lengths[k]);
    const [x, y] = corners[k], [u, v] = corners[k + 1];
    return [x + part * (u - x), y + part * (v - y)];
  });
}

/** Rows of the last side; further sides place copies of these, alternately beside and below. */
function lattice(sides) {
  const count = sides.reduce((product, side) => product * side, 1);
  return Array.from({ length: count }, (_, peer) => {
    const place = [0, 0], size = [1, 1];
    for (let s = sides.length - 1, axis = 0, rest = peer; s >= 0; --s, axis = 1 - axis) {
      place[axis] += (rest % sides[s]) * size[axis];
      rest = Math.floor(rest / sides[s]);
      size[axis] = size[axis] * sides[s] + 1;
    }
    return place;
  });
}

/** A path in rows, alternately from left to right and from right to left. */
function snake(count) {
  const columns = count <= 12 ? count : Math.ceil(Math.sqrt(count));
  return Array.from({ length: count }, (_, peer) => {
    const row = Math.floor(peer / columns), column = peer % columns;
    return [row % 2 ? columns - 1 - column : column, row];
  });
}

/** Peer i's children are 2i + 1 and 2i + 2: layers below the root, or around it if many. */
function binaryTree(count) {
  const depthOf = (peer) => Math.floor(Math.log2(peer + 1));
  const deepest = Math.max(1, depthOf(count - 1));
  return Array.from({ length: count }, (_, peer) => {
    const depth = depthOf(peer);
    const across = (peer + 1 - 2 ** depth + 0.5) / 2 ** depth;
    if (deepest <= 4) return [2 ** deepest * across, 2 * depth];
    const radius = depth / deepest, turn = 2 * Math.PI * across;
    return [radius * Math.sin(turn), -radius * Math.cos(turn)];
  });
}

/**
 * Each bit is a direction in the plane (Coxeter's projection). For other than four bits the
 * directions differ in length, so that no two peers coincide.
 */
function hypercube(count) {
  const bits = Math.log2(count), stretch = bits === 4 ? 0 : 0.6;
  return Array.from({ length: count }, (_, peer) => {
    const place = [0, 0];
    for (let b = 0; b < bits; ++b) {
      const length = (1 + stretch * b) * ((peer >> b) & 1 ? 1 : -1);
      place[0] += length * Math.cos((Math.PI * b) / bits);
      place[1] -= length * Math.sin((Math.PI * b) / bits);
    }
    return place;
  });
}

/** Two circles side by side; the ends of the edge between them face each other. */
function dumbbell(count) {
  const middle = Math.floor(count / 2), positions = [];
  circle(middle).forEach(([x, y], k) => { positions[middle - 1 - k] = [-1.4 - y, x]; });
  circle(count - middle).forEach(([x, y], k) => { positions[middle + k] = [1.4 + y, x]; });
  return positions;
}

/** A grid's log has no lattice: the edges that lead down are as long as a row. */
function gridColumns(edges) {
  return edges.reduce((longest, [a, b]) => Math.max(longest, Math.abs(a - b)), 1);
}

function peerPositions({ peers, topology, lattice: sides, edges }) {
  const many = peers > MOST_ON_A_CIRCLE;
  if (topology === "torus" && sides?.length === 2) return lattice(sides);
  if (topology === "grid") {
    const columns = sides?.length === 2 ? sides[1] : edges ? gridColumns(edges) : 0;
    if (columns > 1) return lattice([Math.ceil(peers / columns), columns]).slice(0, peers);
  }
  if (topology === "hypertorus" && sides?.length > 1) return lattice(sides);
  if (topology === "star")
    return [[0, 0], ...(many ? disc(peers - 1, 0.2) : circle(peers - 1))];
  if (topology === "path") return snake(peers);
  if (topology === "binary_tree") return binaryTree(peers);
  if (topology === "dumbbell" && peers > 3) return dumbbell(peers);
  if (topology === "hypercube" && peers >= 8 && peers <= 64) return hypercube(peers);
  if (topology === "ring" && many) return foldedRing(peers);
  return many ? disc(peers) : circle(peers);
}

/** Servers stand in the middle where that is free, else in a row below the peers. */
function serverPositions(count, positions) {
  if (count === 0) return [];
  const isFree = positions.every(([x, y]) => Math.hypot(x, y) > 0.45);
  if (isFree) return count === 1 ? [[0, 0]] : circle(count, 0.2);
  const below = Math.max(...positions.map(([, y]) => y));
  const left = Math.min(...positions.map(([x]) => x));
  const right = Math.max(...positions.map(([x]) => x));
  const gap = Math.max(0.12 * (right - left), 1e-3);
  return Array.from({ length: count }, (_, k) => [
    (left + right) / 2 + (k - (count - 1) / 2) * gap, below + gap,
  ]);
}

/** Positions by id, of peers and then servers. */
export function layoutOf(run) {
  const positions = peerPositions(run);
  return [...positions, ...serverPositions(run.servers ?? 0, positions)];
}

/** Whether an edge leads around a torus: it is drawn as two short ends. */
export function wrapsAround(run, positions, a, b) {
  if (run.topology !== "torus" || run.lattice?.length !== 2) return false;
  const [x, y] = positions[a], [u, v] = positions[b];
  return Math.abs(x - u) + Math.abs(y - v) > 1.5;
}
