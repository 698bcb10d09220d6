// Compare: two heads, of one report or of two, side by side with their difference.

import { el, explain, fill, number, percent, select, table } from "./dom.js";
import { PARTS } from "./colours.js";
import { change, state } from "./state.js";
import { Heatmap, valueAt } from "./heatmap.js";
import { downloads, matrixPanel, matrixRows, panelsSvg } from "./download.js";
import { preparing } from "./live.js";
import { heading, kept, nothing, shareBar, siteName, sitePicker, totals, verdictChip } from "./parts.js";

/** Draws the view into `main`. */
export async function compareView(main, context) {
  const reports = context.source.reports();
  const clamp = (value, n) => Math.min(Math.max(0, Math.floor(Number(value)) || 0), Math.max(0, n - 1));
  const now = state();
  const a = context.id;
  const b = clamp(now.with ?? nextReport(reports, a), reports.length);
  const instead = (element) => context.isCurrent() && fill(main, heading("Compare"), pickers(context, reports, a, b), element);
  if (reports[b].ready === false) instead(preparing(context.source, b, "h2"));
  const first = await context.source.report(a);
  // One that cannot be shown leaves the choice of another.
  const second = await context.source.report(b).catch((error) => void instead(nothing(error.message)));
  if (!second) return;
  const [averagesA, averagesB] = await Promise.all([context.source.averages(a), context.source.averages(b)]);
  if (!context.isCurrent()) return;
  const [sitesA, sitesB] = [first.report.sites, second.report.sites];
  if (!sitesA.length || !sitesB.length) {
    fill(main, heading("Compare"), pickers(context, reports, a, b), nothing("One of these networks has no attention to compare."), overall(first, second));
    return;
  }
  const siteA = clamp(now.site, sitesA.length);
  const same = sitesB.findIndex((site) => ["kind", "layer", "head"].every((key) => site[key] === sitesA[siteA][key]));
  const siteB = clamp(now.other ?? (a === b ? (siteA + 1) % sitesB.length : Math.max(0, same)), sitesB.length);
  const [one, two] = [sitesA[siteA], sitesB[siteB]];
  const [averageA, averageB] = [averagesA[siteA], averagesB[siteB]];
  const difference = averageA && averageB ? less(averageA, averageB) : null;
  const panels = [
    { title: `A · ${first.name}`, site: one, picture: averageA && pictureOf(averageA, "weights", "average attention, A") },
    { title: `B · ${second.name}`, site: two, picture: averageB && pictureOf(averageB, "weights", "average attention, B") },
    { title: "B − A", site: null, picture: difference && pictureOf(difference, "signed", "B less A: blue where B looks more") },
  ];
  const maps = panels.map(({ title, picture }) => picture && new Heatmap({ label: `Average attention, ${title}`, most: 0.45, speak: (cell) => `step ${cell.row} and ${cell.column}, ${percent(valueAt(picture.matrix, cell), 1)}`,
    told: (cell) => maps.forEach((map) => { if (map && map.hover?.row !== cell?.row | map.hover?.column !== cell?.column) { map.hover = fitting(map, cell); map.request(); } }) }));
  maps.forEach((map) => map && context.onLeave(() => map.destroy()));
  fill(main,
    heading("Compare", difference && downloads(() => `difference-${first.name}-${second.name}`, {
      figure: () => panelsSvg(`${siteName(one)} of ${first.name} (A) and ${siteName(two)} of ${second.name} (B)`, panels.map(({ title, picture }) => matrixPanel({ ...picture, title })), 3),
      data: () => ({ a: { report: first.name, head: siteName(one), shares: one.shares }, b: { report: second.name, head: siteName(two), shares: two.shares }, averages: { a: averageA, b: averageB }, difference }), rows: () => matrixRows(panels[2].picture) })),
    pickers(context, reports, a, b, el("span", { class: "pair" }, sitePicker(sitesA, siteA, (site) => change({ site }), "Head of A")), el("span", { class: "pair" }, sitePicker(sitesB, siteB, (other) => change({ other }), "Head of B"))),
    reports.length === 1 && el("p", { class: "muted" }, "This page holds one report, so its heads are compared with each other. For two models: crosslens report runs/a runs/b -o both.html"),
    el("div", { class: "compare" }, panels.map(({ title, site, picture }, place) => el("section", { class: "card" },
      el("h2", {}, title),
      site && el("p", {}, verdictChip(site), " ", el("span", { class: "muted" }, siteName(site))),
      site && totals(site) && el("p", {}, shareBar(totals(site))),
      picture ? maps[place].element : el("p", { class: "muted" }, "There is no average attention here.")))),
    el("div", { class: "compare" }, sharesTable(one, two), overall(first, second)),
    atlasTable(first, second),
    explain("What am I looking at?", el("p", {}, "Average attention is the mean at each pair of steps over the sentences that have both: what is the same whatever the sentence. Rows need not add up to 100 %, since other sentences stand behind each cell. Where the difference is blue, B looks more than A; where orange, less. Shares say what makes the scores; “kept” how often that part alone looks at the same token.")));
  maps.forEach((map, place) => map?.show(panels[place].picture));
}

/** The next report that is there to be compared with; the next one of all where there is none yet. */
function nextReport(reports, a) {
  const others = reports.map((_, step) => (a + 1 + step) % reports.length);
  return others.find((id) => id !== a && reports[id].ready !== false) ?? others[0];
}

function fitting(map, cell) {
  const { nRows, nColumns } = map.data?.matrix ?? { nRows: 0, nColumns: 0 };
  return cell && cell.row < nRows && cell.column < nColumns ? cell : null;
}

function pickers(context, reports, a, b, ...rest) {
  const options = reports.map(({ id, name }) => [id, name]);
  return el("div", { class: "bar" },
    el("label", {}, "A ", select("Report A", options, a, (id) => change({ report: id, site: null }))), rest[0],
    el("label", {}, "B ", select("Report B", options, b, (id) => change({ with: id, other: null }))), rest[1]);
}

/** The second less the first; where one ends, it has no weight. */
function less(a, b) {
  const [nRows, nColumns] = [Math.max(a.nRows, b.nRows), Math.max(a.nColumns, b.nColumns)];
  const at = (matrix, row, column) => (row < matrix.nRows && column < matrix.nColumns ? matrix.values[row * matrix.nColumns + column] : 0);
  const values = new Float32Array(nRows * nColumns);
  for (let row = 0; row < nRows; row += 1) for (let column = 0; column < nColumns; column += 1) values[row * nColumns + column] = at(b, row, column) - at(a, row, column);
  return { values, nRows, nColumns };
}

function pictureOf(matrix, kind, caption) {
  const line = (n) => Array.from({ length: n }, (_, step) => ({ text: String(step) }));
  return { matrix, rows: line(matrix.nRows), columns: line(matrix.nColumns), kind, isShare: true, largest: 1, threshold: 0, caption };
}

/** The second less the first in words; a dash where one of them is not known. */
function signed(one, two, text) {
  const [a, b] = [one ?? NaN, two ?? NaN];
  return Number.isNaN(b - a) ? "–" : `${b > a ? "+" : ""}${text(b - a)}`;
}

function sharesTable(one, two) {
  const [a, b] = [totals(one), totals(two)];
  const rows = PARTS.flatMap(({ name }, part) => [
    [`share of ${name}`, percent(a?.[part]), percent(b?.[part]), signed(a?.[part], b?.[part], percent)],
    [`same token, rebuilt from ${name} alone`, percent(kept(one, part)), percent(kept(two, part)), signed(kept(one, part), kept(two, part), percent)],
  ]);
  return el("section", { class: "card table-scroll" }, table("What drives the two heads", ["", "A", "B", "B − A"], rows));
}

function overall(first, second) {
  const [a, b] = [first.report.task, second.report.task];
  const row = (name, key, text) => [name, text(a[key]), text(b[key]), signed(a[key], b[key], text)];
  const digits = (value) => number(value, 3);
  return el("section", { class: "card table-scroll" }, table("How well the two do", ["", "A", "B", "B − A"], [
    row("words right", "word_accuracy", (value) => percent(value, 1)), row("sentences right", "phrase_accuracy", (value) => percent(value, 1)), row("loss, nats", "loss", digits),
    ["sentences explained", first.report.corpus.pairs, second.report.corpus.pairs, ""], ["model", first.report.model.description, second.report.model.description, ""]]));
}

/** Heads that both have, those that changed most first. */
function atlasTable(first, second) {
  if (first.id === second.id || first.report.sites.length < 2) return null;
  const pairs = first.report.sites.flatMap((a) => {
    const b = second.report.sites.find((site) => ["kind", "layer", "head"].every((key) => site[key] === a[key]));
    const [sharesA, sharesB] = [totals(a), b && totals(b)];
    return sharesA && sharesB ? [{ a, b, sharesA, sharesB, moved: Math.max(...sharesA.map((share, part) => Math.abs(sharesB[part] - share))) }] : [];
  });
  pairs.sort((x, y) => y.moved - x.moved);
  return explain(`Which heads changed: ${pairs.length} in both`, el("div", { class: "table-scroll" }, table("Heads by how much their shares differ", ["Head", "A", "B", ...PARTS.map(({ name }) => `${name}, B − A`)],
    pairs.slice(0, 200).map(({ a, b, sharesA, sharesB }) => [siteName(a), a.verdict.label, b.verdict.label, ...sharesA.map((share, part) => signed(share, sharesB[part], percent))]))));
}
