// Components: where positions, tokens, residuals and readouts lie, along the axes on which states vary most.

import { checkbox, choice, el, explain, fill, letter, percent, select, shownToken, table } from "./dom.js";
import { colours } from "./colours.js";
import { change, state, stateNumber } from "./state.js";
import { downloads, figureSvg, legendPanel } from "./download.js";
import { SvgPen } from "./pen.js";
import { heading, nothing } from "./parts.js";
import { codeExamples } from "./scene.js";

/** Size of the page's letters for which marks and lines have the sizes written here; they grow with it. */
const LETTER = 15;

/** Where one begins to look from: turn, tilt and zoom. */
const EYE = [0.6, 0.35, 1];

const LAYERS = [
  ["paths", "positions", "the temporal component of every step, joined by a line"],
  ["inputs", "tokens", "the input component of every token"],
  ["residuals", "the rest", "residuals of single states"],
  ["readouts", "readouts", "the directions that make the decoder write a word"],
  ["null", "without input", "the path the network takes when it reads nothing"],
];

/** Draws the view into `main`. */
export function componentsView(main, context) {
  const { geometry } = context.entry.report;
  if (!geometry?.frames?.length) {
    fill(main, heading("Components"), nothing("This report was made without its geometry. Explain again with it:", "crosslens explain DIR --geometry --save report.json\ncrosslens report report.json -o report.html"));
    return;
  }
  const frame = stateNumber("frame", geometry.frames.length - 1);
  const cloud = new Cloud(context, geometry, frame);
  const off = new Set((state().without ?? "null").split("."));
  const is3d = state().flat !== "1";
  const draw = () => cloud.set({ off, is3d: state().flat !== "1" });
  const { shares, participation_ratio: ratio, streams } = geometry.frames[frame];
  const points = cloud.points;
  fill(main,
    heading("Components", downloads(() => `components-${context.entry.name}`, {
      figure: () => cloud.figure(`Components of ${context.entry.name}`), data: () => ({ frame: geometry.frames[frame], points }),
      rows: () => [["layer", "stream", "name", "x", "y", "z"], ...points.map((point) => [point.layer, point.stream, point.name, ...point.at])] })),
    el("p", { class: "lead" }, "Hidden states live in many dimensions. These are the ", is3d ? "three" : "two", " along which they vary most. If attention goes by position, the two paths, whose steps thin lines join, run side by side; if by token, tokens lie apart and along the readouts."),
    el("div", { class: "bar" },
      geometry.frames.length > 1 && el("label", {}, "States ", select("States", geometry.frames.map((one, place) => [place, one.streams.join(" and ")]), frame, (value) => change({ frame: value }))),
      choice("Dimensions", [["3", "3-D"], ["2", "2-D"]], is3d ? "3" : "2", (value) => change({ flat: value === "2" ? "1" : null })),
      LAYERS.filter(([layer]) => points.some((point) => point.layer === layer)).map(([layer, name, title]) => checkbox(name, !off.has(layer), (isOn) => {
        if (isOn) off.delete(layer);
        else off.add(layer);
        change({ without: off.size ? [...off].join(".") : "-" }, { isQuiet: true });
        draw();
      }, title)),
      el("span", { class: "push" }),
      el("ul", { class: "legend", "aria-label": "Colours" }, streams.map((name) => el("li", {}, el("span", { class: "swatch", style: { background: cloud.colour(name) } }), name)))),
    el("section", { class: "card cloud-card" }, cloud.element,
      el("p", { class: "muted small" }, "Drag or use the arrow keys to turn, the wheel or + and − to come nearer, 0 to start again.")),
    explain("What am I looking at?",
      el("p", {}, `The axes are principal components of all states of ${streams.join(" and ")}: together they hold ${percent(shares.slice(0, 3).reduce((sum, share) => sum + share, 0))} of the variance. As if spread evenly, the states fill ${ratio.toFixed(1)} dimensions.`),
      el("p", {}, "Numbers along a line are steps. A token stands where the mean state plus its input component lies. A residual is what position and token leave over: a tight cloud means that they say nearly everything. Arrows begin at the zero state and point where the context must lie for a word to be written.")),
    geometry.notes?.length > 0 && explain("What was left out", el("ul", {}, geometry.notes.map((note) => el("li", {}, note)))),
    el("details", { class: "explain" }, el("summary", {}, "The same as a table"), el("div", { class: "table-scroll" },
      table("Places along the first three axes", ["What", "Stream", "Axis 1", "Axis 2", "Axis 3"], points.filter((point) => point.layer !== "residuals").map((point) => [point.title, point.stream, ...point.at.map((x) => x.toFixed(2))])))));
  context.onLeave(() => cloud.destroy());
  draw();
}

/** Points in space on a canvas. */
class Cloud {
  constructor(context, geometry, frame) {
    this.entry = context.entry;
    this.frame = geometry.frames[frame];
    this.streams = geometry.streams.filter((stream) => stream.frame === frame);
    this.points = pointsOf(geometry, frame, this.frame);
    this.canvas = el("canvas", {});
    this.tip = el("div", { class: "tip", role: "status", "aria-live": "polite" });
    this.element = el("div", { class: "cloud" }, this.canvas, this.tip);
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-roledescription", "3-D picture");
    this.canvas.setAttribute("aria-label", `Components of ${this.frame.streams.join(" and ")}. Arrow keys turn the picture, plus and minus zoom. A table with the same places follows below.`);
    const ats = this.points.filter((point) => point.layer !== "readouts").map((point) => point.at);
    this.centre = [0, 1, 2].map((axis) => (Math.min(...ats.map((at) => at[axis])) + Math.max(...ats.map((at) => at[axis]))) / 2);
    this.radius = Math.max(1e-9, ...ats.map((at) => Math.hypot(...at.map((x, axis) => x - this.centre[axis]))));
    this.reset();
    this.recall();
    this.canvas.addEventListener("pointerdown", (event) => { this.drag = [event.clientX, event.clientY]; this.canvas.setPointerCapture(event.pointerId); });
    this.canvas.addEventListener("pointerup", () => { this.drag = null; });
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.canvas.addEventListener("wheel", (event) => { event.preventDefault(); this.look(this.turn, this.tilt, this.zoom * Math.exp(-event.deltaY / 400)); }, { passive: false });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.observer = new ResizeObserver(() => this.layout());
    this.observer.observe(this.element);
  }

  destroy() {
    this.observer.disconnect();
  }

  reset() {
    [this.turn, this.tilt, this.zoom] = EYE;
  }

  /** From where it is looked at, as the address has it: `eye=turn,tilt,zoom`. */
  recall() {
    const eye = (state().eye ?? "").split(",").map(Number);
    if (eye.length === 3 && eye.every(Number.isFinite)) this.look(...eye);
  }

  look(turn, tilt, zoom) {
    // As exact as the address, so that it shows the same.
    const eye = [turn, Math.min(1.5, Math.max(-1.5, tilt)), Math.min(8, Math.max(0.4, zoom))].map((value) => Number(value.toFixed(3)));
    [this.turn, this.tilt, this.zoom] = eye;
    change({ eye: eye.every((value, place) => value === EYE[place]) ? null : eye.join(",") }, { isQuiet: true });
    this.request();
  }

  set({ off, is3d }) {
    this.off = off;
    this.is3d = is3d;
    this.request();
  }

  colour(stream) {
    const { streams } = colours();
    return streams[Math.min(streams.length - 1, Math.max(0, this.frame.streams.indexOf(stream)))];
  }

  layout() {
    const width = this.element.clientWidth;
    const height = Math.min(Math.max(280, width * 0.62), innerHeight * 0.7);
    const scale = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.height = `${height}px`;
    [this.width, this.height, this.unit] = [width, height, letter() / LETTER];
    this.draw();
  }

  request() {
    if (!this.pending) this.pending = requestAnimationFrame(() => { this.pending = 0; this.draw(); });
  }

  /** From space to the canvas: `[x, y, depth]`. */
  project(at) {
    const [x, y, z] = at.map((value, axis) => (value - this.centre[axis]) / this.radius);
    const scale = 0.43 * Math.min(this.width, this.height * 1.15) * this.zoom;
    if (!this.is3d) return [this.width / 2 + x * scale, this.height / 2 - y * scale, 0];
    const [cosTurn, sinTurn, cosTilt, sinTilt] = [Math.cos(this.turn), Math.sin(this.turn), Math.cos(this.tilt), Math.sin(this.tilt)];
    const [across, back] = [x * cosTurn + z * sinTurn, z * cosTurn - x * sinTurn];
    const [up, depth] = [y * cosTilt - back * sinTilt, back * cosTilt + y * sinTilt];
    const near = 1 / (1 - 0.22 * -depth);
    return [this.width / 2 + across * scale * near, this.height / 2 - up * scale * near, -depth];
  }

  draw() {
    if (!this.width || !this.off) return;
    const context = this.canvas.getContext("2d");
    const scale = devicePixelRatio || 1;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    this.paint(context);
  }

  /** What is seen now, as SVG, and what its colours mean. */
  figure(title) {
    const [pen, top] = [new SvgPen(), 22];
    this.paint(pen);
    const legend = legendPanel(this.frame.streams.map((name) => [this.colour(name), name]));
    const inside = `<g transform="translate(0 ${top})">${pen.inside}</g><g transform="translate(0 ${top + this.height})">${legend.inside}</g>`;
    return figureSvg(Math.max(this.width, legend.width), top + this.height + legend.height, title, inside);
  }

  paint(context) {
    const scheme = colours();
    context.fillStyle = scheme.paper;
    context.fillRect(0, 0, this.width, this.height);
    this.drawAxes(context, scheme);
    this.seen = this.points.filter((point) => !this.off.has(point.layer)).map((point) => ({ point, at: this.project(point.at) })).sort((a, b) => a.at[2] - b.at[2]);
    this.joinPaths(context, scheme);
    this.drawLines(context);
    for (const { point, at: [x, y, depth] } of this.seen) {
      const colour = this.colour(point.stream);
      context.globalAlpha = point.layer === "residuals" ? 0.35 : 0.72 + 0.28 * Math.min(1, Math.max(0, (depth + 1) / 2));
      if (point.layer === "readouts") this.arrow(context, scheme, [x, y]);
      else this.mark(context, scheme, point, x, y, colour);
    }
    context.globalAlpha = 1;
    this.drawNames(context, scheme);
    if (this.near) {
      const [x, y] = this.project(this.near.at);
      context.strokeStyle = scheme.ink;
      context.lineWidth = 2 * this.unit;
      context.beginPath();
      context.arc(x, y, 8 * this.unit, 0, 7);
      context.stroke();
    }
  }

  /** Names of axes, then of tokens and readouts, then steps; of each kind what is near before what is far. */
  drawNames(context, scheme) {
    const [labels, half] = [new Labels(context, this, scheme.paper), 4 * this.unit];
    for (const { point, at: [x, y] } of this.seen) if (point.label) labels.marks.push({ left: x - half, top: y - half, right: x + half, bottom: y + half });
    // An axis that ends outside is named near the edge.
    const margin = 16 * this.unit;
    const within = (value, size) => Math.min(size - margin, Math.max(margin, value));
    for (const { name, end: [x, y] } of this.axes()) labels.put(name, within(x, this.width), within(y, this.height), scheme.muted);
    const named = [...this.seen].reverse().filter(({ point }) => point.label);
    const isStep = ({ point }) => point.layer === "paths";
    for (const { point, at: [x, y] } of named.filter((one) => !isStep(one))) labels.put(point.label, x, y, scheme.ink);
    for (const { point, at: [x, y] } of named.filter(isStep)) labels.put(point.label, x, y, scheme.muted);
  }

  mark(context, scheme, point, x, y, colour) {
    context.fillStyle = context.strokeStyle = colour;
    context.beginPath();
    const { unit } = this;
    if (point.layer === "inputs") {
      context.rect(x - 4 * unit, y - 4 * unit, 8 * unit, 8 * unit);
      context.fill();
      context.strokeStyle = scheme.paper;
      context.lineWidth = unit;
      context.stroke();
      return;
    }
    const radius = point.layer === "residuals" ? 2 : point.layer === "null" ? 2.5 : 4;
    context.lineWidth = unit;
    context.arc(x, y, radius * unit, 0, 7);
    if (point.layer === "null") context.stroke();
    else context.fill();
  }

  /** Where the axes begin and end on the canvas, and what they are called. */
  axes() {
    return this.frame.shares.slice(0, this.is3d ? 3 : 2).map((share, axis) => {
      const at = (way) => this.project(this.centre.map((value, other) => (other === axis ? value + way * this.radius : value)));
      return { name: `axis ${axis + 1}: ${percent(share)}`, start: at(-1), end: at(1) };
    });
  }

  drawAxes(context, scheme) {
    context.strokeStyle = scheme.faint;
    context.lineWidth = this.unit;
    for (const { start, end } of this.axes()) {
      context.beginPath();
      context.moveTo(start[0], start[1]);
      context.lineTo(end[0], end[1]);
      context.stroke();
    }
  }

  /** Thin lines between the same step of the first two paths, as in figures: attention by position runs along them. */
  joinPaths(context, scheme) {
    if (this.off.has("paths")) return;
    const [first, second] = this.streams.filter((stream) => stream.path.length).map((stream) => stream.path);
    if (!second) return;
    context.strokeStyle = scheme.faint;
    context.lineWidth = this.unit;
    context.beginPath();
    for (let step = 0; step < Math.min(first.length, second.length); step += 1) {
      context.moveTo(...this.project(first[step]).slice(0, 2));
      context.lineTo(...this.project(second[step]).slice(0, 2));
    }
    context.stroke();
  }

  /** Steps of a path, one after the other. */
  drawLines(context) {
    const paths = new Map();
    for (const point of this.points) {
      if (point.line === undefined || this.off.has(point.layer)) continue;
      if (!paths.has(point.line)) paths.set(point.line, []);
      paths.get(point.line).push(point);
    }
    for (const points of paths.values()) {
      context.strokeStyle = this.colour(points[0].stream);
      context.globalAlpha = 0.7;
      context.lineWidth = (points[0].layer === "null" ? 1 : 2) * this.unit;
      context.setLineDash(points[0].layer === "null" ? [4 * this.unit, 3 * this.unit] : []);
      context.beginPath();
      points.forEach((point, place) => {
        const [x, y] = this.project(point.at);
        if (place) context.lineTo(x, y);
        else context.moveTo(x, y);
      });
      context.stroke();
    }
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  arrow(context, scheme, [x, y]) {
    const [x0, y0] = this.project(this.frame.origin);
    const angle = Math.atan2(y - y0, x - x0);
    context.strokeStyle = context.fillStyle = scheme.ink;
    context.lineWidth = 1.5 * this.unit;
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x, y);
    context.stroke();
    context.beginPath();
    context.moveTo(x, y);
    for (const side of [-0.4, 0.4]) context.lineTo(x - 9 * this.unit * Math.cos(angle + side), y - 9 * this.unit * Math.sin(angle + side));
    context.fill();
  }

  move(event) {
    if (this.drag) {
      const [x, y] = this.drag;
      this.drag = [event.clientX, event.clientY];
      if (this.is3d) this.look(this.turn + (event.clientX - x) / 120, this.tilt + (event.clientY - y) / 120, this.zoom);
      return;
    }
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const near = (this.seen ?? []).map(({ point, at }) => ({ point, apart: Math.hypot(at[0] - x, at[1] - y) })).reduce((best, one) => (one.apart < (best?.apart ?? 14 * this.unit) ? one : best), null);
    this.point(near?.point ?? null, x, y);
  }

  point(point, x, y) {
    if (point === this.near) return;
    this.near = point;
    fill(this.tip, point && `${point.title} · ${point.stream}`, point?.layer === "inputs" && codeExamples(this.entry, point.name));
    this.tip.classList.toggle("on", Boolean(point));
    if (point) {
      this.tip.style.left = `${Math.min(x + 12 * this.unit, this.width - 150 * this.unit)}px`;
      this.tip.style.top = `${Math.max(4, y - 30 * this.unit)}px`;
    }
    this.request();
  }

  key(event) {
    const turns = { ArrowLeft: [-0.15, 0], ArrowRight: [0.15, 0], ArrowUp: [0, -0.15], ArrowDown: [0, 0.15] };
    const { turn, tilt, zoom } = this;
    if (turns[event.key]) this.look(turn + turns[event.key][0], tilt + turns[event.key][1], zoom);
    else if (event.key === "+" || event.key === "=") this.look(turn, tilt, zoom * 1.2);
    else if (event.key === "-") this.look(turn, tilt, zoom / 1.2);
    else if (event.key === "0") this.look(...EYE);
    else return;
    event.preventDefault();
  }
}

/** Labels that do not cover each other and stay in the picture. */
class Labels {
  constructor(context, { width, height, unit }, paper) {
    Object.assign(this, { context, width, height, unit, paper, boxes: [], marks: [] });
  }

  /** Writes a text beside a place: right of it, left, above or below, wherever there is room first, on no mark if that can be; nowhere if there is none. */
  put(text, x, y, colour) {
    const { context, unit } = this;
    context.font = `${12 * unit}px system-ui, 'Noto Sans', sans-serif`;
    context.textAlign = "left";
    context.textBaseline = "middle";
    const [width, height, gap] = [context.measureText(text).width, 15 * unit, 7 * unit];
    const corners = [[x + gap, y - height / 2], [x - gap - width, y - height / 2], [x - width / 2, y - gap - height], [x - width / 2, y + gap]];
    const free = corners.map(([left, top]) => ({ left, top, right: left + width, bottom: top + height })).filter((one) => this.isFree(one));
    const box = free.find((one) => !this.marks.some((mark) => covers(one, mark))) ?? free[0];
    if (!box) return;
    this.boxes.push(box);
    context.lineWidth = 3 * unit;
    context.strokeStyle = this.paper;
    context.strokeText(text, box.left, box.top + height / 2);
    context.fillStyle = colour;
    context.fillText(text, box.left, box.top + height / 2);
  }

  isFree(box) {
    const isInside = box.left >= 0 && box.top >= 0 && box.right <= this.width && box.bottom <= this.height;
    return isInside && !this.boxes.some((other) => covers(box, other));
  }
}

function covers(box, other) {
  return box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom;
}

function pointsOf(geometry, frame, { origin }) {
  const points = [];
  for (const stream of geometry.streams.filter((one) => one.frame === frame)) {
    stream.path.forEach((at, step) => points.push({ layer: "paths", stream: stream.name, at, name: String(step), label: String(step), title: `step ${step}`, line: stream.name }));
    stream.inputs.forEach(({ at, name }) => points.push({ layer: "inputs", stream: stream.name, at, name, label: shownToken(name), title: `token ${shownToken(name)}` }));
    (stream.residuals ?? []).forEach(({ at, name, step }) => points.push({ layer: "residuals", stream: stream.name, at, name, title: `residual of ${shownToken(name)} at step ${step}` }));
  }
  for (const { stream, path } of geometry.null_input ?? []) {
    if (geometry.streams.some((one) => one.name === stream && one.frame === frame)) path.forEach((at, step) => points.push({ layer: "null", stream, at, name: String(step), title: `without input, step ${step}`, line: `null ${stream}` }));
  }
  const { arrows, words } = geometry.readout ?? {};
  const isHere = arrows && geometry.streams.some((one) => one.frame === frame && /enc/.test(one.name));
  if (isHere) {
    // Readouts have a length of their own; drawn as long as the states are far apart, they can be compared with them.
    const reach = Math.max(...points.map(({ at }) => Math.hypot(...at.map((x, axis) => x - origin[axis]))), 1e-9);
    const longest = Math.max(...arrows.map((arrow) => Math.hypot(...arrow)), 1e-9);
    arrows.slice(0, 64).forEach((arrow, place) => points.push({ layer: "readouts", stream: "readout", at: arrow.map((x, axis) => origin[axis] + (0.8 * x * reach) / longest), name: words[place], label: shownToken(words[place]), title: `readout of ${shownToken(words[place])}` }));
  }
  return points;
}
