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
  causal: "Networks were run with something changed",
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
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [420, 210, 46, 38, 12, 12];

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

/** A number beside an axis, without zeros at its end. */
function tick(value) {
  return shortly(value).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
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
  const items = figure.series.length < 2 ? [] : figure.series.map((series, place) => [hue(place), series.name]);
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
  return [["series", isBars ? "label" : x, y], ...series.flatMap(({ name, points }) => points.map(([at, value]) => [name, isBars ? labels[at] : at, value]))];
}

function legend(items) {
  if (!items.length) return null;
  return el("ul", { class: "legend" }, items.map(([colour, text]) => el("li", {}, el("span", { class: "swatch", style: { background: colour } }), text)));
}

function hue(place) {
  const all = [...colours().parts, ...colours().streams];
  return all[place % all.length];
}

/** Bars, lines, points or a matrix, as SVG. */
function draw(figure) {
  const root = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "chart", role: "img", "aria-label": figure.caption });
  if (figure.kind === "matrix") matrix(root, figure);
  else chart(root, figure);
  return root;
}

function chart(root, figure) {
  const points = figure.series.flatMap((series) => series.points).filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y));
  if (!points.length) return;
  const isBars = figure.kind === "bars";
  const [low, high] = range(points.map(([, y]) => y), true);
  const [first, last] = isBars ? [-0.5, figure.labels.length - 0.5] : range(points.map(([x]) => x), false);
  const x = (value) => LEFT + ((WIDTH - LEFT - RIGHT) * (value - first)) / (last - first);
  const y = (value) => HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - TOP) * (value - low)) / (high - low);
  axes(root, figure, { low, high, first, last, x, y, isBars });
  const each = 0.8 / figure.series.length;
  figure.series.forEach((series, place) => {
    const known = series.points.filter(([a, b]) => Number.isFinite(a) && Number.isFinite(b));
    const fill = hue(place);
    if (isBars) {
      for (const [label, value] of known) {
        const left = x(label - 0.4 + place * each);
        root.append(svg("rect", { x: left, width: Math.max(1, x(label - 0.4 + (place + 1) * each) - left - 1), y: Math.min(y(value), y(0)), height: Math.abs(y(value) - y(0)), fill },
          svg("title", {}, `${series.name} ${figure.labels[label]}: ${shortly(value)}`)));
      }
    } else if (figure.kind === "points") {
      for (const [a, b] of known) root.append(svg("circle", { cx: x(a), cy: y(b), r: 4, fill, "fill-opacity": 0.75 }, svg("title", {}, `${series.name}: ${shortly(a)}, ${shortly(b)}`)));
    } else {
      root.append(svg("path", { d: known.map(([a, b], step) => `${step ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join(""), fill: "none", stroke: fill, "stroke-width": 2 }));
    }
  });
}

/** From the least to the largest, with zero in it where asked for, and never empty. */
function range(values, withZero) {
  const low = Math.min(...values, ...(withZero ? [0] : []));
  const high = Math.max(...values, ...(withZero ? [0] : []));
  return high > low ? [low, high] : [low - 0.5, high + 0.5];
}

function axes(root, figure, { low, high, first, last, x, y, isBars }) {
  const { faint, muted } = colours();
  const text = (attributes, words) => root.append(svg("text", { fill: muted, "font-size": 11, ...attributes }, words));
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    const value = low + part * (high - low);
    root.append(svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value), stroke: faint }));
    text({ x: LEFT - 5, y: y(value) + 4, "text-anchor": "end" }, tick(value));
  }
  if (isBars) {
    const every = Math.ceil(figure.labels.length / 8);
    figure.labels.forEach((label, place) => {
      if (place % every === 0) text({ x: x(place), y: HEIGHT - BOTTOM + 14, "text-anchor": "middle" }, label.length > 14 ? `${label.slice(0, 13)}…` : label);
    });
  } else {
    for (const part of [0, 0.5, 1]) text({ x: x(first + part * (last - first)), y: HEIGHT - BOTTOM + 14, "text-anchor": part === 0 ? "start" : part === 1 ? "end" : "middle" }, tick(first + part * (last - first)));
  }
  text({ x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, isBars ? figure.y : figure.x);
  if (!isBars) text({ x: 11, y: (TOP + HEIGHT - BOTTOM) / 2, "text-anchor": "middle", transform: `rotate(-90 11 ${(TOP + HEIGHT - BOTTOM) / 2})` }, figure.y);
}

/** Attention: rows are decoder steps. */
function matrix(root, figure) {
  const nColumns = Math.max(1, ...figure.matrix.map((row) => row.length));
  const size = Math.min((WIDTH - LEFT - RIGHT) / nColumns, (HEIGHT - BOTTOM - TOP) / Math.max(1, figure.matrix.length));
  const { muted, weights } = colours();
  figure.matrix.forEach((row, step) => row.forEach((value, place) => {
    root.append(svg("rect", { x: LEFT + place * size, y: TOP + step * size, width: size + 0.3, height: size + 0.3, fill: weights.css[weightPlace(value)] }));
  }));
  root.append(svg("text", { x: LEFT + (nColumns * size) / 2, y: HEIGHT - 6, "text-anchor": "middle", "font-size": 11, fill: muted }, figure.x));
  const middle = TOP + (figure.matrix.length * size) / 2;
  root.append(svg("text", { x: 30, y: middle, "text-anchor": "middle", "font-size": 11, fill: muted, transform: `rotate(-90 30 ${middle})` }, figure.y));
}
