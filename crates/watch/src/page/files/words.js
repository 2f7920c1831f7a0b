// Numbers, times and verdicts in words, and elements made of text alone: names of targets come from others.

const UNITS = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];

/** Three digits: 12.3, 123, 1230. */
export function number(value) {
  const digits = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)) + 1e-12);
  return value.toFixed(Math.max(0, Math.min(2 - digits, 9)));
}

const unitOf = (ns) => UNITS.findLast(([size]) => Math.abs(ns) >= 0.9995 * size) ?? UNITS[0];

/** A time with its unit: "1.23 ms". */
export function time(ns) {
  const [size, unit] = unitOf(ns);
  return size === 1 ? `${Math.round(ns)} ns` : `${number(ns / size)} ${unit}`;
}

/** A time as short as it can be, for axes: "5 ms". */
export function short(ns) {
  const [size, unit] = unitOf(ns);
  return `${Number((ns / size).toPrecision(3))} ${unit}`;
}

/** A percentile with its interval: "1.23 ms (1.20 to 1.31)". */
export function bounded({ ns, low_ns: low, high_ns: high }) {
  const [size] = unitOf(ns);
  const in_unit = (value) => (size === 1 ? String(Math.round(value)) : number(value / size));
  if (low === null) return `${time(ns)} (no bounds)`;
  if (high === null) return `${time(ns)} (at least ${in_unit(low)})`;
  return in_unit(low) === in_unit(high) ? time(ns) : `${time(ns)} (${in_unit(low)} to ${in_unit(high)})`;
}

/** A share in percent: "0.12 %". */
export const percent = (share) => `${share === 0 ? "0" : share < 0.00001 ? "< 0.001" : number(100 * share)} %`;

export const count = (value) => value.toLocaleString("en-GB");

export const several = (value, word) => `${count(value)} ${word}${value === 1 ? "" : "s"}`;

const format = (options) => {
  const of = new Intl.DateTimeFormat("en-GB", options);
  return (seconds) => of.format(seconds * 1000);
};
export const clock = format({ hour: "2-digit", minute: "2-digit" });
export const clockWithSeconds = format({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
export const day = format({ weekday: "short", day: "numeric", month: "short" });
export const zone = () => Intl.DateTimeFormat("en-GB", { timeZoneName: "short" })
  .formatToParts().find(({ type }) => type === "timeZoneName").value;

/** A time of day, with its day unless that is today. */
export function moment(seconds, at = clock) {
  const today = day(Date.now() / 1000) === day(seconds);
  return today ? at(seconds) : `${day(seconds)} ${at(seconds)}`;
}

/** From one time to another: "10:02 to 10:05", "Sat 28 Nov 23:59 to 00:03". */
export function stretch(begin, end) {
  return `${moment(begin)} to ${day(begin) === day(end) ? clock(end) : moment(end)}`;
}

/** A length of time in its two largest units: "3 min", "1 h 20 min". */
export function length(seconds) {
  const minutes = Math.round(seconds / 60);
  const parts = [[Math.floor(minutes / 1440), "d"], [Math.floor(minutes / 60) % 24, "h"], [minutes % 60, "min"]];
  const told = parts.filter(([value]) => value > 0).slice(0, 2).map(([value, unit]) => `${value} ${unit}`);
  return told.join(" ") || "less than 1 min";
}

export const SPANS = {
  hour: { last: "last hour", block: "minute" },
  day: { last: "last day", block: "ten minutes" },
  week: { last: "last week", block: "hour" },
};

/** Whether no probe of the last minute was answered, though probes left. */
export const isSilent = ({ minute }) => minute !== null && minute.answered === 0 && minute.unanswered > 0;

/** Probes, or packets of a tapped device. */
export const noun = (target) => (target.interval_ns === null ? "packet" : "probe");

/** Words for a time in which all were lost. */
export const silence = (target) => (target.interval_ns === null ? "all lost" : "no answer");

/** An element with attributes and children; texts stay texts. */
export function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same in a drawing. */
export function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** A verdict: sign, word and colour. */
export function verdict(word) {
  const told = word ?? "no objective";
  return make("span", { class: `verdict ${word === null ? "none" : told.replace(" ", "-")}` }, told);
}
