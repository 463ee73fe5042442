// The page of a run: asks the process for changes and draws them. `state` is what is known of the
// run, `view` what the reader has chosen to see of it.

import { Curves } from "./curves.js";
import { drawLegend, Graph } from "./graph.js";
import * as panels from "./panels.js";
import { Replay } from "./replay.js";
import { steadyDomain } from "./scale.js";
import { AWAY, follow, MEASURES, RunState } from "./state.js";
import { PeerTable } from "./table.js";

const WORDS_MS = 250;   // between changes of numbers: nobody reads ten a second
const TABLE_MS = 1000;
const CALM_MS = 1000;   // between drawings for those who asked for little motion
const LOG_FROM = 30;    // largest / least value from which colours are on a logarithmic scale

const element = (id) => document.getElementById(id);
const calm = matchMedia("(prefers-reduced-motion: reduce)");

const state = new RunState();
const view = {
  measure: "train_loss",
  wholeRun: false,    // colours on the scale of all rounds: they show learning, not differences
  x: "rounds",
  selected: null,     // id
  hovered: null,      // id
  hoverRound: null,   // under the pointer in a curve
  replay: null,       // round; null: the newest figures
  replayed: null,     // field → figures by id of that round, once they are there
  measured: {},       // the chosen measure: its values by id, and the scale of its colours
  theme: {},
  select,
  /** A figure of a node as of the round that is shown. */
  figure(key, id) {
    if (view.replay === null) return state.nodes[key][id];
    return view.replayed?.[key]?.[id] ?? NaN;
  },
};

const graph = new Graph(element("graph"), state, view, select, writePeer);
const replay = new Replay(state, view, showRound);
const curves = new Curves(element("panels"), element("panel"), state, view, (round) => {
  replay.seek(round);
});
const table = new PeerTable(state, view, select);

/** Colours of canvases are those of the style sheet. */
function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  for (const name of ["paper", "ink", "muted", "faint", "grid", "axis", "link", "lost", "joined",
    "mean", "averaged"])
    view.theme[name] = colour(name);
  view.theme.meanText = colour("mean-text");
  view.theme.averagedText = colour("averaged-text");
  view.theme.font = colour("sans");
  view.theme.dark = matchMedia("(prefers-color-scheme: dark)").matches;
}

function measure() {
  const chosen = MEASURES.find(({ key }) => key === view.measure);
  const values = Array.from({ length: state.total }, (_, id) => view.figure(chosen.key, id));
  let low = Infinity, high = -Infinity;
  values.forEach((value, id) => {
    const isGone = view.replay === null && AWAY.includes(state.states[id]);
    // A hostile peer's figures may be of any size: honest peers must stay apart in colour.
    if (!Number.isFinite(value) || isGone || state.hostile.has(id)) return;
    low = Math.min(low, value), high = Math.max(high, value);
  });
  if (view.wholeRun)
    for (const { [`${chosen.key}_min`]: least, [`${chosen.key}_max`]: largest } of state.rounds)
      if (least < low || largest > high) low = Math.min(low, least), high = Math.max(high, largest);
  if (chosen.key === "lag") low = Math.min(low, 0), high = Math.max(high, 1);
  const logarithmic = low > 0 && high / low > LOG_FROM;
  view.measured = { ...chosen, values, logarithmic, domain: steadyDomain(low, high, logarithmic) };
}

/** Offers the measures of which anything is known. */
function offerMeasures() {
  const select = element("measure");
  const offered = MEASURES.filter(({ key }) => state.nodes[key].some(Number.isFinite));
  if (offered.length === 0) return;
  // Of other measures, the largest and least value in earlier rounds is not known.
  element("whole-run").disabled = !state.rounds.some((figures) => `${view.measure}_min` in figures);
  if (!offered.some(({ key }) => key === view.measure)) view.measure = offered[0].key;
  if (select.options.length !== offered.length)
    select.replaceChildren(...offered.map(({ key, name }) => new Option(name, key)));
  select.value = view.measure;
}

function drawGraph() {
  if (!graph.size) return;  // nothing is known of the run yet
  measure();
  drawLegend(element("legend"), view);
  const { name, domain, format } = view.measured;
  const range = domain ? `from ${format(domain[0])} to ${format(domain[1])}` : "not known";
  element("legend").setAttribute("aria-label", `Colours: ${name}, ${range}`);
  graph.draw();
}

let wordsAt = -Infinity, tableAt = -Infinity, wordsTimer = null;

function writeWords(now = performance.now()) {
  clearTimeout(wordsTimer);
  wordsTimer = null;
  wordsAt = now;
  panels.writeHeader(state);
  replay.write();
  panels.writeKey(state, view);
  panels.writeFacts(state);
  writePeer();
  if (now - tableAt < TABLE_MS) return;
  tableAt = now;
  table.update();
}

let pending = new Set(), drawnAt = -Infinity, scheduled = false;

function writePeer() {
  panels.writeFigures(state, view);
  panels.writeNeighbours(state, view);
}

/** Draws what has changed in the next frame, and words less often. */
function draw() {
  scheduled = false;
  const now = performance.now(), changed = pending;
  pending = new Set();
  drawnAt = now;
  if (changed.has("run")) begin(changed.has("another run"));
  if (changed.has("rounds") || changed.has("end")) replay.update(), curves.update();
  if (changed.has("links")) graph.updateLinks();
  if (changed.has("nodes") || changed.has("run")) offerMeasures();
  if (view.replay === null) drawGraph();
  if (changed.has("events")) panels.writeEvents(state);
  if (changed.has("nodes") || changed.has("end")) panels.writeAbsent(state), announce();
  const wait = changed.has("run") || changed.has("end") ? 0 : WORDS_MS - (now - wordsAt);
  if (wait <= 0) writeWords(now);
  else wordsTimer ??= setTimeout(writeWords, wait);
}

function onChange(changed) {
  if (!state.run) return showSilence();
  for (const what of changed) pending.add(what);
  if (scheduled) return;
  scheduled = true;
  const wait = calm.matches ? CALM_MS - (performance.now() - drawnAt) : 0;
  setTimeout(() => requestAnimationFrame(draw), Math.max(0, wait));
}

function showSilence() {
  element("connection").hidden = state.answers;
  panels.write("connection", "The process does not answer.");
}

/** The whole state has come: of another run, or of the same one, with other participants say. */
function begin(isAnother) {
  if (isAnother) {
    view.selected = view.hovered = view.replay = view.replayed = null;
    element("peer-number").value = "";
  } else if (view.replay !== null) {
    replay.load();  // the figures of the round may be others
  }
  element("peer-number").max = state.total - 1;
  const about = `Graph of ${state.peers} peers, ${state.run.topology}. `;
  const keys = "Arrow keys select a peer, Escape selects none.";
  element("peers").setAttribute("aria-label", about + keys);
  measure();
  graph.begin();
  panels.writeEvents(state);
  const note = state.predicted?.note;
  element("prediction").hidden = !note;
  panels.write("prediction", note ? `Predicted: ${note}` : "");
}

function select(id, spoken = false) {
  if (!graph.size) return;  // nothing is known of the run yet
  view.selected = id;
  element("peer-number").value = id ?? "";
  graph.draw();
  writeWords();
  table.update();
  if (!spoken) return;
  const { name, format, values } = view.measured;
  const words = `peer ${id}, ${state.states[id]}, ${name} ${format(values[id])}`;
  panels.write("selection", id === null ? "no peer selected" : words);
}

/** Another round is shown, or the newest figures again. */
function showRound() {
  if (!state.run) return;
  drawGraph();
  graph.updateLinks();
  curves.draw();
  writeWords();
  table.update();
  for (const option of element("measure").options) {
    const { replayed } = MEASURES.find(({ key }) => key === option.value);
    option.disabled = view.replay !== null && !replayed;
  }
}

let announced = null;

/** A screen reader says who is lost or has joined, and the end: nothing of each update. */
function announce() {
  const now = {
    lost: new Set(state.peersIn("lost")), joined: new Set(state.peersIn("joined")), end: state.end,
  };
  if (announced) {
    const isNew = (name) => [...now[name]].filter((id) => !announced[name].has(id));
    const words = [
      ...isNew("lost").slice(0, 5).map((id) => `Peer ${id} is lost.`),
      ...isNew("joined").slice(0, 5).map((id) => `Peer ${id} has joined.`),
      ...(now.end && !announced.end ? [`The run has ended: ${now.end.reason}.`] : []),
    ];
    if (words.length > 0) panels.write("announcement", words.join(" "));
  }
  announced = now;
}

element("measure").addEventListener("change", (event) => {
  view.measure = event.target.value;
  if (!state.run) return;
  offerMeasures();
  drawGraph();
  writeWords();
});
element("whole-run").addEventListener("change", (event) => {
  view.wholeRun = event.target.checked;
  drawGraph();
});
element("abscissa").addEventListener("change", (event) => {
  view.x = event.target.value;
  curves.draw();
});
element("peer-number").addEventListener("input", (event) => {
  const id = event.target.valueAsNumber;
  select(Number.isInteger(id) && id >= 0 && id < state.total ? id : null);
});

function onTheme() {
  readTheme();
  if (!graph.size) return;
  drawGraph();
  graph.drawLinks();
  curves.draw();
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", onTheme);
new ResizeObserver(() => view.measured.key && drawLegend(element("legend"), view)).observe(
  element("legend"));

readTheme();
follow(state, onChange);
