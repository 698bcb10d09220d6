// Training: how loss and accuracy went, and how attention formed from checkpoint to checkpoint.

import { el, explain, fill, letter, number, percent, slider, svg, table } from "./dom.js";
import { PARTS, colours } from "./colours.js";
import { change, state, stateNumber } from "./state.js";
import { Heatmap, valueAt } from "./heatmap.js";
import { downloads, elementPanel, matrixPanel, panelsSvg } from "./download.js";
import { heading, nothing, partItems, partLegend, siteName, sitePicker, totalsOf } from "./parts.js";

/** Room for what is written around a chart, in letters of the page. */
const [LEFT, BOTTOM, TOP, RIGHT] = [3.4, 2.9, 0.9, 0.9];
/** Letters of a chart and the room a tick of the time axis needs, in letters of the page. */
const [SMALL, TICK] = [0.8, 3.4];
/** How wide a chart is until it is known how much room there is. */
const UNSEEN = 560;
/** Levels of a chart of shares. */
const QUARTERS = [0, 0.25, 0.5, 0.75, 1];
/** The label of a head of a model that was not run again: it judges nothing. */
const NO_VERDICT = "not rerun";

/** Draws the view into `main`. */
export function trainingView(main, context) {
  const { training, timeline, report } = context.entry;
  const points = timeline?.points ?? [];
  const curves = training?.length ? training : points;
  if (!curves.length) {
    fill(main, heading("Training"), nothing("Nothing is known about how this model was trained. A run trained here brings its curves along:", "crosslens train one-to-one --out runs/mine\ncrosslens report runs/mine -o report.html"));
    return;
  }
  const steps = points.length ? points.map((point) => point.step) : curves.map((point) => point.step);
  const at = state().step === undefined ? steps.length - 1 : stateNumber("step", steps.length - 1);
  const site = stateNumber("site", Math.max(0, report.sites.length - 1));
  const shares = points.map((point) => point.sites[site]?.shares ?? null);
  const charts = [
    lineChart("Loss, nats a word", curves, [["loss", "fresh sentences"], ["train_loss", "training batches"]], { isLog: true }),
    lineChart("Accuracy", curves, [["phrase_accuracy", "sentences right"], ["word_accuracy", "words right"]], { most: 1, isShare: true }),
  ];
  if (shares.some(Boolean)) charts.push(shareChart("What makes the scores", points, shares));
  charts.forEach((chart) => context.onLeave(() => chart.destroy()));
  const readout = el("p", { class: "readout", id: "scrubbed", role: "status", "aria-live": "polite" });
  const heat = points.some((point) => point.sites[site]?.attention) ? new Heatmap({ label: "Average attention at this checkpoint", told: () => {}, speak: (cell) => `step ${cell.row} looks at step ${cell.column}, ${percent(valueAt(heat.data.matrix, cell), 1)}`, most: 0.5 }) : null;
  if (heat) context.onLeave(() => heat.destroy());
  const scrub = slider("Checkpoint", { min: 0, max: steps.length - 1, step: 1, value: at, id: "scrubber", show: (place) => `update ${steps[place]}` }, (place) => {
    change({ step: place === steps.length - 1 ? null : place }, { isQuiet: true });
    move(place);
  });
  let timer = 0;
  const play = el("button", { type: "button", id: "play", onclick: () => (timer ? stop() : start()) }, "▶ play");
  const input = scrub.querySelector("input");
  const stop = () => { clearInterval(timer); timer = 0; play.textContent = "▶ play"; };
  const start = () => {
    play.textContent = "❚❚ stop";
    let place = Number(input.value) >= steps.length - 1 ? 0 : Number(input.value);
    timer = setInterval(() => {
      input.value = place;
      input.dispatchEvent(new Event("input"));
      place += 1;
      if (place >= steps.length) stop();
    }, Math.max(60, Math.min(500, 6000 / steps.length)));
  };
  context.onLeave(stop);
  const move = (place) => {
    charts.forEach((chart) => chart.mark(steps[place]));
    const point = points[place] ?? nearest(curves, steps[place]);
    const head = points[place]?.sites[site];
    const all = head?.shares ? totalsOf(head.shares) : null;
    fill(readout, el("strong", {}, `After ${steps[place]} updates: `), points[place] && `on the ${point.sentences ? `${point.sentences} ` : ""}recorded sentences `, `loss ${number(point.loss, 3)}, ${percent(point.word_accuracy, 1)} of words and ${percent(point.phrase_accuracy, 1)} of sentences right`,
      all && `; scores: ${all.map((share, part) => `${PARTS[part].name} ${percent(share)}`).join(", ")}`, head?.verdict && head.verdict !== NO_VERDICT && `; ${head.verdict}`, ".");
    const average = head?.attention;
    if (heat && average) {
      const [nRows, nColumns] = [average.length, average[0]?.length ?? 0];
      heat.lines ??= { rows: [], columns: [] };
      if (heat.lines.rows.length !== nRows || heat.lines.columns.length !== nColumns) {
        const line = (n) => Array.from({ length: n }, (_, step) => ({ text: `${step}` }));
        heat.lines = { rows: line(nRows), columns: line(nColumns) };
      }
      heat.show({ matrix: { values: Float32Array.from(average.flat()), nRows, nColumns }, ...heat.lines, kind: "weights", largest: 1, threshold: 0, caption: "average attention by step" });
    }
  };
  const figure = () => panelsSvg(`Training of ${context.entry.name}`, [
    ...charts.map((chart) => elementPanel(chart.drawing, chart.title, chart.items)),
    ...(heat?.data ? [matrixPanel({ ...heat.data, title: `Average attention after ${steps[Number(input.value)]} updates` })] : [])], 2);
  const keys = ["step", "loss", "train_loss", "word_accuracy", "phrase_accuracy"];
  fill(main,
    heading("Training", downloads(() => `training-${context.entry.name}`, {
      figure, data: () => ({ training, timeline }), rows: () => [keys, ...curves.map((point) => keys.map((key) => point[key] ?? ""))] })),
    el("p", { class: "lead" }, points.length ? "Move the slider to replay how attention formed." : "How loss and accuracy went; move the slider to read them off."),
    el("div", { class: "bar scrub" }, play, scrub, report.sites.length > 1 && points.length > 0 && sitePicker(report.sites, site, (chosen) => change({ site: chosen }))),
    readout,
    el("div", { class: "charts" }, charts.map((chart) => el("section", { class: "card" }, el("h2", {}, chart.title), chart.legend, chart.element)),
      heat && el("section", { class: "card" }, el("h2", {}, `Average attention · ${siteName(report.sites[site])}`), heat.element)),
    !points.length && el("p", { class: "muted" }, "Shares by checkpoint are shown here when the run recorded them while it trained."),
    explain("What am I looking at?", el("p", {}, "The loss is the mean surprise at the right word: ln of the number of words when the model guesses, 0 when it is sure and right. A sentence is right if every word of it is. The shares say what makes a row's scores differ; when they turn to one part while accuracy rises, the network has found how it wants to attend.")),
    el("details", { class: "explain" }, el("summary", {}, "The same as a table"), el("div", { class: "table-scroll" },
      table("Evaluations during training", ["Update", "Loss", "Training loss", "Words right", "Sentences right"], curves.map((point) => [point.step, number(point.loss, 4), number(point.train_loss, 4), percent(point.word_accuracy, 1), percent(point.phrase_accuracy, 1)])))));
  move(at);
}

function nearest(points, step) {
  return points.reduce((best, point) => (Math.abs(point.step - step) < Math.abs(best.step - step) ? point : best));
}

/** A chart over updates, as wide as there is room for it: `draw(area)` puts into an area what is shown. */
class Chart {
  constructor({ title, label, legend, items, last, draw }) {
    Object.assign(this, { title, label, legend, items, last, draw, step: 0, width: UNSEEN });
    this.element = el("div", {});
    this.make();
    this.observer = new ResizeObserver(() => this.layout());
    this.observer.observe(this.element);
  }

  destroy() {
    this.observer.disconnect();
  }

  layout() {
    const room = this.element.clientWidth;
    if (room < 20 || room === this.width) return;
    this.width = room;
    this.make();
  }

  make() {
    this.area = areaOf(this.width, this.last);
    this.drawing = svg("svg", { viewBox: `0 0 ${this.width} ${this.area.height}`, class: "chart", role: "img", "aria-label": this.label });
    this.line = svg("line", { y1: this.area.top, y2: this.area.bottom, class: "marker", stroke: colours().ink });
    timeAxis(this.drawing, this.area, this.last);
    this.draw(this.drawing, this.area);
    this.drawing.append(this.line);
    this.mark(this.step);
    fill(this.element, this.drawing);
  }

  /** Marks an update. */
  mark(step) {
    this.step = step;
    for (const end of ["x1", "x2"]) this.line.setAttribute(end, this.area.x(step));
  }
}

/** Where a chart of some width has its curves: `x(step)` and `y(share of its height)`. A unit is a pixel of the screen. */
function areaOf(width, last) {
  const em = letter();
  const height = Math.round(Math.max(13 * em, 0.41 * width));
  const [left, right, top, bottom] = [LEFT * em, width - RIGHT * em, TOP * em, height - BOTTOM * em];
  return { left, right, top, bottom, height, size: SMALL * em, nTicks: Math.max(2, Math.floor((right - left) / (TICK * em))), x: (step) => left + ((right - left) * step) / last, y: (share) => bottom - (bottom - top) * Math.min(1, Math.max(0, share)) };
}

/** The number of the last update. */
function lastOf(points) {
  return Math.max(1, ...points.map((point) => point.step));
}

/** Numbers from 0 to `most` that are round, at most `nTicks` steps of 1, 2, 2.5 or 5 times a power of ten apart. */
function roundTicks(most, nTicks) {
  const power = 10 ** Math.floor(Math.log10(most / nTicks));
  const step = [1, 2, 2.5, 5, 10].map((times) => times * power).find((size) => size * nTicks >= most * (1 - 1e-9)) ?? 10 * power;
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, place) => Number((place * step).toPrecision(12)));
}

/** Round numbers of updates and what they are. */
function timeAxis(root, { left, right, bottom, size, nTicks, x }, last) {
  const write = (at, line, anchor, text, properties = {}) => root.append(svg("text", { x: at, y: bottom + (0.4 + 1.25 * line) * size, "text-anchor": anchor, fill: colours().muted, "font-size": size, ...properties }, text));
  for (const step of roundTicks(last, nTicks).filter(Number.isInteger)) write(x(step), 1, step === 0 ? "start" : x(step) > right - 1.5 * size ? "end" : "middle", step.toLocaleString("en"), { class: "tick" });
  write((left + right) / 2, 2, "middle", "updates");
}

/** Lines across a chart with what they stand for; `ticks` is a list of `[share of the height, text]`. */
function levels(root, { left, right, size, y }, ticks) {
  for (const [share, text] of ticks) {
    root.append(svg("line", { x1: left, x2: right, y1: y(share), y2: y(share), stroke: colours().faint }));
    root.append(svg("text", { x: left - 0.5 * size, y: y(share) + 0.36 * size, "text-anchor": "end", fill: colours().muted, "font-size": size }, text));
  }
}

function lineChart(title, points, series, { isLog = false, most, isShare = false }) {
  const values = points.flatMap((point) => series.map(([key]) => point[key])).filter((value) => Number.isFinite(value));
  const low = Math.max(1e-5, Math.min(...values.filter((value) => value > 0), 1e9));
  const high = most ?? Math.max(...values, low * 1.01);
  const isLogged = isLog && high / low > 20;
  const scale = isLogged ? (value) => (Math.log(Math.max(value, low)) - Math.log(low)) / (Math.log(high) - Math.log(low)) : (value) => value / high;
  const ticks = isLogged ? powers(low, high) : isShare ? QUARTERS.map((part) => [part, percent(part)]) : roundTicks(high, 4).map((value) => [value, String(value)]);
  const used = series.filter(([key]) => points.some((point) => Number.isFinite(point[key])));
  const paint = [colours().parts[0], colours().parts[1]];
  const draw = (root, area) => {
    levels(root, area, ticks.map(([value, text]) => [scale(value), text]));
    used.forEach(([key], place) => {
      const path = points.filter((point) => Number.isFinite(point[key])).map((point, number_) => `${number_ ? "L" : "M"}${area.x(point.step).toFixed(1)} ${area.y(scale(point[key])).toFixed(1)}`).join("");
      root.append(svg("path", { d: path, fill: "none", stroke: paint[place], "stroke-width": area.size / 6 }));
    });
  };
  const items = used.map(([, text], place) => [paint[place], text]);
  const legend = el("ul", { class: "legend" }, items.map(([colour, text]) => el("li", {}, el("span", { class: "swatch", style: { background: colour } }), text)));
  return new Chart({ title, label: `${title} over updates; the table below has the numbers`, legend, items, last: lastOf(points), draw });
}

function powers(low, high) {
  const ticks = [];
  for (let power = Math.ceil(Math.log10(low)); power <= Math.floor(Math.log10(high)); power += 1) ticks.push([10 ** power, power < 0 ? (10 ** power).toFixed(-power) : String(10 ** power)]);
  return ticks;
}

/** Shares of position, token and the rest as bands. What lies below zero or above one is cut. */
function shareChart(title, points, shares) {
  const known = points.flatMap((point, place) => (shares[place] ? [{ step: point.step, totals: totalsOf(shares[place]).map((share) => Math.max(0, share)) }] : []));
  const stacked = known.map(({ step, totals }) => {
    const sum = totals.reduce((all, share) => all + share, 0) || 1;
    return { step, edges: [0, totals[0] / sum, (totals[0] + totals[1]) / sum, 1] };
  });
  const draw = (root, area) => {
    levels(root, area, QUARTERS.map((part) => [part, percent(part)]));
    PARTS.forEach((_, part) => {
      const edge = (side) => stacked.map(({ step, edges }) => `${area.x(step).toFixed(1)} ${area.y(edges[side]).toFixed(1)}`);
      root.append(svg("path", { d: `M${[...edge(part), ...edge(part + 1).reverse()].join("L")}Z`, fill: colours().parts[part], opacity: 0.85 }));
    });
  };
  return new Chart({ title, label: `${title} by checkpoint`, legend: partLegend(), items: partItems(), last: lastOf(points), draw });
}
