// Numbers on a page: how they are written, where axes have ticks, and which colour stands for them.

const MISSING = "–";
const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

function superscript(exponent) {
  const digits = String(Math.abs(exponent)).replace(/\d/g, (digit) => SUPERSCRIPTS[digit]);
  return (exponent < 0 ? "⁻" : "") + digits;
}

/** A plain number: three digits, and a power of ten where zeros would hide it. */
export function plain(value) {
  if (!Number.isFinite(value)) return MISSING;
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e-3 && size < 1e5)
    return size < 1000 ? value.toPrecision(3) : Math.round(value).toString();
  const [digits, exponent] = value.toExponential(1).split("e");
  return `${digits}×10${superscript(Number(exponent))}`;
}

export function whole(value) {
  return Number.isFinite(value) ? Math.round(value).toLocaleString("en-US") : MISSING;
}

export function percent(value) {
  return Number.isFinite(value) ? `${(100 * value).toFixed(1)} %` : MISSING;
}

export function bytes(value) {
  if (!Number.isFinite(value)) return MISSING;
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (Math.abs(value) >= 999.5 && unit < units.length - 1) value /= 1000, ++unit;
  return `${unit === 0 ? Math.round(value) : value.toPrecision(3)} ${units[unit]}`;
}

export function duration(seconds) {
  if (!Number.isFinite(seconds)) return MISSING;
  if (seconds === 0) return "0 s";
  if (seconds < 1e-3) return `${(1e6 * seconds).toPrecision(3)} µs`;
  if (seconds < 1) return `${(1000 * seconds).toPrecision(3)} ms`;
  if (seconds < 100) return `${seconds.toPrecision(3)} s`;
  if (seconds < 6000) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** The least of 1, 2, 5 × 10^k that is `value` or more. */
export function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * power).find((end) => end >= value * (1 - 1e-9));
}

/** Ticks of an axis with equal steps, `count` or fewer steps between `low` and `high`. */
export function linearTicks(low, high, count) {
  const step = roundUp((high - low) / Math.max(1, count));
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; ++k)
    ticks.push(Number((k * step).toPrecision(12)));
  return ticks;
}

/** Ticks of a logarithmic axis: powers of ten, and values between where few powers fit. */
export function logTicks(low, high, count) {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  const decades = Math.log10(high / low);
  const factors = 3 * decades <= count ? [1, 2, 5] : 2 * decades <= count + 1 ? [1, 3] : [1];
  const every = Math.max(1, Math.ceil(decades / Math.max(1, count)));
  const ticks = [];
  for (let k = first; k <= last; ++k) {
    if (k % every !== 0) continue;
    for (const factor of factors) {
      const tick = factor * 10 ** k;
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push(tick);
    }
  }
  return ticks;
}

/** How a tick is written: no more digits than its step needs. */
export function tickText(tick, step) {
  if (tick === 0) return "0";
  const size = Math.abs(tick);
  if (size >= 1e6 || size < 1e-3) {
    const exponent = Math.floor(Math.log10(size) + 1e-9);
    const digits = Number((tick / 10 ** exponent).toPrecision(2));
    return (digits === 1 ? "" : `${digits}×`) + `10${superscript(exponent)}`;
  }
  const decimals = Math.max(0, -Math.floor(Math.log10(step ?? size) + 1e-9));
  return size >= 1e4 ? tick.toLocaleString("en-US") : tick.toFixed(Math.min(decimals, 6));
}

/** A tick of bytes, seconds or parts of one, by the writer that its panel uses for values. */
export function unitTick(format, tick, step) {
  if (format === percent) return `${tickText(100 * tick, 100 * step)} %`;
  if (format !== bytes && format !== duration) return tickText(tick, step);
  return format(tick).replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");
}

/** Maps values to [0, 1]. A domain of one value maps to the middle. */
export function scaleOf(low, high, logarithmic) {
  const at = logarithmic ? Math.log : (value) => value;
  const from = at(low), size = at(high) - from;
  return (value) => (size > 0 ? (at(value) - from) / size : 0.5);
}

/** [low, high] widened to ticks, so that it changes rarely while values often do. */
export function steadyDomain(low, high, logarithmic) {
  if (!(low <= high)) return null;
  if (logarithmic) {
    const down = 10 ** Math.floor(Math.log10(low)), up = 10 ** Math.floor(Math.log10(high));
    const below = [5, 2, 1].find((factor) => factor * down <= low * (1 + 1e-9)) * down;
    const above = [1, 2, 5, 10].find((factor) => factor * up >= high * (1 - 1e-9)) * up;
    return above > below ? [below, above] : [below, below * 10];
  }
  const span = high - low || Math.abs(high) || 1;
  const step = roundUp(span / 5);
  const below = Math.floor(low / step + 1e-9) * step, above = Math.ceil(high / step - 1e-9) * step;
  return above > below ? [below, above] : [below, below + step];
}

// Viridis, of matplotlib: its lightness grows steadily, also for the colour-blind and in grey.
const VIRIDIS = [
  [68, 1, 84], [72, 36, 117], [65, 68, 135], [53, 95, 141], [42, 120, 142], [33, 145, 140],
  [34, 168, 132], [68, 191, 112], [122, 209, 81], [189, 223, 38], [253, 231, 37],
];

const SHADES = Array.from({ length: 256 }, (_, shade) => {
  const place = (shade / 255) * (VIRIDIS.length - 1);
  const k = Math.min(Math.floor(place), VIRIDIS.length - 2);
  const channels = VIRIDIS[k].map((low, c) => low + (place - k) * (VIRIDIS[k + 1][c] - low));
  return `rgb(${channels.map(Math.round).join(" ")})`;
});

/** The colour of a part of [0, 1]. */
export function viridis(part) {
  return SHADES[Math.round(255 * Math.min(1, Math.max(0, part)))];
}

/** Whether text upon that colour must be dark. */
export function isLight(part) {
  return part > 0.55;
}
