"use strict";
// What report.js draws with, apart from any page: numbers as text, shapes, lines as uPlot wants them.
const marks = (() => {
  const number = (value) => Math.abs(value) >= 1000
    ? Math.round(value).toLocaleString("en-US")
    : String(Number(value.toPrecision(6)));

  const measure = (value, unit) => (unit ? `${number(value)}\u00a0${unit}` : number(value));

  // A value as precise as the pixel it was read from.
  const rounded = (value, pixel) => Number(value.toFixed(Math.min(9, Math.max(0, Math.ceil(-Math.log10(pixel))))));

  // The percentile at x = 1/(1 - p), with as many nines as x has.
  function nines(x) {
    if (x <= 1) return "0 %";
    const digits = Math.max(0, Math.ceil(Math.log10(x) - 1e-9) - 2 + (Number.isInteger(Math.log10(x)) ? 0 : 2));
    return `${Number((100 * (1 - 1 / x)).toFixed(Math.min(digits, 12)))} %`;
  }

  // Paints what is within a chart, or so many CSS pixels above and beside it.
  function clipped(u, paint, beyond = 0) {
    const { ctx, bbox: { left, top, width, height } } = u;
    const more = beyond * devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top - more, width + more, height + more);
    ctx.clip();
    ctx.setLineDash([]);
    paint(ctx, u.bbox, devicePixelRatio);
    ctx.restore();
  }

  const SHAPES = {
    o: (p, x, y, r) => { p.moveTo(x + r, y); p.arc(x, y, r, 0, 2 * Math.PI); },
    s: (p, x, y, r) => p.rect(x - r * .88, y - r * .88, r * 1.76, r * 1.76),
    "^": (p, x, y, r) => { p.moveTo(x, y - r); p.lineTo(x + r, y + r * .8); p.lineTo(x - r, y + r * .8); p.closePath(); },
    v: (p, x, y, r) => { p.moveTo(x, y + r); p.lineTo(x + r, y - r * .8); p.lineTo(x - r, y - r * .8); p.closePath(); },
    D: (p, x, y, r) => { p.moveTo(x, y - r * 1.2); p.lineTo(x + r * 1.2, y); p.lineTo(x, y + r * 1.2); p.lineTo(x - r * 1.2, y); p.closePath(); },
    // Arms are thin: they reach further.
    P: (p, x, y, radius) => { const r = radius * 1.3, t = r * .4; p.rect(x - t, y - r, 2 * t, 2 * r); p.rect(x - r, y - t, 2 * r, 2 * t); },
    X: (p, x, y, radius) => {
      const r = radius * 1.3;
      const bar = [[-1, -.6], [-.6, -1], [1, .6], [.6, 1]];
      // Both bars turn the same way: where they cross they would leave a hole otherwise.
      for (const corners of [bar, bar.map(([a, b]) => [a, -b]).reverse()]) {
        corners.forEach(([a, b], i) => (i ? p.lineTo(x + a * r, y + b * r) : p.moveTo(x + a * r, y + b * r)));
        p.closePath();
      }
    },
  };

  // All x of all lines in order, and for each line its y there or nothing: no point is lost, also
  // where two share an x. `null` is a gap, `undefined` another line's point.
  function merge(lines) {
    const size = lines.reduce((sum, line) => sum + line.x.length, 0);
    const xs = new Array(size);
    const ys = lines.map(() => new Array(size));
    const next = lines.map(() => 0);
    for (let i = 0; i < size; i++) {
      let best = -1;
      for (let l = 0; l < lines.length; l++) {
        if (next[l] < lines[l].x.length && (best < 0 || lines[l].x[next[l]] < lines[best].x[next[best]])) best = l;
      }
      xs[i] = lines[best].x[next[best]];
      ys[best][i] = lines[best].y[next[best]++];
    }
    return [xs, ...ys];
  }

  // The value of a line at x: of a stepped line the step it is on, else the nearest point.
  function valueAt(line, x) {
    let low = 0;
    let high = line.x.length - 1;
    if (high < 0 || x < line.x[0]) return null;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (line.x[middle] <= x) low = middle; else high = middle - 1;
    }
    if (line.draw === "steps") return low === line.x.length - 1 && x > line.x[low] ? null : line.y[low];
    const after = Math.min(low + 1, line.x.length - 1);
    return line.y[x - line.x[low] <= line.x[after] - x ? low : after];
  }

  return { SHAPES, clipped, measure, merge, nines, number, rounded, valueAt };
})();
