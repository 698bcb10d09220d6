// Training: how loss and accuracy went, and how attention formed from checkpoint to checkpoint.

import { el, explain, fill, number, percent, slider, svg, table } from "./dom.js";
import { PARTS, colours } from "./colours.js";
import { change, state, stateNumber } from "./state.js";
import { Heatmap } from "./heatmap.js";
import { downloads, elementPanel, matrixPanel, panelsSvg } from "./download.js";
import { heading, nothing, partItems, partLegend, siteName, sitePicker, totalsOf } from "./parts.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [560, 230, 48, 30, 14, 14];

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
  const readout = el("p", { class: "readout", id: "scrubbed", role: "status", "aria-live": "polite" });
  const heat = points.some((point) => point.sites[site]?.attention) ? new Heatmap({ label: "Average attention at this checkpoint", told: () => {}, speak: (cell) => `step ${cell.row} looks at step ${cell.column}`, most: 0.5 }) : null;
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
    fill(readout, el("strong", {}, `After ${steps[place]} updates: `), `loss ${number(point.loss, 3)}, ${percent(point.word_accuracy, 1)} of words and ${percent(point.phrase_accuracy, 1)} of sentences right`,
      all && `; scores: ${all.map((share, part) => `${PARTS[part].name} ${percent(share)}`).join(", ")}`, head?.verdict && `; ${head.verdict}`, ".");
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
    ...charts.map((chart) => elementPanel(chart.element, chart.title, chart.items)),
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

/** Axes, a line that marks a step, and a scale for steps. */
function frame(points, ticks, place) {
  const last = Math.max(1, ...points.map((point) => point.step));
  const x = (step) => LEFT + ((WIDTH - LEFT - RIGHT) * step) / last;
  const root = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "chart" });
  const line = svg("line", { y1: TOP, y2: HEIGHT - BOTTOM, class: "marker", stroke: colours().ink });
  for (const [value, text] of ticks) {
    root.append(svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: place(value), y2: place(value), stroke: colours().faint }));
    root.append(svg("text", { x: LEFT - 6, y: place(value) + 4, "text-anchor": "end", fill: colours().muted, "font-size": 11 }, text));
  }
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    root.append(svg("text", { x: x(share * last), y: HEIGHT - 10, "text-anchor": share === 0 ? "start" : share === 1 ? "end" : "middle", fill: colours().muted, "font-size": 11 }, Math.round(share * last).toLocaleString("en")));
  }
  return { root, x, line, mark: (step) => { line.setAttribute("x1", x(step)); line.setAttribute("x2", x(step)); } };
}

function lineChart(title, points, series, { isLog = false, most, isShare = false }) {
  const values = points.flatMap((point) => series.map(([key]) => point[key])).filter((value) => Number.isFinite(value));
  const low = Math.max(1e-5, Math.min(...values.filter((value) => value > 0), 1e9));
  const high = most ?? Math.max(...values, low * 1.01);
  const isLogged = isLog && high / low > 20;
  const scale = isLogged ? (value) => (Math.log(Math.max(value, low)) - Math.log(low)) / (Math.log(high) - Math.log(low)) : (value) => value / high;
  const y = (value) => HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * Math.min(1, Math.max(0, scale(value)));
  const ticks = isLogged ? powers(low, high) : [0, 0.25, 0.5, 0.75, 1].map((part) => [part * high, isShare ? percent(part * high) : number(part * high, high < 1 ? 2 : 1)]);
  const { root, x, line, mark } = frame(points, ticks, y);
  const used = series.filter(([key]) => points.some((point) => Number.isFinite(point[key])));
  const paint = [colours().parts[0], colours().parts[1]];
  used.forEach(([key], place) => {
    const path = points.filter((point) => Number.isFinite(point[key])).map((point, number_) => `${number_ ? "L" : "M"}${x(point.step).toFixed(1)} ${y(point[key]).toFixed(1)}`).join("");
    root.append(svg("path", { d: path, fill: "none", stroke: paint[place], "stroke-width": 2 }));
  });
  root.append(line);
  root.setAttribute("role", "img");
  root.setAttribute("aria-label", `${title} over updates; the table below has the numbers`);
  const items = used.map(([, text], place) => [paint[place], text]);
  const legend = el("ul", { class: "legend" }, items.map(([colour, text]) => el("li", {}, el("span", { class: "swatch", style: { background: colour } }), text)));
  return { title, element: root, legend, items, mark };
}

function powers(low, high) {
  const ticks = [];
  for (let power = Math.ceil(Math.log10(low)); power <= Math.floor(Math.log10(high)); power += 1) ticks.push([10 ** power, power < 0 ? (10 ** power).toFixed(-power) : String(10 ** power)]);
  return ticks;
}

/** Shares of position, token and the rest as bands. What lies below zero or above one is cut. */
function shareChart(title, points, shares) {
  const y = (value) => HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * Math.min(1, Math.max(0, value));
  const { root, x, line, mark } = frame(points, [0, 0.25, 0.5, 0.75, 1].map((part) => [part, percent(part)]), y);
  const known = points.flatMap((point, place) => (shares[place] ? [{ step: point.step, totals: totalsOf(shares[place]).map((share) => Math.max(0, share)) }] : []));
  const stacked = known.map(({ step, totals }) => {
    const sum = totals.reduce((all, share) => all + share, 0) || 1;
    return { step, edges: [0, totals[0] / sum, (totals[0] + totals[1]) / sum, 1] };
  });
  PARTS.forEach((_, part) => {
    const lower = stacked.map(({ step, edges }) => `${x(step).toFixed(1)} ${y(edges[part]).toFixed(1)}`);
    const upper = stacked.map(({ step, edges }) => `${x(step).toFixed(1)} ${y(edges[part + 1]).toFixed(1)}`).reverse();
    root.append(svg("path", { d: `M${[...lower, ...upper].join("L")}Z`, fill: colours().parts[part], opacity: 0.85 }));
  });
  root.append(line);
  root.setAttribute("role", "img");
  root.setAttribute("aria-label", `${title} by checkpoint`);
  return { title, element: root, legend: partLegend(), items: partItems(), mark };
}
