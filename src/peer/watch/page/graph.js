// The graph of peers on two canvases: links, redrawn when one is lost or restored, and above them
// the peers, redrawn with each update. A thousand peers stay smooth only as pixels.

import { layoutOf, wrapsAround } from "./layout.js";
import { isLight, linearTicks, logTicks, scaleOf, unitTick, viridis } from "./scale.js";
import { AWAY, isRelayed, markOf } from "./state.js";

const MOST_DRAWN_LINKS = 20000;  // beyond, they fill the plane and tell nothing
const FEW_LINKS = 300;  // so many are drawn in one frame without delay, and can bear arrows
const MOST_COMPARED = 2000;
const WIDEST = 4;  // half pixels that traffic adds to a link of one pixel
const MARGIN = 14;
const RELAYED = [2, 3];  // pixels of line and gap
const STUB = 0.55;  // of the distance between two neighbours: an end of a link around a torus

export class Graph {
  /** `select` is called with the id of a peer or null, `onHover` after another is pointed at. */
  constructor(figure, state, view, select, onHover) {
    this.state = state;
    this.view = view;
    this.select = select;
    this.onHover = onHover;
    [this.linkCanvas, this.canvas] = figure.querySelectorAll("canvas");
    this.tooltip = figure.querySelector(".tooltip");
    this.positions = [];
    this.points = [];
    this.linkJob = 0;
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.hover(null));
    this.canvas.addEventListener("click", (event) => this.select(this.peerAt(event)));
    this.canvas.addEventListener("keydown", (event) => this.press(event));
    new ResizeObserver(() => this.resize()).observe(figure);
  }

  begin() {
    this.positions = layoutOf(this.state.run);
    this.gaps = gapsOf(this.positions);
    this.resize();
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (width === 0 || !this.gaps) return;  // nothing is to be seen, or known
    this.size = [width, height];
    for (const canvas of [this.linkCanvas, this.canvas]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.fit(width, height);
    this.drawLinks();
    this.draw();
  }

  /** Places the peers on the canvas, and makes them as large as their distance allows. */
  fit(width, height) {
    const xs = this.positions.map(([x]) => x), ys = this.positions.map(([, y]) => y);
    const left = Math.min(...xs), top = Math.min(...ys);
    const wide = Math.max(...xs) - left, deep = Math.max(...ys) - top;
    const lay = (margin) => {
      const unit = Math.min(
        wide > 0 ? (width - 2 * margin) / wide : Infinity,
        deep > 0 ? (height - 2 * margin) / deep : Infinity,
      );
      this.unit = Number.isFinite(unit) ? unit : 1;
      this.points = this.positions.map(([x, y]) => [
        (width - wide * this.unit) / 2 + (x - left) * this.unit,
        (height - deep * this.unit) / 2 + (y - top) * this.unit,
      ]);
      const radius = this.unit * Math.min(0.38 * this.gaps.usual, 0.46 * this.gaps.least);
      this.radius = Math.min(15, Math.max(1.6, radius));
    };
    lay(MARGIN);
    const stub = this.state.run.topology === "torus" ? STUB * this.unit : 0;
    lay(MARGIN + Math.max(this.radius, stub));
  }

  /** Draws links over several frames if there are many, so that no frame is late. */
  drawLinks() {
    const context = this.linkCanvas.getContext("2d"), job = ++this.linkJob;
    context.clearRect(0, 0, ...this.size);
    this.marked = new Map();
    const all = this.state.run.edges ?? [], edges = all.length <= MOST_DRAWN_LINKS ? all : [];
    const drawFrom = (first) => {
      if (job !== this.linkJob) return;  // a newer drawing has begun
      this.strokeActive(context, edges.slice(first, first + FEW_LINKS));
      if (first + FEW_LINKS < edges.length)
        return requestAnimationFrame(() => drawFrom(first + FEW_LINKS));
      context.setLineDash([1, 4]);
      this.strokeActive(context, this.spokes());
      context.setLineDash([]);
      for (const link of this.state.links.values())
        if (this.markOf(link)) this.strokeMarked(context, link);
    };
    drawFrom(0);
  }

  /** After marks of links changed: of many links, only these are drawn, over what is there. */
  updateLinks() {
    if (!this.size) return;
    if ((this.state.run.edges?.length ?? 0) <= FEW_LINKS) return this.drawLinks();
    const context = this.linkCanvas.getContext("2d");
    for (const link of this.state.links.values()) {
      const mark = this.markOf(link);
      if (mark === (this.marked.get(link) ?? null)) continue;
      context.globalCompositeOperation = "destination-out";
      context.lineWidth = 2.5;
      this.strokePath(context, [[link.a, link.b]]);
      context.globalCompositeOperation = "source-over";
      if (mark) this.strokeMarked(context, link);
      else this.marked.delete(link), this.strokeActive(context, [[link.a, link.b]]);
    }
  }

  /** "lost", "suspected" or null; of an earlier round, whether the link was lost then. */
  markOf(link) {
    return markOf(this.view, link);
  }

  /** Lost in the round that is shown: it has recorded nothing, and no neighbour has its link. */
  wasLost(id) {
    const others = this.state.neighbours?.[id] ?? [];
    return others.length > 0 && others.every((other) => this.isLost(this.state.link(id, other)));
  }

  isLost(link) {
    return this.markOf(link) === "lost";
  }

  strokeActive(context, edges) {
    const { length } = this.state.run.edges ?? edges;
    const shown = edges.filter(([a, b]) => {
      const link = this.state.link(a, b), mark = this.markOf(link);
      if (mark) this.marked.set(link, mark);
      return !mark;
    });
    context.strokeStyle = this.view.theme.link;
    context.globalAlpha = Math.max(0.07, Math.min(1, 9 / Math.sqrt(length || 1)));
    for (const [width, links] of this.byWidth(shown, length)) {
      context.lineWidth = width;
      const relayed = links.filter(([a, b]) => isRelayed(this.view, this.state.link(a, b)));
      const [drawn, dash] = [new Set(relayed), context.getLineDash()];
      this.strokePath(context, links.filter((link) => !drawn.has(link)));
      context.setLineDash(RELAYED);
      this.strokePath(context, relayed);
      context.setLineDash(dash);
    }
    context.globalAlpha = 1;
  }

  /** Width → links: of few links, the one that carried most bytes is the widest. */
  byWidth(edges, length) {
    const bytesOf = ([a, b]) => this.state.link(a, b)?.bytes ?? 0;
    const most = length <= FEW_LINKS && this.view.replay === null
      ? Math.max(0, ...edges.map(bytesOf)) : 0;
    const groups = new Map();
    for (const edge of edges) {
      const width = most > 0 ? 1 + Math.round(WIDEST * (bytesOf(edge) / most)) / 2 : 1;
      if (!groups.has(width)) groups.set(width, []);
      groups.get(width).push(edge);
    }
    return groups;
  }

  strokeMarked(context, link) {
    const mark = this.markOf(link);
    this.marked.set(link, mark);
    context.strokeStyle = this.view.theme.lost;
    context.lineWidth = 1.5;
    context.setLineDash(mark === "lost" ? [4, 4] : [9, 2]);
    this.strokePath(context, [[link.a, link.b]]);
    context.setLineDash([]);
  }

  strokePath(context, edges) {
    context.beginPath();
    for (const [a, b] of edges) this.trace(context, a, b);
    context.stroke();
  }

  /** A single server exchanges rows with every peer. */
  spokes() {
    const { run, peers } = this.state;
    return run.servers === 1 ? Array.from({ length: peers }, (_, i) => [i, peers]) : [];
  }

  /** Adds a link to the path. */
  trace(context, a, b) {
    if (!this.points[a] || !this.points[b]) return;
    const [x, y] = this.points[a], [u, v] = this.points[b];
    if (wrapsAround(this.state.run, this.positions, a, b)) {
      const dx = Math.sign(x - u) * STUB * this.unit, dy = Math.sign(y - v) * STUB * this.unit;
      context.moveTo(x, y), context.lineTo(x + dx, y + dy);
      context.moveTo(u, v), context.lineTo(u - dx, v - dy);
      return;
    }
    context.moveTo(x, y), context.lineTo(u, v);
    const { symmetric, edges } = this.state.run;
    if (symmetric === false && edges?.length <= FEW_LINKS) this.arrow(context, x, y, u, v);
  }

  arrow(context, x, y, u, v) {
    const length = Math.hypot(u - x, v - y) || 1, size = 5;
    const dx = (u - x) / length, dy = (v - y) / length;
    const back = this.radius + 2;  // the tip touches the peer
    const tipX = u - dx * back, tipY = v - dy * back;
    context.moveTo(tipX - size * (dx + 0.5 * dy), tipY - size * (dy - 0.5 * dx));
    context.lineTo(tipX, tipY);
    context.lineTo(tipX - size * (dx - 0.5 * dy), tipY - size * (dy + 0.5 * dx));
  }

  draw() {
    if (!this.size) return;
    const context = this.canvas.getContext("2d"), { theme, selected, hovered } = this.view;
    context.clearRect(0, 0, ...this.size);
    for (const id of [selected, hovered]) if (id !== null) this.drawNeighbourhood(context, id);
    const { values, domain } = this.view.measured;
    const scale = domain ? scaleOf(domain[0], domain[1], this.view.measured.logarithmic) : null;
    context.font = `600 ${Math.min(11, this.radius)}px ${theme.font}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let id = 0; id < this.points.length; ++id)
      this.drawNode(context, id, scale && Number.isFinite(values[id]) ? scale(values[id]) : null);
    if (hovered !== null) this.drawRing(context, hovered, theme.muted);
    if (selected !== null) this.drawRing(context, selected, theme.ink);
    this.showTooltip();
  }

  drawNeighbourhood(context, id) {
    context.strokeStyle = this.view.theme.ink;
    context.lineWidth = 1.25;
    const others = this.state.neighbours?.[id] ?? [];
    const active = others.filter((other) => !this.isLost(this.state.link(id, other)));
    this.strokePath(context, active.map((other) => [id, other]));
  }

  /** Its form tells what it is, its outline in which state it is, and its colour the measure. */
  drawNode(context, id, part) {
    const { theme, replay } = this.view, [x, y] = this.points[id];
    const isServer = id >= this.state.peers;
    // Of an earlier round it is known who has recorded it, and which links were lost.
    const state = replay === null ? this.state.states[id]
      : isServer || part !== null ? "training" : this.wasLost(id) ? "lost" : "unknown";
    const r = this.radius, hollow = [...AWAY, "stopped"].includes(state);
    context.beginPath();
    if (isServer) corners(context, x, y, 1.2 * r, 4);
    else if (this.state.hostile.has(id)) corners(context, x, y + 0.15 * r, 1.3 * r, 3);
    else context.arc(x, y, r, 0, 2 * Math.PI);
    context.fillStyle = hollow ? theme.paper : part === null ? theme.faint : viridis(part);
    context.fill();
    if (state === "lost" || state === "stopped") {
      context.strokeStyle = state === "lost" ? theme.lost : theme.muted;
      context.lineWidth = r > 5 ? 2 : 1.2;
      context.stroke();
      strike(context, x, y, Math.max(2.5, 0.5 * r), state === "lost");
    } else if (state === "absent") {
      context.strokeStyle = theme.faint;
      context.lineWidth = 1;
      context.stroke();
    } else if (state === "unknown") {
      context.strokeStyle = theme.muted;
      context.lineWidth = 1;
      context.setLineDash([2, 2]);
      context.stroke();
      context.setLineDash([]);
    } else if (state === "finished") {
      context.strokeStyle = theme.ink;
      context.lineWidth = r > 5 ? 1.5 : 0.8;
      context.stroke();
    } else if (state === "joined") {
      context.strokeStyle = theme.joined;
      context.lineWidth = r > 5 ? 2 : 1.2;
      context.beginPath();
      context.arc(x, y, r + (r > 5 ? 3.5 : 1.6), 0, 2 * Math.PI);
      context.stroke();
    }
    if (r < 8.5 || state === "lost" || state === "stopped") return;
    const isPlain = isServer || hollow || part === null;
    context.fillStyle = state === "absent" ? theme.muted : isPlain ? theme.ink
      : isLight(part) ? "#111" : "#fff";
    context.fillText(isServer ? "S" : id, x, y + 0.5);
  }

  drawRing(context, id, colour) {
    const [x, y] = this.points[id];
    context.strokeStyle = colour;
    context.lineWidth = 2;
    context.beginPath();
    context.arc(x, y, this.radius + 5, 0, 2 * Math.PI);
    context.stroke();
  }

  peerAt(event) {
    let nearest = null, least = Math.max(12, this.radius + 5) ** 2;
    this.points.forEach(([x, y], id) => {
      const distance = (x - event.offsetX) ** 2 + (y - event.offsetY) ** 2;
      if (distance < least) least = distance, nearest = id;
    });
    return nearest;
  }

  point(event) {
    this.hover(this.peerAt(event));
  }

  hover(id) {
    if (this.view.hovered === id) return;
    this.view.hovered = id;
    this.canvas.classList.toggle("pointing", id !== null);
    this.draw();
    this.onHover();
  }

  showTooltip() {
    const id = this.view.hovered;
    this.tooltip.hidden = id === null;
    if (id === null) return;
    const { values, name, format } = this.view.measured;
    const who = id < this.state.peers ? `peer ${id}` : `server ${id}`;
    const state = this.view.replay === null ? this.state.states[id] : "";
    const value = `${name} ${format(values[id])}`;
    this.tooltip.textContent = [who, state, value].filter(Boolean).join(" · ");
    const [x, y] = this.points[id], half = this.tooltip.offsetWidth / 2;
    const centre = Math.min(this.size[0] - half, Math.max(half, x));
    const below = y < 48;
    this.tooltip.style.left = `${centre - half}px`;
    this.tooltip.style.top = `${below ? y + this.radius + 9 : y - this.radius - 35}px`;
  }

  press(event) {
    const { run, total } = this.state, { selected } = this.view;
    if (!run) return;
    const columns = run.topology === "torus" && run.lattice?.length === 2 ? run.lattice[1] : 1;
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
    let next;
    if (event.key in steps) next = selected === null ? 0 : selected + steps[event.key];
    else if (event.key === "Home") next = 0;
    else if (event.key === "End") next = total - 1;
    else if (event.key === "Escape") next = null;
    else return;
    event.preventDefault();
    this.select(next === null ? null : (next + total) % total, true);
  }
}

/** The least distance of two peers, and the usual one of a peer to the next. */
function gapsOf(positions) {
  const count = Math.min(positions.length, MOST_COMPARED);
  const nearest = new Float64Array(count).fill(Infinity);
  for (let i = 0; i < count; ++i)
    for (let j = 0; j < i; ++j) {
      const x = positions[i][0] - positions[j][0], y = positions[i][1] - positions[j][1];
      const distance = Math.sqrt(x * x + y * y);
      if (distance < nearest[i]) nearest[i] = distance;
      if (distance < nearest[j]) nearest[j] = distance;
    }
  nearest.sort();
  return { least: nearest[0], usual: nearest[Math.floor(count / 2)] };
}

/** A path of a polygon that stands on its edge (three corners) or its corner (four). */
function corners(context, x, y, radius, count) {
  for (let k = 0; k < count; ++k) {
    const turn = (2 * Math.PI * k) / count;
    context.lineTo(x + radius * Math.sin(turn), y - radius * Math.cos(turn));
  }
  context.closePath();
}

/** A cross, or a bar. */
function strike(context, x, y, arm, cross) {
  context.beginPath();
  if (cross) {
    context.moveTo(x - arm, y - arm), context.lineTo(x + arm, y + arm);
    context.moveTo(x - arm, y + arm), context.lineTo(x + arm, y - arm);
  } else {
    context.moveTo(x - arm, y), context.lineTo(x + arm, y);
  }
  context.stroke();
}

/** The scale of the colours, with its numbers, and above it a tick for each peer. */
export function drawLegend(canvas, { theme, measured }) {
  const ratio = window.devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
  if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d"), { domain, logarithmic, values, format } = measured;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = `11px ${theme.font}`;
  context.textBaseline = "top";
  context.fillStyle = theme.muted;
  if (!domain) return context.fillText(`${measured.name}: not known`, 0, 16);
  const scale = scaleOf(domain[0], domain[1], logarithmic), bar = { top: 15, height: 9 };
  context.globalAlpha = Math.max(0.15, Math.min(0.8, 12 / Math.sqrt(values.length * 10)));
  context.fillStyle = theme.ink;
  for (const value of values) {
    if (!(value >= domain[0] && value <= domain[1])) continue;
    context.fillRect(scale(value) * (width - 1), 4, 1, 9);
  }
  context.globalAlpha = 1;
  const gradient = context.createLinearGradient(0, 0, width, 0);
  for (let k = 0; k <= 20; ++k) gradient.addColorStop(k / 20, viridis(k / 20));
  context.fillStyle = gradient;
  context.fillRect(0, bar.top, width, bar.height);
  const ticks = (logarithmic ? logTicks : linearTicks)(domain[0], domain[1], 5);
  context.fillStyle = theme.muted;
  for (const tick of ticks) {
    const x = scale(tick) * width;
    context.textAlign = x < 12 ? "left" : x > width - 12 ? "right" : "center";
    context.fillRect(Math.min(width - 1, Math.max(0, x - 0.5)), bar.top + bar.height, 1, 4);
    const step = logarithmic ? undefined : ticks[1] - ticks[0];
    context.fillText(unitTick(format, tick, step), x, bar.top + bar.height + 7);
  }
}
