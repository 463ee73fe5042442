// What the page knows of the run, and how it asks the process for what changed.

import { bytes, percent, plain, whole } from "./scale.js";

const NODE_FIELDS = [
  "round", "seconds", "train_loss", "test_loss", "test_accuracy", "distance", "bytes_sent",
  "bytes_received", "wait_seconds", "train_seconds", "mix_seconds", "first_round",
  "first_seconds", "first_bytes_sent", "first_train_seconds",
];
export const STATES = ["training", "joined", "lost", "finished", "stopped", "absent", "unknown"];
/** States of peers whose figures are out of date. */
export const AWAY = ["lost", "absent", "unknown"];
const MOST_EVENTS = 200;
const MOST_CACHED_ROUNDS = 200;
const LIVE_MS = 100, IDLE_MS = 1000, ANSWER_MS = 10000;

/** What the colour of a peer can stand for. `replayed`: /rounds/R has it. */
export const MEASURES = [
  { key: "train_loss", name: "training loss", format: plain, replayed: true },
  { key: "test_loss", name: "test loss", format: plain, replayed: true },
  { key: "test_accuracy", name: "test accuracy", format: percent, replayed: true },
  { key: "distance", name: "distance from the mean", format: plain, replayed: true },
  { key: "lag", name: "round lag", format: whole, replayed: false },
  { key: "bytes_sent", name: "bytes sent", format: bytes, replayed: false },
];

const numbers = (column) => column.map((value) => (value === null ? NaN : Number(value)));

const linkKey = (a, b) => `${Math.min(a, b)} ${Math.max(a, b)}`;

/** "lost", "suspected" or null. Links that were suspected in an earlier round are not known. */
export function markOf(view, link) {
  if (!link) return null;
  if (view.replay !== null) return view.replayed?.lost.has(linkKey(link.a, link.b)) ? "lost" : null;
  return link.state === "active" ? null : link.state;
}

/** At present, and not lost. Of earlier rounds the ways of links are not known. */
export function isRelayed(view, link) {
  return view.replay === null && link?.route === "relayed" && link.state !== "lost";
}

export class RunState {
  constructor() {
    this.forget();
    this.answers = true;  // whether the process answered the last request
  }

  forget() {
    this.version = 0;
    this.run = null;
    this.peers = 0;       // ids below are peers, others are servers
    this.total = 0;
    this.hostile = new Set();
    this.nodes = {};      // field → numbers by id; NaN: not known
    this.states = [];     // by id
    this.rounds = [];     // figures of the kept rounds, ascending
    this.byRound = new Map();
    this.links = new Map();  // "a b" → {a, b, state, cause, bytes, route, relay}, of links that had any news
    this.neighbours = null;  // by peer; null: the process does not list the edges
    this.events = [];     // newest first
    this.predicted = null;
    this.end = null;
    this.kept = [];
    this.maxRound = 0;
    this.cache = new Map();  // round → figures by peer
  }

  /**
   * Takes an answer of /state. Returns what changed, as a set of words: "run" is the whole state,
   * and with "another run" what the reader has chosen of the one before means nothing.
   */
  take(answer) {
    const changed = new Set();
    if (answer.run) {
      const known = this.run && [this.run.run_id, this.total].join();
      this.forget();
      this.begin(answer.run);
      this.predicted = answer.predicted ?? null;
      changed.add("run");
      if ([this.run.run_id, this.total].join() !== known) changed.add("another run");
    }
    if (answer.version !== this.version) changed.add("version");
    this.version = answer.version;
    if (!this.run) return changed;
    if (answer.nodes?.id?.length) this.takeNodes(answer.nodes), changed.add("nodes");
    if (answer.rounds?.round?.length) this.takeRounds(answer.rounds), changed.add("rounds");
    if (answer.kept_rounds) this.takeKept(answer.kept_rounds), changed.add("rounds");
    if (answer.links?.a?.length) this.takeLinks(answer.links), changed.add("links");
    if (answer.events?.text?.length) this.takeEvents(answer.events), changed.add("events");
    if (JSON.stringify(answer.end ?? null) !== JSON.stringify(this.end)) {
      this.end = answer.end ?? null;
      changed.add("end");
    }
    return changed;
  }

  begin(run) {
    this.run = run;
    this.peers = run.peers;
    this.total = run.peers + (run.servers ?? 0);
    this.hostile = new Set(run.hostile ?? []);
    for (const field of NODE_FIELDS) this.nodes[field] = new Float64Array(this.total).fill(NaN);
    this.nodes.lag = new Float64Array(this.total).fill(NaN);
    this.states = new Array(this.total).fill("unknown");
    if (!run.edges) return;
    const sets = Array.from({ length: this.peers }, () => new Set());
    for (const [a, b] of run.edges) sets[a]?.add(b), sets[b]?.add(a);
    this.neighbours = sets.map((set) => [...set].sort((a, b) => a - b));
  }

  takeNodes(columns) {
    const values = NODE_FIELDS.map((field) => [this.nodes[field], columns[field] ?? []]);
    columns.id.forEach((id, k) => {
      if (!(id < this.total)) return;
      for (const [known, news] of values) known[id] = news[k] ?? NaN;
      this.states[id] = STATES.includes(columns.state[k]) ? columns.state[k] : "unknown";
    });
    const rounds = this.nodes.round;
    this.maxRound = 0;
    for (let i = 0; i < this.peers; ++i) if (rounds[i] > this.maxRound) this.maxRound = rounds[i];
    for (let i = 0; i < this.peers; ++i)
      this.nodes.lag[i] = ["absent", "unknown"].includes(this.states[i]) ? NaN
        : this.maxRound - rounds[i];
  }

  takeRounds(columns) {
    const fields = Object.entries(columns).map(([name, column]) => [name, numbers(column)]);
    columns.round.forEach((round, k) => {
      const figures = {};
      for (const [name, column] of fields) figures[name] = column[k];
      this.byRound.set(round, figures);
      this.cache.delete(round);
    });
    this.rounds = [...this.byRound.values()].sort((a, b) => a.round - b.round);
  }

  /** Of a long run, the process keeps fewer and fewer rounds. */
  takeKept(rounds) {
    this.kept = rounds;
    const kept = new Set(rounds);
    for (const round of this.byRound.keys()) if (!kept.has(round)) this.byRound.delete(round);
    this.rounds = this.rounds.filter((figures) => kept.has(figures.round));
  }

  takeLinks({ a, b, state, cause, bytes, route, relay }) {
    a.forEach((one, k) => {
      const link = this.link(one, b[k]) ?? {};
      Object.assign(link, { a: one, b: b[k], state: state[k], cause: cause[k], bytes: bytes[k] });
      Object.assign(link, { route: route[k], relay: relay[k] });
      this.links.set(linkKey(one, b[k]), link);
    });
  }

  takeEvents({ seconds, round, peer, event, text }) {
    const news = text.map((words, k) => ({
      seconds: seconds[k], round: round[k], peer: peer[k], event: event[k], text: String(words),
    }));
    this.events = [...news.reverse(), ...this.events].slice(0, MOST_EVENTS);
  }

  link(a, b) {
    return this.links.get(linkKey(a, b));
  }

  /** Ids of the peers in a state. */
  peersIn(state) {
    const ids = [];
    for (let i = 0; i < this.peers; ++i) if (this.states[i] === state) ids.push(i);
    return ids;
  }

  /**
   * The rounds that curves show: at the end of a running log, few peers have recorded the last
   * rounds, and the mean over them would jump. Of other processes, not every round is heard.
   */
  shownRounds() {
    const hears = this.run?.hears_others ?? false;
    const hasFew = ({ nodes, due }) => nodes < 0.5 * due;
    if (hears) return this.rounds.filter((figures) => !hasFew(figures));
    let end = this.rounds.length;
    while (end > 1 && hasFew(this.rounds[end - 1]) && !this.end) --end;
    return this.rounds.slice(0, end);
  }

  /** The figures of each peer in a round; null if the process does not keep the round. */
  async round(round) {
    if (!this.cache.has(round)) {
      const answer = await fetch(`rounds/${round}`, { signal: AbortSignal.timeout(ANSWER_MS) });
      if (!answer.ok) return null;
      const columns = await answer.json();
      const figures = {};
      for (const { key, replayed } of MEASURES)
        if (replayed) figures[key] = Float64Array.from(numbers(columns[key] ?? []));
      figures.lost = new Set((columns.lost_links ?? []).map(([a, b]) => linkKey(a, b)));
      this.cache.set(round, figures);
      if (this.cache.size > MOST_CACHED_ROUNDS) this.cache.delete(this.cache.keys().next().value);
    }
    return this.cache.get(round);
  }
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

function visible() {
  if (!document.hidden) return Promise.resolve();
  return new Promise((done) => {
    document.addEventListener("visibilitychange", done, { once: true });
  });
}

/** Asks for changes until the page is closed: one request at a time, and seldom after the end. */
export async function follow(state, onChange) {
  for (;;) {
    await visible();
    const began = performance.now();
    let changed = new Set();
    const answered = state.answers;
    try {
      const options = { signal: AbortSignal.timeout(ANSWER_MS), cache: "no-store" };
      const response = await fetch(`state?after=${state.version}`, options);
      if (!response.ok) throw new Error(`status ${response.status}`);
      const answer = await response.json();
      state.answers = true;
      changed = state.take(answer);
    } catch {
      state.answers = false;
    }
    if (answered !== state.answers) changed.add("answers");
    if (changed.size > 0) onChange(changed);
    const interval = state.answers && !state.end ? LIVE_MS : IDLE_MS;
    await pause(Math.max(20, interval - (performance.now() - began)));
  }
}
