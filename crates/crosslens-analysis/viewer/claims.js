// Claims: what was tested, what came out, and a figure for each.

import { choice, el, explain, fill, number, percent, svg, table } from "./dom.js";
import { colours, weightPlace } from "./colours.js";
import { change, state } from "./state.js";
import { downloads, elementPanel, panelsSvg, rampPanel } from "./download.js";
import { heading } from "./parts.js";

const ORIGINS = {
  paper: "as the paper says",
  restated: "restated: as the paper says it, it does not hold or proves nothing",
  new: "not in the paper",
  untested: "not tested here",
};
const PROOFS = {
  causal: "Networks were run with something changed, the decoder reading what it writes itself",
  method: "No network was changed, since it is about how things are measured",
  states: "No network was changed, since it is about what states are like",
};
const ROLES = {
  judged: "judged",
  control: "control",
  replaced: "missed the gate, replaced",
  missed: "missed the gate, proves nothing",
};
const FILTERS = [["", "all"], ["yes", "holds"], ["no", "does not hold"]];
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [420, 220, 52, 40, 12, 14];
/** Where both axes measure the same, the area is as high as its points need, within these. */
const [LEAST_HEIGHT, MOST_HEIGHT] = [110, 290];
/** How much of it they take. */
const FILLED = 0.86;
/** Ticks of an axis, about. */
const N_TICKS = 5;
/** Width of a letter over its size, about. */
const LETTER = 0.56;
const SMALL = 10;

/** Draws the view into `main`. */
export async function claimsView(main, context) {
  const all = await context.source.claims();
  if (!context.isCurrent()) return;
  const wanted = state().holds ?? "";
  const shown = all.claims.filter((claim) => !wanted || claim.holds === (wanted === "yes"));
  const rows = () => [["id", "origin", "value", "spread", "bound", "floor", "holds", "claim"],
    ...all.claims.map((claim) => [claim.id, claim.origin, claim.value ?? "", claim.spread, claim.bound ?? "", claim.floor ?? "", claim.holds, claim.claim])];
  fill(main,
    heading("Claims", downloads(() => "claims", { data: () => all, rows })),
    el("p", { class: "lead" }, el("strong", { id: "held" }, `${all.held} of ${all.of} claims hold`), all.quick ? ", tested on fewer and shorter sentences." : ", each on every seed.",
      " A claim holds only if its networks do their task and every number it asks for comes out. Each says whether networks were also run with something changed."),
    el("div", { class: "bar" }, choice("Which claims", FILTERS, wanted, (value) => change({ holds: value || null }))),
    el("div", { class: "charts claims" }, shown.map((claim) => card(claim, all.networks))),
    networks(all),
    explain("What am I looking at?", el("p", {}, "Every claim is one number from networks trained for it, with the floor it has to reach. Mean and spread are over seeds; networks that did not learn their task are listed and replaced at most twice. Claims that failed stay here with their numbers.")));
}

function card(claim, networks) {
  const paint = colours();
  const verdict = claim.origin === "untested" ? "not tested" : claim.holds ? "holds" : "does not hold";
  const chip = claim.origin === "untested" ? paint.muted : claim.holds ? paint.parts[0] : paint.parts[1];
  return el("article", { class: "card", "aria-label": claim.id, "data-claim": claim.id },
    el("h2", {}, claim.claim),
    el("p", {}, el("span", { class: "chip", style: { "--chip": chip } }, verdict), " ", result(claim)),
    unlearnt(claim, networks),
    el("p", { class: "muted" }, el("code", {}, claim.id), ` · ${ORIGINS[claim.origin] ?? claim.origin}`, claim.remark && `: ${claim.remark}`),
    proof(claim),
    claim.figure && illustration(claim),
    claim.seeds.length > 0 && el("details", { class: "explain" }, el("summary", {}, "Every number"), el("div", { class: "table-scroll" }, checks(claim))));
}

/** The number a claim is known by, in a sentence. */
function result(claim) {
  if (claim.value === null) return "";
  const spread = claim.seeds.length > 1 ? ` ± ${shortly(claim.spread)}` : "";
  return `${claim.what}: ${shortly(claim.value)}${spread}; ${claim.bound === "at-most" ? "at most" : "at least"} ${exactly(claim.floor)} asked for`;
}

/** By seed, the networks that should do their task and do not: then no number counts. */
function unlearnt(claim, networks) {
  const about = (id) => networks.find((network) => network.network === id)?.about ?? id;
  return claim.seeds.map((seed, place) => seed.missed.length > 0 &&
    el("p", { class: "missed" }, `Seed ${place + 1}: nothing is judged by networks that do not do their task: ${seed.missed.map(about).join("; ")}.`));
}

/** What a claim rests on once its networks do their task. */
function proof(claim) {
  if (!claim.proof) return null;
  return el("p", { class: "muted proof" }, `${PROOFS[claim.proof] ?? claim.proof}`, claim.proof_reason && `: ${claim.proof_reason}`, ".");
}

/** Three digits, or an exponent for what is tiny. */
function shortly(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && size < 1e-3) return value.toExponential(0).replace(/^-/, "−");
  return number(value, size >= 100 || (Number.isInteger(value) && size >= 2) ? 0 : 3);
}

/** What is asked for, with no digit lost. */
function exactly(value) {
  if (!Number.isFinite(value)) return "–";
  return value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential() : String(value);
}

function checks(claim) {
  const rows = claim.seeds.flatMap((seed, place) => seed.checks.map((check) => [
    `seed ${place + 1}: ${check.what}`, shortly(check.value), asked(check), check.holds ? "yes" : "no"]));
  return table(`Numbers of ${claim.id}`, ["What", "Found", "Asked for", "Holds"], rows);
}

function asked(check) {
  if (check.floor === null || check.floor === undefined) return "reported";
  return check.bound === "at-most" ? `≤ ${exactly(check.floor)}` : check.bound === "at-least" ? `≥ ${exactly(check.floor)}` : "reported";
}

/** What became of every network, with its temporal share and that of the weights it began with: shares alone prove nothing. */
function networks(all) {
  if (!all.networks.length) return null;
  const head = ["Network", "Seed", "Role", "Sentences right", "Temporal share", "Untrained"];
  const row = (network) => [network.about, network.seed, ROLES[network.role] ?? network.role, percent(network.phrase_accuracy, 1),
    shortly(network.shares?.centred), shortly(network.shares?.untrained_centred)];
  const controls = all.networks.filter((network) => network.role !== "judged");
  const list = (id, caption, those) => el("div", { class: "table-scroll" }, table(caption, head, those.map(row), { id }));
  return el("section", { class: "card networks" }, el("h2", {}, "Networks"),
    el("p", {}, untrained(all.networks), " The temporal share is the centred one of the temporal × temporal term, of the lowest head; – without attention and for additive scores."),
    controls.length > 0 && list("controls", "Controls: networks that missed the gate, or need not do their task", controls),
    el("details", { class: "explain" }, el("summary", {}, `All ${all.networks.length} networks`), list("networks", "Every network that was trained, beside the weights it began with", all.networks)));
}

/** What untrained weights come to, in a sentence. */
function untrained(networks) {
  const shares = networks.map((network) => network.shares?.untrained_centred).filter(Number.isFinite);
  const range = shares.length ? ` (${shortly(Math.min(...shares))} to ${shortly(Math.max(...shares))})` : "";
  return `Shares alone prove nothing: networks that did not learn have temporal shares too, and so have untrained weights${range}. So claims are judged only by networks that do their task.`;
}

/** A claim's figure with its legend and caption, to be taken along with its numbers. */
function illustration({ id, figure }) {
  const drawn = draw(figure);
  const items = figure.series.length < 2 ? [] : figure.series.map((series, place) => [look(place).colour, series.name, mark(figure.kind, place)]);
  const panels = () => [elementPanel(drawn, "", items),
    ...(figure.kind === "matrix" ? [rampPanel({ kind: "weights", largest: 1, caption: "share of attention" })] : [])];
  const buttons = downloads(() => `claim-${id}`, {
    figure: () => panelsSvg(`${id}: ${figure.caption}`, panels()), data: () => ({ claim: id, ...figure }), rows: () => rowsOf(figure),
  }, `Downloads of the figure of ${id}`);
  return el("figure", {}, drawn, legend(items), el("figcaption", { class: "muted" }, figure.caption), buttons);
}

/** The numbers of a figure as a table. */
function rowsOf({ kind, labels, series, matrix, x, y }) {
  if (kind === "matrix") {
    const nColumns = Math.max(0, ...matrix.map((row) => row.length));
    return [[`${y} by ${x}`, ...Array(nColumns).keys()], ...matrix.map((row, step) => [step, ...row])];
  }
  const isBars = kind === "bars";
  const isNamed = series.some(({ names }) => names?.length);
  return [["series", ...(isNamed ? ["name"] : []), isBars ? "label" : x, y],
    ...series.flatMap(({ name, points, names }) => points.map(([at, value], place) => [name, ...(isNamed ? [names[place]] : []), isBars ? labels[at] : at, value]))];
}

function legend(items) {
  if (!items.length) return null;
  return el("ul", { class: "legend" }, items.map(([, text, sign]) => el("li", {}, svg("svg", { width: 24, height: 12, "aria-hidden": "true" }, sign.cloneNode(true)), text)));
}

/** How a series looks: where colours are used up, lines are dashed, marks have another shape and bars are light. */
function look(place) {
  const all = [...colours().parts, ...colours().streams];
  const turn = Math.floor(place / all.length) % 3;
  return { colour: all[place % all.length], dash: [null, "7 4", "2 3"][turn], shape: ["circle", "square", "triangle"][turn], opacity: [1, 0.55, 0.3][turn] };
}

/** A series in the legend. */
function mark(kind, place) {
  const { colour, dash, shape, opacity } = look(place);
  if (kind === "bars") return svg("rect", { x: 5, y: 0, width: 12, height: 12, fill: colour, "fill-opacity": opacity, stroke: colour });
  if (kind === "points") return point(shape, 12, 6, 4.5, colour);
  return svg("line", { x1: 0, x2: 24, y1: 6, y2: 6, stroke: colour, "stroke-width": 2, "stroke-dasharray": dash });
}

function point(shape, x, y, size, colour, ...inside) {
  const paint = { fill: colour, "fill-opacity": 0.8 };
  if (shape === "circle") return svg("circle", { cx: x, cy: y, r: size, ...paint }, inside);
  if (shape === "square") return svg("rect", { x: x - size, y: y - size, width: 2 * size, height: 2 * size, ...paint }, inside);
  return svg("polygon", { points: `${x},${y - size} ${x + size},${y + size} ${x - size},${y + size}`, ...paint }, inside);
}

/** Bars, lines, points or a matrix, as SVG. */
function draw(figure) {
  const isSlanted = figure.kind === "bars" && figure.labels.some((label) => label.length * SMALL * LETTER > (WIDTH - LEFT - RIGHT) / figure.labels.length - 6);
  const longest = Math.max(0, ...figure.labels.map((label) => label.length));
  const bottom = (isSlanted ? 14 + Math.sin(Math.PI / 5) * longest * SMALL * LETTER : BOTTOM - (figure.x ? 0 : 14)) + (isSlanted && figure.x ? 14 : 0);
  const height = bottom + (figure.equal_axes ? TOP + equalHeight(figure) : HEIGHT - BOTTOM);
  const root = svg("svg", { viewBox: `0 0 ${WIDTH} ${height.toFixed(0)}`, class: "chart", role: "img", "aria-label": figure.caption });
  if (figure.kind === "matrix") matrix(root, figure);
  else chart(root, figure, { left: LEFT, right: WIDTH - RIGHT, top: TOP, bottom: height - bottom, height, isSlanted });
  return root;
}

const isKnown = ([x, y]) => Number.isFinite(x) && Number.isFinite(y);

function chart(root, figure, area) {
  const points = figure.series.flatMap((series) => series.points).filter(isKnown);
  if (!points.length) return;
  const isBars = figure.kind === "bars";
  const plot = figure.equal_axes ? equalPlot(points, area) : plotOf(points, area, figure);
  const { x, y } = plot;
  axes(root, figure, plot, area);
  const labels = new Labels(area);
  const each = 0.8 / figure.series.length;
  const marks = [];
  figure.series.forEach((series, place) => {
    const { colour, dash, shape, opacity } = look(place);
    const named = series.points.map((at, number_) => ({ at, name: series.names?.[number_] })).filter(({ at }) => isKnown(at));
    const says = ({ at: [a, b], name }) => svg("title", {}, `${series.name}${name ? ` ${name}` : ""}: ${shortly(a)}, ${shortly(b)}`);
    if (isBars) {
      for (const { at: [label, value] } of named) {
        const left = x(label - 0.4 + place * each);
        root.append(svg("rect", { x: left, width: Math.max(1, x(label - 0.4 + (place + 1) * each) - left - 1), y: Math.min(y(value), y(0)), height: Math.abs(y(value) - y(0)), fill: colour, "fill-opacity": opacity },
          svg("title", {}, `${series.name} ${figure.labels[label]}: ${shortly(value)}`)));
      }
    } else if (figure.kind === "points") {
      // Seen from the origin: whether two lie in one direction.
      if (figure.equal_axes) named.forEach(({ at: [a, b] }) => root.append(svg("line", { x1: x(0), y1: y(0), x2: x(a), y2: y(b), stroke: colour, "stroke-width": 1.2, "stroke-opacity": 0.6 })));
      named.forEach((one) => root.append(point(shape, x(one.at[0]), y(one.at[1]), 4, colour, says(one))));
      marks.push(...named);
    } else {
      root.append(svg("path", { d: named.map(({ at: [a, b] }, step) => `${step ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join(""), fill: "none", stroke: colour, "stroke-width": 2, "stroke-dasharray": dash }));
      if (series.names?.length) named.forEach((one) => root.append(point("circle", x(one.at[0]), y(one.at[1]), 2.5, colour, says(one))));
      if (series.names?.length) labels.takeLine(named.map(({ at: [a, b] }) => [x(a), y(b)]));
      marks.push(...named.filter((_, step) => step % 5 === 0 || step === named.length - 1));
    }
  });
  marks.forEach(({ at: [a, b] }) => labels.take(x(a), y(b)));
  for (const { at: [a, b], name } of marks) if (name) labels.put(root, x(a), y(b), name);
}

/** Names beside points: where there is room, or not at all. */
class Labels {
  constructor(area) {
    this.area = area;
    this.taken = [];
  }

  take(x, y) {
    this.taken.push([x - 4, y - 4, x + 4, y + 4]);
  }

  /** Points of a line and what lies half-way between them. */
  takeLine(points) {
    points.forEach(([x, y], place) => {
      this.take(x, y);
      if (place) this.take((x + points[place - 1][0]) / 2, (y + points[place - 1][1]) / 2);
    });
  }

  put(root, x, y, text) {
    const width = text.length * SMALL * LETTER;
    const places = [[x + 6, y + 3.5], [x - 6 - width, y + 3.5], [x - width / 2, y - 7], [x - width / 2, y + 15]];
    const box = ([left, base]) => [left, base - SMALL + 1, left + width, base + 2];
    const meets = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
    const isFree = (place) => {
      const [left, top, right, bottom] = box(place);
      const isInside = left >= this.area.left && right <= this.area.right && top >= this.area.top - 4 && bottom <= this.area.bottom;
      return isInside && !this.taken.some((other) => meets(box(place), other));
    };
    const free = places.find(isFree);
    if (!free) return;
    this.taken.push(box(free));
    root.append(svg("text", { x: free[0].toFixed(1), y: free[1].toFixed(1), "font-size": SMALL, fill: colours().ink }, text));
  }
}

/** The round number that cuts what lies between two numbers in about `N_TICKS` pieces. */
function roundStep(low, high) {
  const rough = (high - low) / N_TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((times) => times * power).find((times) => times >= rough * 0.999);
}

/** Multiples of `step` from `low` to `high`, and how many digits they have behind the point. */
function multiples(step, low, high) {
  const [from, to] = [Math.ceil(low / step - 1e-9), Math.floor(high / step + 1e-9)];
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return { digits, values: Array.from({ length: Math.max(0, to - from + 1) }, (_, place) => (from + place) * step) };
}

/** A number beside an axis. */
function tick(value, digits) {
  return digits > 3 ? shortly(value) : number(value === 0 ? 0 : value, digits);
}

/** y from a round number to a round number, with zero in it. */
function plotOf(points, { left, right, top, bottom }, { kind, labels }) {
  const [least, most] = range(points.map(([, y]) => y), true);
  const step = roundStep(least, most);
  const [low, high] = [Math.floor(least / step + 1e-9) * step, Math.ceil(most / step - 1e-9) * step];
  let [first, last] = kind === "bars" ? [-0.5, labels.length - 0.5] : range(points.map(([x]) => x), false);
  if (kind === "points") [first, last] = [first - 0.04 * (last - first), last + 0.04 * (last - first)];
  return { low, high, first, last, x: (value) => left + ((right - left) * (value - first)) / (last - first), y: (value) => bottom - ((bottom - top) * (value - low)) / (high - low) };
}

/** How high the area of a figure is that is wide enough for its points. */
function equalHeight(figure) {
  const points = figure.series.flatMap((series) => series.points).filter(isKnown);
  if (!points.length) return LEAST_HEIGHT;
  const [[first, last], [low, high]] = [0, 1].map((axis) => range(points.map((at) => at[axis]), true));
  return Math.min(MOST_HEIGHT, Math.max(LEAST_HEIGHT, ((WIDTH - LEFT - RIGHT) * (high - low)) / (last - first)));
}

/** One scale for both axes, the origin in it and in the middle what there is. */
function equalPlot(points, { left, right, top, bottom }) {
  const [[first, last], [low, high]] = [0, 1].map((axis) => range(points.map((at) => at[axis]), true));
  const scale = FILLED * Math.min((right - left) / (last - first), (bottom - top) / (high - low));
  const [middleX, middleY] = [(first + last) / 2, (low + high) / 2];
  const [halfX, halfY] = [(right - left) / 2 / scale, (bottom - top) / 2 / scale];
  return { first: middleX - halfX, last: middleX + halfX, low: middleY - halfY, high: middleY + halfY,
    x: (value) => (left + right) / 2 + scale * (value - middleX), y: (value) => (top + bottom) / 2 - scale * (value - middleY) };
}

/** From the least to the largest, with zero in it where asked for, and never empty. */
function range(values, withZero) {
  const low = Math.min(...values, ...(withZero ? [0] : []));
  const high = Math.max(...values, ...(withZero ? [0] : []));
  return high > low ? [low, high] : [low - 0.5, high + 0.5];
}

function axes(root, figure, { low, high, first, last, x, y }, { left, right, top, bottom, height, isSlanted }) {
  const { faint, muted } = colours();
  const isBars = figure.kind === "bars";
  const text = (attributes, words) => root.append(svg("text", { fill: muted, "font-size": 11, ...attributes }, words));
  const line = (x1, y1, x2, y2, stroke) => root.append(svg("line", { x1, y1, x2, y2, stroke }));
  const step = figure.equal_axes ? roundStep(first, last) : roundStep(low, high);
  const upward = multiples(step, low, high);
  for (const value of upward.values) {
    line(left, y(value), right, y(value), faint);
    text({ x: left - 6, y: y(value) + 4, "text-anchor": "end" }, tick(value, upward.digits));
  }
  if (isBars) {
    figure.labels.forEach((label, place) => {
      const [at, base] = [x(place), bottom + 13];
      text(isSlanted ? { x: at + 4, y: base, "text-anchor": "end", "font-size": SMALL, transform: `rotate(-36 ${at + 4} ${base})` } : { x: at, y: base, "text-anchor": "middle", "font-size": SMALL }, label);
    });
  } else {
    const { values, digits } = multiples(figure.equal_axes ? step : roundStep(first, last), first, last);
    for (const value of values) {
      if (figure.equal_axes) line(x(value), top, x(value), bottom, faint);
      else line(x(value), bottom, x(value), bottom + 3, muted);
      text({ x: x(value), y: bottom + 14, "text-anchor": "middle" }, tick(value, digits));
    }
  }
  if (low < 0 && high > 0) line(left, y(0), right, y(0), muted);
  if (figure.equal_axes && first < 0 && last > 0) line(x(0), top, x(0), bottom, muted);
  if (figure.x) text({ x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, figure.x);
  text({ x: 12, y: (top + bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(top + bottom) / 2})` }, figure.y);
}

/** Attention: rows are decoder steps. */
function matrix(root, figure) {
  const nColumns = Math.max(1, ...figure.matrix.map((row) => row.length));
  const nRows = Math.max(1, figure.matrix.length);
  const size = Math.min((WIDTH - LEFT - RIGHT) / nColumns, (HEIGHT - BOTTOM - TOP) / nRows);
  const { muted, weights } = colours();
  const text = (attributes, words) => root.append(svg("text", { fill: muted, "font-size": SMALL, ...attributes }, words));
  figure.matrix.forEach((row, step) => row.forEach((value, place) => {
    root.append(svg("rect", { x: LEFT + place * size, y: TOP + step * size, width: size + 0.3, height: size + 0.3, fill: weights.css[weightPlace(value)] }));
  }));
  const every = Math.ceil(14 / size);
  for (let place = 0; place < nColumns; place += every) text({ x: LEFT + (place + 0.5) * size, y: TOP + nRows * size + 12, "text-anchor": "middle" }, place);
  for (let step = 0; step < nRows; step += every) text({ x: LEFT - 5, y: TOP + (step + 0.5) * size + 3.5, "text-anchor": "end" }, step);
  const middle = TOP + (nRows * size) / 2;
  text({ x: LEFT + (nColumns * size) / 2, y: TOP + nRows * size + 28, "text-anchor": "middle", "font-size": 11 }, figure.x);
  text({ x: 22, y: middle, "text-anchor": "middle", "font-size": 11, transform: `rotate(-90 22 ${middle})` }, figure.y);
}
