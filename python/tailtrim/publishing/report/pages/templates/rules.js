"use strict";
// Lines across at values: solid where nothing differs, dashed with a label at a limit.
const rules = (() => {
  const DASH = [5, 3];

  function draw(u, panel, ink) {
    marks.clipped(u, (ctx, { left, top, width, height }, pixel) => {
      const line = (...points) => {
        ctx.beginPath();
        points.forEach(([x, y], i) => (i ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
        ctx.stroke();
      };
      const dash = DASH.map((part) => part * pixel);
      ctx.strokeStyle = ink;
      ctx.lineWidth = pixel;
      for (const { at, label, until } of panel.rules) {
        const y = u.valToPos(at, "y", true);
        const end = until === null ? left + width : u.valToPos(until, "x", true);
        ctx.setLineDash(label ? dash : []);
        line([left, y], [end, y], ...(until === null ? [] : [[end, top + height]]));
      }
      ctx.setLineDash(dash);
      for (const { at } of panel.uprights) {
        const x = u.valToPos(at, "x", true);
        line([x, top], [x, top + height]);
      }
    });
  }

  // Above all else; a halo keeps them readable where lines cross.
  function labels(u, panel, ink, paper) {
    marks.clipped(u, (ctx, { left, top, width }, pixel) => {
      ctx.font = `${11 * pixel}px system-ui, sans-serif`;
      ctx.textAlign = "left";
      ctx.textBaseline = "alphabetic";
      ctx.fillStyle = ink;
      ctx.strokeStyle = paper;
      ctx.lineWidth = 4 * pixel;
      const write = (label, x, y) => {
        ctx.strokeText(label, x, y);
        ctx.fillText(label, x, y);
      };
      for (const { at, label } of panel.rules) write(label, left + 5 * pixel, u.valToPos(at, "y", true) - 5 * pixel);
      panel.uprights.forEach(({ at, label }, i) => {
        const x = u.valToPos(at, "x", true);
        const wide = ctx.measureText(label).width;
        const right = x + 5 * pixel + wide > left + width;
        write(label, right ? x - wide - 4 * pixel : x + 4 * pixel, top + (12 + 14 * i) * pixel);
      });
    });
  }

  return { draw, labels };
})();
