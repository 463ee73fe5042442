// Curves of the run against rounds, seconds or bytes: small panels of one form, with one cursor.

import {
  bytes, duration, linearTicks, logTicks, percent, plain, roundUp, scaleOf, steadyDomain, tickText,
  unitTick, whole,
} from "./scale.js";

const LABEL_GAP = 14;
const LOG_FROM = 30;  // largest / least value from which an axis of losses is logarithmic

const measured = (key) => ({ key, name: "measured", colour: "mean" });
const band = (key) => ({
  key, name: "mean", colour: "mean", low: `${key}_min`, high: `${key}_max`,
});
const averaged = (key) => ({ key, name: "averaged", colour: "averaged" });
const predicted = (key) => ({ key, name: "predicted", colour: "ink", predicted: true });

// In a panel, curves without any value are not drawn; a panel without any is not shown.
const PANELS = [
  { id: "train", title: "Training loss", format: plain, loss: true, series: [band("train_loss")] },
  {
    id: "test", title: "Test loss", format: plain, loss: true,
    series: [band("test_loss"), averaged("averaged_loss")],
  },
  {
    id: "accuracy", title: "Test accuracy", format: percent,
    series: [band("test_accuracy"), averaged("averaged_accuracy")],
  },
  {
    id: "consensus", title: "Consensus distance", format: plain, logarithmic: true,
    series: [measured("consensus_distance"), predicted("consensus_distance")],
  },
  {
    id: "optimum", title: "Distance to the optimum", format: plain, logarithmic: true,
    series: [measured("distance_to_optimum"), predicted("distance_to_optimum")],
  },
];

const ABSCISSAS = {
  rounds: { key: "round", name: "round", format: whole },
  seconds: { key: "seconds", name: "time", format: duration },
  bytes: { key: "bytes_sent", name: "bytes sent", format: bytes },
};

export class Curves {
  /** `seek`: called with the round on which someone clicks. */
  constructor(container, template, state, view, seek) {
    this.state = state;
    this.view = view;
    this.seek = seek;
    this.container = container;
    this.cursorWords = document.getElementById("cursor");
    this.panels = PANELS.map((spec) => this.build(spec, template));
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(container);
  }

  build(spec, template) {
    const figure = template.content.firstElementChild.cloneNode(true);
    figure.querySelector("h3").textContent = spec.title;
    figure.hidden = true;
    const canvas = figure.querySelector("canvas");
    this.container.append(figure);
    const panel = { spec, figure, canvas, readout: figure.querySelector(".readout") };
    canvas.addEventListener("pointermove", (event) => this.hover(this.roundAt(panel, event)));
    canvas.addEventListener("pointerleave", () => this.hover(null));
    canvas.addEventListener("click", (event) => this.seek(this.roundAt(panel, event)));
    return panel;
  }

  hover(round) {
    if (this.view.hoverRound === round) return;
    this.view.hoverRound = round;
    this.draw();
  }

  roundAt({ plot }, event) {
    if (!plot || this.rounds.length === 0) return null;
    const x = ((event.offsetX - plot.left) / plot.width) * this.ends[1];
    const distance = (figures) => Math.abs(figures[this.abscissa.key] - x);
    return this.rounds.reduce((a, b) => (distance(b) < distance(a) ? b : a)).round;
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    for (const { figure, canvas } of this.panels) {
      if (figure.hidden) continue;
      const { clientWidth: width, clientHeight: height } = canvas;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.draw();
  }

  /** Chooses the panels that have data. */
  update() {
    this.rounds = this.state.shownRounds();
    let appeared = false, shown = 0;
    for (const panel of this.panels) {
      panel.series = this.seriesOf(panel.spec);
      const hidden = panel.series.every(({ predicted }) => predicted);
      appeared ||= panel.figure.hidden !== hidden;
      panel.figure.hidden = hidden;
      shown += !hidden;
    }
    if (!appeared) return this.draw();
    this.container.classList.toggle("odd", shown % 2 === 1);
    this.resize();
  }

  /** The curves of a panel of which anything is known. */
  seriesOf({ id, series }) {
    const isKnown = (key) => this.rounds.some((figures) => Number.isFinite(figures[key]));
    // Without test data, the averaged model's loss is one of training.
    const isTested = isKnown("test_loss");
    if (id === "test" && !isTested) return [];
    const all = id === "train" && !isTested ? [...series, averaged("averaged_loss")] : series;
    return all.filter(({ key, predicted }) =>
      predicted ? this.state.predicted?.[key]?.length > 0 : isKnown(key));
  }

  draw() {
    if (!this.rounds?.length) return;
    const last = this.rounds[this.rounds.length - 1];
    for (const choice of document.getElementsByName("x"))
      choice.disabled = choice.value !== "rounds" && !(last[ABSCISSAS[choice.value].key] > 0);
    this.abscissa = ABSCISSAS[this.view.x];
    const { key } = this.abscissa;
    const planned = this.state.run.rounds ?? Infinity;
    const end = this.state.end ? last[key] : roundUp(last[key]);
    this.ends = [0, Math.max(key === "round" ? Math.min(end, planned) : end, 1e-9)];
    const at = this.view.hoverRound ?? this.view.replay ?? last.round;
    const cursor = this.rounds.reduce((a, b) => (b.round <= at ? b : a));
    for (const panel of this.panels) if (!panel.figure.hidden) this.drawPanel(panel, cursor);
    this.cursorWords.textContent = `values in round ${whole(cursor.round)}`;
  }

  /** Points [x, y] of a curve; rounds without a value are passed over. */
  pointsOf({ key, predicted }) {
    const x = this.abscissa.key, points = [];
    if (!predicted) {
      for (const figures of this.rounds)
        if (Number.isFinite(figures[key])) points.push([figures[x], figures[key]]);
      return points;
    }
    const { rounds, [key]: values } = this.state.predicted;
    rounds.forEach((round, k) => {
      const place = x === "round" ? round : this.placeOf(round);
      if (place <= this.ends[1] && Number.isFinite(values[k])) points.push([place, values[k]]);
    });
    return points;
  }

  /** At how many seconds or bytes the run was in a round: that is not known of rounds to come. */
  placeOf(round) {
    const next = this.rounds.findIndex((figures) => figures.round >= round);
    if (next < 0) return Infinity;
    const { key } = this.abscissa, after = this.rounds[next];
    const before = this.rounds[next - 1] ?? after;
    const part = after === before ? 0 : (round - before.round) / (after.round - before.round);
    return before[key] + part * (after[key] - before[key]);
  }

  /** [low, high] of all values that a panel draws, and whether their axis is logarithmic. */
  domainOf({ format, loss, logarithmic }, curves) {
    const values = [], predictions = [];
    for (const { points, series } of curves) {
      for (const [, value] of points) (series.predicted ? predictions : values).push(value);
      if (!series.low) continue;
      for (const figures of this.rounds) values.push(figures[series.low], figures[series.high]);
    }
    let low = Infinity, high = -Infinity, positive = Infinity;
    const add = (value) => {
      if (!Number.isFinite(value)) return;
      low = Math.min(low, value), high = Math.max(high, value);
      if (value > 0) positive = Math.min(positive, value);
    };
    values.forEach(add);
    // A prediction far away from what is measured must not squeeze the measured curve.
    const least = positive / 30, most = high * 30;
    for (const value of predictions) if (value > least && value < most) add(value);
    const isWide = loss && low > 0 && high / low > LOG_FROM;
    const isLog = positive < Infinity && (logarithmic || isWide);
    const domain = steadyDomain(isLog ? positive : low, high, isLog);
    if (format === percent) domain[1] = Math.min(1, domain[1]);
    return { domain, isLog };
  }

  drawPanel(panel, cursor) {
    const { canvas, spec } = panel, { theme } = this.view;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, width, height);
    context.font = `11px ${theme.font}`;
    const curves = panel.series.map((series) => ({ series, points: this.pointsOf(series) }));
    const { domain, isLog } = this.domainOf(spec, curves);
    const plot = { left: 46, top: 8, bottom: height - 22 };
    plot.width = Math.max(40, width - plot.left - context.measureText("measured").width - 12);
    panel.plot = plot;
    const part = scaleOf(domain[0], domain[1], isLog);
    const x = (value) => plot.left + (value / this.ends[1]) * plot.width;
    const y = (value) => plot.bottom - part(value) * (plot.bottom - plot.top);
    this.drawAxes(context, plot, spec, domain, isLog, x, y);
    context.save();
    context.beginPath();
    context.rect(plot.left - 1, plot.top - 2, plot.width + 4, plot.bottom - plot.top + 3);
    context.clip();
    for (const { series } of curves) if (series.low) this.drawBand(context, series, x, y);
    for (const { series, points } of curves) this.drawLine(context, series, points, x, y);
    context.restore();
    this.drawCursor(context, plot, cursor, panel.series, x, y);
    this.drawNames(context, plot, curves, x, y);
    this.write(panel, cursor, curves);
  }

  drawAxes(context, plot, spec, domain, isLog, x, y) {
    const { theme } = this.view, right = plot.left + plot.width;
    const count = Math.max(2, Math.floor((plot.bottom - plot.top) / 34));
    const ticks = (isLog ? logTicks : linearTicks)(domain[0], domain[1], count);
    context.lineWidth = 1;
    context.strokeStyle = theme.grid;
    context.fillStyle = theme.muted;
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const tick of ticks) {
      const place = Math.round(y(tick)) + 0.5;
      context.beginPath();
      context.moveTo(plot.left, place), context.lineTo(right, place);
      context.stroke();
      const step = isLog ? undefined : ticks[1] - ticks[0];
      context.fillText(unitTick(spec.format, tick, step), plot.left - 7, place);
    }
    context.strokeStyle = theme.axis;
    context.beginPath();
    context.moveTo(plot.left, plot.bottom + 0.5), context.lineTo(right, plot.bottom + 0.5);
    context.textBaseline = "top";
    const isRound = this.abscissa.key === "round";
    const across = linearTicks(...this.ends, Math.max(2, Math.floor(plot.width / 54)))
      .filter((tick) => !isRound || Number.isInteger(tick));
    for (const tick of across) {
      const place = Math.round(x(tick)) + 0.5;
      context.moveTo(place, plot.bottom), context.lineTo(place, plot.bottom + 4);
      context.textAlign = "center";
      const text = isRound ? tickText(tick, 1)
        : unitTick(this.abscissa.format, tick, across[1]);
      context.fillText(text, place, plot.bottom + 8);
    }
    context.stroke();
  }

  drawBand(context, { low, high, colour }, x, y) {
    const shown = this.rounds.filter((figures) =>
      Number.isFinite(figures[low]) && Number.isFinite(figures[high]));
    if (shown.length < 2) return;
    const key = this.abscissa.key;
    context.beginPath();
    for (const figures of shown) context.lineTo(x(figures[key]), y(figures[high]));
    for (const figures of shown.toReversed()) context.lineTo(x(figures[key]), y(figures[low]));
    context.fillStyle = this.view.theme[colour];
    context.globalAlpha = this.view.theme.dark ? 0.24 : 0.16;
    context.fill();
    context.globalAlpha = 1;
  }

  drawLine(context, { colour, predicted }, points, x, y) {
    context.strokeStyle = this.view.theme[colour];
    context.lineWidth = predicted ? 1.2 : 1.6;
    context.lineJoin = "round";
    context.setLineDash(predicted ? [5, 4] : []);
    context.beginPath();
    for (const [across, value] of points) if (y(value) < 1e5) context.lineTo(x(across), y(value));
    context.stroke();
    context.setLineDash([]);
  }

  drawCursor(context, plot, cursor, series, x, y) {
    const { theme, hoverRound, replay } = this.view;
    const place = x(cursor[this.abscissa.key]);
    if (hoverRound !== null || replay !== null) {
      context.strokeStyle = theme.axis;
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(place, plot.top), context.lineTo(place, plot.bottom);
      context.stroke();
    }
    for (const { key, colour, predicted } of series) {
      if (predicted || !Number.isFinite(y(cursor[key]))) continue;
      context.fillStyle = theme[colour];
      context.beginPath();
      context.arc(place, y(cursor[key]), 2.6, 0, 2 * Math.PI);
      context.fill();
    }
  }

  /** The name of each curve beside its end, apart from one another. */
  drawNames(context, plot, curves, x, y) {
    const labels = curves.filter(({ points }) => points.length > 0).map(({ series, points }) => {
      const [, value] = points[points.length - 1];
      return { series, place: Math.min(plot.bottom, Math.max(plot.top, y(value))) };
    });
    labels.sort((a, b) => a.place - b.place);
    for (let k = 1; k < labels.length; ++k)
      labels[k].place = Math.max(labels[k].place, labels[k - 1].place + LABEL_GAP);
    for (let k = labels.length - 1, most = plot.bottom - 2; k >= 0; --k, most -= LABEL_GAP)
      labels[k].place = Math.min(labels[k].place, most);
    context.textAlign = "left";
    context.textBaseline = "middle";
    for (const { series, place } of labels) {
      context.fillStyle = this.view.theme[`${series.colour}Text`] ?? this.view.theme.ink;
      context.fillText(series.name, plot.left + plot.width + 8, place);
    }
  }

  /** The values at the cursor, in words. */
  write(panel, cursor, curves) {
    const { format } = panel.spec, parts = [];
    for (const { series, points } of curves) {
      const value = series.predicted ? this.predictedAt(points, cursor) : cursor[series.key];
      if (!Number.isFinite(value)) continue;
      const low = cursor[series.low], high = cursor[series.high];
      const peers = Number.isFinite(low) ? ` (peers ${format(low)} to ${format(high)})` : "";
      parts.push(`${series.name} ${format(value)}${peers}`);
    }
    const text = parts.join(", ") || "not recorded", { title } = panel.spec;
    if (panel.readout.textContent !== text) panel.readout.textContent = text;
    const label = `${title} by ${this.view.x}. In round ${cursor.round}: ${text}`;
    if (panel.canvas.ariaLabel !== label) panel.canvas.ariaLabel = label;
  }

  predictedAt(points, cursor) {
    const place = cursor[this.abscissa.key];
    const nearest = points.findLast(([across]) => across <= place);
    return nearest ? nearest[1] : NaN;
  }
}
