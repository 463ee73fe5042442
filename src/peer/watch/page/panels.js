// What the page says in words and numbers beside graph and curves. All text of the run is set as
// text: whatever a peer wrote into it stays text.

import { bytesPerRound, bytesSent, secondsPerRound, slowestIn } from "./facts.js";
import { bytes, duration, percent, plain, whole } from "./scale.js";
import { AWAY, STATES, isRelayed, markOf } from "./state.js";

const element = (id) => document.getElementById(id);
const FEW = 20;  // ids or neighbours that are listed one by one

const ENDINGS = {
  finished: "Finished", interrupted: "Interrupted", lost_peer: "Lost a peer",
  diverged: "Diverged", failed: "Failed", left: "Left",
};

const FIGURES = [
  { key: "round", name: "Round", format: whole },
  { key: "train_loss", name: "Training loss", format: plain },
  { key: "test_loss", name: "Test loss", format: plain },
  { key: "test_accuracy", name: "Test accuracy", format: percent },
  { key: "distance", name: "Distance from the mean", format: plain },
  { key: "bytes_sent", name: "Bytes sent", format: bytes },
  { key: "bytes_received", name: "Bytes received", format: bytes },
  { key: "train_seconds", name: "Time training", format: duration },
  { key: "wait_seconds", name: "Time waiting", format: duration },
  { key: "mix_seconds", name: "Time mixing", format: duration },
  { key: "seconds", name: "Clock", format: duration },
];

/** An element with text, or with parts that are elements or text. */
export function make(tag, content = "", className = "") {
  const made = document.createElement(tag);
  made.append(...[content].flat());
  if (className) made.className = className;
  return made;
}

/** Changes a text only if it is another: whoever has selected it keeps the selection. */
export function write(id, text) {
  if (element(id).textContent !== text) element(id).textContent = text;
}

function counted(count, what) {
  return `${whole(count)} ${what}${count === 1 ? "" : "s"}`;
}

function listed(ids, one) {
  const names = ids.slice(0, FEW).join(", ");
  const rest = ids.length > FEW ? ` and ${ids.length - FEW} more` : "";
  return `${one}${ids.length === 1 ? "" : "s"} ${names}${rest}`;
}

export function writeHeader(state) {
  const { run, end, kept } = state;
  write("run-title", `${run.algorithm} · ${run.topology} · ${counted(run.peers, "peer")}`);
  const gap = run.spectral_gap;
  write("run-words", [
    run.model && run.data ? `${run.model} on ${run.data}` : run.model,
    run.policy,
    run.servers ? counted(run.servers, "server") : "",
    Number.isFinite(gap) ? `spectral gap ${plain(gap)}` : "",
    state.hostile.size > 0 ? counted(state.hostile.size, "hostile peer") : "",
  ].filter(Boolean).join(" · "));
  write("now-round", whole(state.maxRound));
  write("now-planned", run.rounds ? `of ${whole(run.rounds)}` : "");
  write("now-clock", run.time === "virtual" ? "Virtual time" : "Time");
  const clock = state.nodes.seconds.reduce((a, b) => (b > a ? b : a), end?.seconds ?? 0);
  write("now-time", duration(clock));
  const isRunning = state.maxRound > 0 || kept.length > 0;
  const ending = end && (ENDINGS[end.reason] ?? String(end.reason));
  const word = ending ?? (isRunning ? "Running" : "Starting");
  write("now-state", word);
  element("connection").hidden = state.answers;
  const silence = end ? "The process has ended" : "The process no longer answers";
  write("connection", `${silence}. The page shows its last figures.`);
  const hasEndedBadly = Boolean(end) && !["finished", "left"].includes(end.reason);
  element("ending").hidden = !end?.message;
  element("ending").classList.toggle("bad", hasEndedBadly);
  write("ending", end?.message ? `${word}: ${end.message}` : "");
  write("about", `Gossamer ${run.version} · run ${run.run_id}`);
  const title = `${word.toLowerCase()}, round ${state.maxRound} · ${run.topology} of ${run.peers}`;
  if (document.title !== `${title} · Gossamer`) document.title = `${title} · Gossamer`;
}

/** Which signs of the graph occur, and how often. */
export function writeKey(state, view) {
  const marks = [...state.links.values()].map((link) => markOf(view, link));
  const links = (mark) => marks.filter((one) => one === mark).length;
  const counts = {
    hostile: state.hostile.size,
    server: state.total - state.peers,
    link: links("lost"),
    suspicion: links("suspected"),
    relayed: [...state.links.values()].filter((link) => isRelayed(view, link)).length,
  };
  for (let id = 0; id < state.peers; ++id)
    counts[state.states[id]] = (counts[state.states[id]] ?? 0) + 1;
  const names = {
    link: "lost link", suspicion: "suspected link", relayed: "relayed link",
    unknown: "no record", joined: "joined", absent: "no part",
  };
  for (const item of element("key").children) {
    const { key } = item.dataset, count = counts[key] ?? 0;
    const isReplayed = ["hostile", "server", "link"].includes(key);
    item.hidden = count === 0 || (view.replay !== null && !isReplayed);
    const text = `${names[key] ?? key} ${whole(count)}`;
    if (item.lastElementChild.textContent !== text) item.lastElementChild.textContent = text;
  }
  write("graph-note", graphNote(state, view));
}

/** What the graph does not say by itself. */
export function graphNote(state, view) {
  const { run } = state, notes = [];
  if (view.replay !== null) {
    notes.push(view.replayed ? `As of round ${view.replay}; of states, only losses are replayed.`
      : `Round ${view.replay} is not there yet.`);
    const known = view.measured.values.slice(0, state.peers);
    if (view.replayed && known.some(Number.isNaN)) notes.push("Dashed: not recorded.");
    if (!view.measured.replayed) notes.push(`Of earlier rounds, ${view.measured.name} is unknown.`);
  }
  if (view.replay === null && [...state.links.values()].some((link) => link.bytes > 0))
    notes.push("The wider a link, the more bytes it has carried.");
  if (!run.edges) notes.push("There are too many links to list them.");
  if (Number.isInteger(run.part))
    notes.push(`Each peer has ${run.workers} workers: figures of worker ${run.part} of each.`);
  if (run.served_by && run.served_by.length < state.total) {
    const who = listed(run.served_by, "node");
    notes.push(`The process that serves this page hosts ${who} and ${run.hears_others
      ? "hears figures of others from its neighbours, about once a second."
      : "knows no figures of others."}`);
  }
  return notes.join(" ");
}

/** Each figure of all peers, and beside it that of the peer which is pointed at or selected. */
export function writeFigures(state, view) {
  const id = view.hovered ?? view.selected, table = element("figures");
  const lost = view.replay === null ? state.peersIn("lost").length : 0;
  const all = lost > 0 ? `Peers except ${whole(lost)} lost` : "All peers";
  const name = `${id < state.peers ? "Peer" : "Server"} ${id}`;
  const about = view.replay === null ? ` · ${state.states[id]}` : "";
  const hostile = state.hostile.has(id) ? " · hostile" : "";
  write("own", id === null ? "" : name);
  write("peer-title", id === null ? all : name + about + hostile);
  const body = table.tBodies[0];
  while (body.rows.length < FIGURES.length) body.append(figureRow(view));
  FIGURES.forEach(({ key, name: figure, format }, k) => {
    const { cells } = body.rows[k], all = spread(state, view, key);
    // In virtual time, nothing takes time unless the run simulates it.
    const isEmpty = all.count === 0 || (format === duration && !(all.high > 0));
    body.rows[k].hidden = isEmpty;
    if (isEmpty) return;
    const own = id === null ? "" : format(view.figure(key, id));
    const texts = [figure, own, format(all.mean), format(all.low), format(all.high)];
    texts.forEach((text, c) => {
      const place = c < 3 ? cells[c] : cells[c].firstChild;
      if (place.textContent !== text) place.textContent = text;
    });
    for (const [c, peer] of [[3, all.lowId], [4, all.highId]]) {
      const button = cells[c].lastChild;
      button.hidden = !(all.low < all.high);
      button.dataset.id = peer;
      const label = `peer ${peer}`;
      if (button.textContent !== label) button.textContent = label;
    }
  });
}

function figureRow(view) {
  const name = make("th");
  name.scope = "row";
  const extreme = () => {
    const button = make("button");
    button.type = "button";
    button.addEventListener("click", () => view.select(Number(button.dataset.id)));
    return make("td", [make("span"), " ", button]);
  };
  return make("tr", [name, make("td", "", "own"), make("td"), extreme(), extreme()]);
}

/** Whether a peer's figures are out of date. */
function isAway(state, id) {
  return AWAY.includes(state.states[id]);
}

function spread(state, view, key) {
  const all = { count: 0, mean: 0, low: Infinity, high: -Infinity, lowId: 0, highId: 0 };
  for (let id = 0; id < state.peers; ++id) {
    const value = view.figure(key, id);
    if (!Number.isFinite(value) || (view.replay === null && isAway(state, id))) continue;
    all.mean += value, ++all.count;
    if (value < all.low) all.low = value, all.lowId = id;
    if (value > all.high) all.high = value, all.highId = id;
  }
  all.mean /= all.count;
  return all;
}

let neighboursShown = "";

export function writeNeighbours(state, view) {
  const id = view.hovered ?? view.selected, place = element("neighbours");
  const all = id === null ? null : (state.neighbours?.[id] ?? null);
  const states = (all ?? []).map((other) => [other, state.link(id, other)]);
  const shown = JSON.stringify([id, state.run.run_id, view.replay, states]);
  if (shown === neighboursShown) return;
  neighboursShown = shown;
  if (id === null || id >= state.peers) return place.replaceChildren();
  if (all === null) return place.replaceChildren("Its neighbours are not listed.");
  const marked = (mark) => states.filter(([, link]) => markOf(view, link) === mark);
  const lost = marked("lost"), suspected = marked("suspected");
  const active = states.filter(([, link]) => markOf(view, link) !== "lost");
  const carried = (link) => {
    const words = [];
    if (link?.bytes > 0 && view.replay === null) words.push(bytes(link.bytes));
    if (isRelayed(view, link)) words.push(`through ${link.relay}`);
    return words.length > 0 ? ` (${words.join(", ")}) ` : "";
  };
  const names = active.slice(0, FEW).flatMap(([other, link]) =>
    [peerButton(view, other), carried(link)]);
  const more = active.length > FEW ? ` and ${active.length - FEW} more` : "";
  const parts = [`${counted(active.length, "neighbour")}: `, ...names, more];
  for (const [other] of suspected)
    parts.push(make("span", [" · suspects ", peerButton(view, other)], "gone"));
  for (const [other, { cause }] of lost) {
    const why = cause && view.replay === null ? ` (${cause})` : "";
    parts.push(make("span", [" · lost link to ", peerButton(view, other), why], "gone"));
  }
  place.replaceChildren(...parts);
}

function peerButton(view, id) {
  const button = make("button", String(id), "name");
  button.type = "button";
  button.setAttribute("aria-label", `peer ${id}`);
  button.addEventListener("click", () => view.select(id));
  return button;
}

export function writeFacts(state) {
  const { nodes, peers } = state, facts = [];
  const known = [];
  for (let id = 0; id < peers; ++id) if (nodes.round[id] > 0) known.push(id);
  const sum = (field) => known.reduce((total, id) => total + (nodes[field][id] || 0), 0);
  facts.push(["Bytes sent", bytes(bytesSent(state))]);
  const each = bytesPerRound(state), pace = secondsPerRound(state);
  if (Number.isFinite(each)) facts.push(["per round and peer", bytes(each)]);
  const words = { unknown: "without a record", absent: "without part" };
  const present = STATES
    .map((name) => [state.peersIn(name).length, name]).filter(([count]) => count > 0)
    .map(([count, name]) => `${whole(count)} ${words[name] ?? name}`);
  facts.push(["Peers", present.join(", ") || "–"]);
  const lost = [...state.links.values()].filter((link) => link.state === "lost").length;
  const links = state.run.edges?.length;
  if (links !== undefined) facts.push(["Links", `${whole(links)}${lost ? `, ${lost} lost` : ""}`]);
  if (pace > 0) facts.push(["Time per round", duration(pace)]);
  const here = known.filter((id) => !isAway(state, id));
  const slow = slowestIn(state, here);
  if (slow)
    facts.push(["Slowest in training", `peer ${slow.id}, ${slow.part.toFixed(2)} × median`]);
  const last = here.reduce((a, b) => (nodes.lag[b] > nodes.lag[a] ? b : a), here[0]);
  const lag = nodes.lag[last];
  if (lag > 0) facts.push(["Furthest behind", `peer ${last}, ${counted(lag, "round")}`]);
  const list = element("facts");
  while (list.children.length < 2 * facts.length) list.append(make("dt"), make("dd"));
  while (list.children.length > 2 * facts.length) list.lastChild.remove();
  facts.flat().forEach((text, k) => {
    if (list.children[k].textContent !== text) list.children[k].textContent = text;
  });
  writeSplit(["train", "wait", "mix"].map((name) => sum(`${name}_seconds`)), known.length);
}

function writeSplit(seconds, peers) {
  const total = seconds.reduce((a, b) => a + b, 0);
  element("split").hidden = !(total > 0);
  if (!(total > 0)) return;
  const parts = [...element("split").querySelectorAll(".bar i")];
  parts.forEach((part, k) => { part.style.flexGrow = seconds[k] / total; });
  const words = element("split-words");
  while (words.children.length < 3) words.append(make("span", [make("i"), make("span")]));
  ["training", "waiting", "mixing"].forEach((name, k) => {
    const text = `${name} ${percent(seconds[k] / total)}, ${duration(seconds[k] / peers)}`;
    const place = words.children[k].lastChild;
    if (place.textContent !== text) place.textContent = text;
  });
}

export function writeAbsent(state) {
  const parts = [];
  for (const [name, words] of [["lost", "Lost"], ["joined", "Joined"]]) {
    const ids = state.peersIn(name);
    if (ids.length > 0) parts.push(make("span", `${words}: ${listed(ids, "peer")}`, name));
  }
  const place = element("absent"), text = parts.map((part) => part.textContent).join("");
  place.hidden = parts.length === 0;
  if (place.textContent !== text) place.replaceChildren(...parts);
}

const EVENTS = ["link_lost", "link_restored", "reachable", "joined", "participants", "ended"];

export function writeEvents(state) {
  const items = state.events.map(({ seconds, round, peer, event, text }) => {
    const when = `round ${whole(round)} · ${duration(seconds ?? NaN)} `;
    const who = peer < state.peers ? `peer ${peer}` : `server ${peer}`;
    const parts = [make("span", when, "when"), make("b", who), ` ${text}`];
    return make("li", parts, EVENTS.includes(event) ? event : "");
  });
  element("events").replaceChildren(...(items.length > 0 ? items : [make("li", "None.", "when")]));
}
