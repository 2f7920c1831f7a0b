"use strict";
// Draws the figures that Python prepared. Units, scales and limits come with the data; nothing
// is computed here that the static figures could show differently.
(() => {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("data").textContent);
  // What a figure shows: the runs, or names of its own; which of them are hidden.
  const runs = { names: data.names, looks: data.looks, hidden: new Set() };
  const subjects = data.figures.map(({ names, looks }) => (names ? { names, looks, hidden: new Set(), own: true } : runs));
  const subjectOf = (element) => {
    const figure = element.closest("[data-of]");
    return figure ? subjects[figure.dataset.of] : runs;
  };
  const { SHAPES, clipped, measure, merge, nines, number, rounded, valueAt } = marks;
  // The width of a chart on paper, A4 or letter, in CSS pixels.
  const PAPER = 680;
  let printing = false;
  let charts = [];

  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  // Paper is light.
  const dark = () => !printing && matchMedia("(prefers-color-scheme: dark)").matches;
  const painter = ({ looks }) => (run) => looks[run][dark() ? "dark" : "light"];

  // Markers: at each point of lines that have few, and of clouds of points.
  function points(u) {
    const { hidden, looks, own } = u.subject;
    for (const line of u.lines) {
      if (line.draw === "steps" || hidden.has(line.run)) continue;
      const cloud = line.draw === "points";
      const radius = !cloud ? 2.8 : line.x.length > 2000 ? 1.3 : own ? 3 : 2.2;
      const path = new Path2D();
      line.x.forEach((value, i) => {
        if (line.y[i] === null) return;
        SHAPES[looks[line.run].marker](path, u.valToPos(value, "x", true), u.valToPos(line.y[i], "y", true), radius * devicePixelRatio);
      });
      clipped(u, (ctx) => {
        ctx.fillStyle = painter(u.subject)(line.run);
        ctx.globalAlpha = cloud ? .8 : 1;
        ctx.fill(path);
      });
    }
  }

  const STEPS = Array.from({ length: 16 }, (_, n) => [1, 2, 5].map((s) => Number(`${s}e${n - 6}`))).flat();

  // Lanes: their names, each where it is.
  const named = (names) => ({
    splits: () => names.map((_, lane) => lane),
    values: (u, splits) => splits.map((lane) => names[lane]),
    grid: { show: false },
    ticks: { show: false },
  });

  function axis(model, side, size) {
    const log = model.scale !== "linear";
    const few = Math.log10(model.high / model.low) < 2.6;
    const show = (value) => {
      if (value === null || value === undefined) return "";
      if (!log) return number(value);
      const digit = Math.round(value / 10 ** Math.floor(Math.log10(value) + 1e-9));
      if (model.scale === "nines") return digit === 1 ? nines(value) : "";
      return digit === 1 || (few && (digit === 2 || digit === 5)) ? number(value) : "";
    };
    return {
      scale: side,
      label: model.label,
      labelFont: "13px system-ui, sans-serif",
      font: "12px system-ui, sans-serif",
      labelSize: 22,
      size,
      gap: 4,
      space: side === "x" ? 64 : 34,
      stroke: () => css("--ink"),
      grid: { stroke: () => css("--grid"), width: 1, filter: (u, splits) => splits.map((s) => (!log || show(s) ? s : null)) },
      ticks: { stroke: () => css("--rule"), width: 1, size: 4 },
      incrs: STEPS,
      filter: (u, splits) => splits,
      // A telephone has no room for the sign at each percentile.
      values: (u, splits) => splits.map((s) => (u.width < 520 ? show(s).replace(" %", "") : show(s))),
      ...(model.names.length ? named(model.names) : {}),
    };
  }

  const scale = (model) => ({
    time: false,
    distr: model.scale === "linear" ? 1 : 3,
    log: 10,
    // A zoom gives its own limits; what spans all the data means the whole axis.
    range: (u, low, high, key) => {
      const zoomed = u.zoomed && u.zoomed[key];
      return zoomed || [model.low, model.high];
    },
  });

  function tell(u, panel, readout) {
    const { left } = u.cursor;
    const { hidden, names, own } = u.subject;
    if (left === undefined || left === null || left < 0) { readout.textContent = ""; return; }
    const x = u.posToVal(left, "x");
    if (panel.y.names.length && panel.lines.length) {
      readout.textContent = lanes.values(u, panel, hidden, names);
      return;
    }
    const shown = [];
    for (const [index, line] of panel.lines.entries()) {
      // Where a line goes on pale, its own point is that of the pale one.
      const next = panel.lines[index + 1];
      if (hidden.has(line.run) || (next && next.faded && next.run === line.run && x >= next.x[0])) continue;
      // Few points: what is far from the pointer is not what it points at.
      if (own && line.draw === "points" && !line.x.some((at) => Math.abs(u.valToPos(at, "x") - left) < 6)) continue;
      const value = valueAt(line, x);
      if (value === null || value === undefined) continue;
      const interval = intervals.text(panel.bands.find(({ run }) => run === line.run), x, panel.y.unit);
      const part = line.part && line.part !== "without" ? ` ${line.part}` : "";
      shown.push(`${names[line.run]}${part} ${measure(value, panel.y.unit)}${interval}`);
    }
    shown.push(...lanes.text(u, panel, hidden, names, x));
    const pixel = Math.abs(u.posToVal(left + 1, "x") - x);
    const at = panel.x.scale === "nines" ? nines(x) : measure(rounded(x, pixel), panel.x.unit);
    readout.textContent = shown.length ? `${at}: ${shown.join(" · ")}` : at;
  }

  function chart(holder, panel, last, beside) {
    const subject = subjectOf(holder);
    const { hidden, looks } = subject;
    const colour = painter(subject);
    const look = (run) => ({ colour: colour(run), marker: looks[run].marker });
    const box = document.createElement("div");
    box.className = "chart";
    const readout = document.createElement("div");
    readout.className = "readout";
    holder.append(box, readout);
    const lines = panel.lines.map((line) => panel.y.scale === "log"
      ? { ...line, y: line.y.map((y) => (y === null ? null : Math.max(y, panel.y.low))) }
      : line);
    const stepped = uPlot.paths.stepped({ align: 1 });
    const options = {
      title: panel.title,
      width: room(holder),
      height: height(holder, panel),
      legend: { show: false },
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: !panel.y.names.length, uni: 24, setScale: false },
        bind: { dblclick: () => () => reset(u) },
      },
      scales: { x: scale(panel.x), y: scale(panel.y) },
      axes: [axis(last ? panel.x : { ...panel.x, label: undefined }, "x", 30), axis(panel.y, "y", beside)],
      series: [{}, ...lines.map((line) => ({
        show: !hidden.has(line.run),
        scale: "y",
        stroke: () => colour(line.run),
        width: 1.6,
        alpha: line.faded ? .6 : 1,
        dash: line.dash.map((d) => d * 1.2),
        paths: line.draw === "points" ? () => null : line.draw === "steps" ? stepped : undefined,
        points: { show: false },
      }))],
      hooks: {
        init: [(self) => Object.assign(self, { lines, subject, zoomed: {} })],
        drawAxes: [(self) => {
          rules.draw(self, panel, css("--ink"));
          // Beneath what is marked on them.
          lanes.draw(self, panel, hidden, colour);
          intervals.bands(self, panel.bands, hidden, colour, dark() ? .28 : .2);
        }],
        draw: [(self) => {
          points(self);
          intervals.bars(self, panel.intervals, hidden, look, css("--paper"));
          rules.labels(self, panel, css("--ink"), css("--paper"));
          self.root.dataset.drawn = "";
        }],
        setCursor: [(self) => tell(self, panel, readout)],
        setSelect: [(self) => zoom(self)],
      },
    };
    // A panel of bars alone has no points: its ends stand for them.
    const u = new uPlot(options, lines.length ? merge(lines) : [[panel.x.low, panel.x.high]], box);
    return { u, holder, panel };
  }

  function zoom(u) {
    const { left, top, width, height: tall } = u.select;
    if (width > 4 || tall > 4) {
      const whole = u.over.getBoundingClientRect();
      // Panels of a figure share their x.
      const across = width > 4 && width < whole.width && [u.posToVal(left, "x"), u.posToVal(left + width, "x")];
      if (across) for (const peer of peers(u)) peer.zoomed.x = across;
      if (tall > 4 && tall < whole.height) u.zoomed.y = [u.posToVal(top + tall, "y"), u.posToVal(top, "y")];
      u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      peers(u).forEach(rescale);
    }
  }

  function peers(u) {
    const { holder } = charts.find((one) => one.u === u);
    return charts.filter((one) => one.holder === holder).map((one) => one.u);
  }

  function reset(u) {
    for (const peer of peers(u)) {
      peer.zoomed = {};
      rescale(peer);
    }
  }

  function rescale(u) {
    u.setData(u.data, true);
  }

  const height = (holder, panel) => {
    if (panel.y.names.length) return (printing ? 18 : 24) * panel.y.names.length + 60;
    const alone = holder.dataset.panels === "1";
    // Two figures to a page.
    if (printing) return alone ? 280 : 170;
    return Math.max(200, Math.min(alone ? 380 : 230, room(holder) * (alone ? .72 : .45)));
  };

  const room = (holder) => (printing ? PAPER : holder.clientWidth);

  function draw() {
    for (const { u } of charts) u.destroy();
    charts = [];
    for (const holder of document.querySelectorAll("[data-figure]")) {
      const { panels } = data.figures[holder.dataset.figure];
      holder.dataset.panels = panels.length;
      holder.replaceChildren();
      const beside = Math.max(58, lanes.room(panels));
      panels.forEach((panel, index) => charts.push(chart(holder, panel, index === panels.length - 1, beside)));
    }
    if (printing) keys();
    document.querySelectorAll(".swatch").forEach(swatchOf);
  }

  // On paper the legend does not follow: each figure gets one.
  function keys() {
    for (const holder of document.querySelectorAll("[data-figure]")) {
      if (subjectOf(holder).own) continue;
      const key = document.createElement("div");
      key.className = "legend";
      key.append(...document.getElementById("legend").cloneNode(true).children);
      holder.prepend(key);
    }
  }

  function swatchOf(canvas) {
    const subject = subjectOf(canvas);
    const look = subject.looks[canvas.dataset.run];
    const pixel = devicePixelRatio;
    const [width, tall] = [38 * pixel, 14 * pixel];
    Object.assign(canvas, { width, height: tall });
    const ctx = canvas.getContext("2d");
    ctx.strokeStyle = ctx.fillStyle = painter(subject)(canvas.dataset.run);
    if (look.swatch === "bar") {
      ctx.fillRect(width / 4, tall / 5, width / 2, tall * .6);
      return;
    }
    ctx.lineWidth = 1.6 * pixel;
    ctx.setLineDash(look.dash.map((d) => d * 1.2 * pixel));
    if (look.swatch !== "points") {
      ctx.beginPath();
      ctx.moveTo(0, tall / 2);
      ctx.lineTo(width, tall / 2);
      ctx.stroke();
    }
    if (look.swatch === "steps") return;
    const path = new Path2D();
    SHAPES[look.marker](path, width / 2, tall / 2, 4 * pixel);
    ctx.fill(path);
  }

  function themes() {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    for (const event of ["beforeprint", "afterprint"]) {
      addEventListener(event, () => {
        printing = event === "beforeprint";
        root.classList.toggle("paper", printing);
        draw();
      });
    }
  }

  function legend() {
    for (const button of document.querySelectorAll(".legend button")) {
      const { hidden } = subjectOf(button);
      button.addEventListener("click", () => {
        const run = Number(button.dataset.run);
        if (!hidden.delete(run)) hidden.add(run);
        button.setAttribute("aria-pressed", String(!hidden.has(run)));
        draw();
      });
    }
  }

  // The same in another way: as measured, or above the floor.
  function choices() {
    for (const button of document.querySelectorAll(".choice button")) {
      const figure = button.closest("figure");
      button.addEventListener("click", () => {
        const { show } = button.dataset;
        for (const one of figure.querySelectorAll(".choice button")) one.setAttribute("aria-pressed", String(one === button));
        for (const one of figure.querySelectorAll("[data-caption]")) one.hidden = one.dataset.caption !== show;
        figure.querySelector("[data-figure]").dataset.figure = show;
        draw();
      });
    }
  }

  // Canvases are drawn in a later task: what goes wrong there comes as an event.
  addEventListener("error", (event) => {
    const trouble = document.getElementById("trouble");
    trouble.hidden = false;
    trouble.textContent = `The figures could not be drawn: ${event.message}`;
  });
  themes();
  legend();
  choices();
  draw();
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    for (const { u, holder, panel } of charts) u.setSize({ width: room(holder), height: height(holder, panel) });
  });
})();
