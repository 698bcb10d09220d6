// Atlas: every head at a glance, coloured by what drives it.

import { choice, el, explain, fill, percent, say, select, svg, table } from "./dom.js";
import { PARTS, colours } from "./colours.js";
import { change, hashOf, state } from "./state.js";
import { thumbnail } from "./heatmap.js";
import { largest } from "./attention.js";
import { downloads, elementPanel, panelsSvg } from "./download.js";
import { liveForm, liveOf } from "./live.js";
import { driver, heading, kept, kindName, partItems, partLegend, siteName, siteShort, totals, verdictChip } from "./parts.js";

const SIZE = 46;

const ORDERS = [
  ["place", "layer and head"],
  ["0", "share of position"],
  ["1", "share of token"],
  ["2", "share of the rest"],
  ["kept", "how much its driver keeps"],
];

/** Draws the view into `main`. */
export function atlasView(main, context) {
  const { report } = context.entry;
  const sites = report.sites.map((site, number) => ({ ...site, number, totals: totals(site), driver: driver(site) }));
  const now = state();
  const order = now.order ?? "place";
  const filter = now.filter ?? "all";
  const look = now.look ?? "driver";
  const isShown = (site) => filter === "all" || (filter.startsWith("part") ? site.driver === Number(filter.slice(4)) : site.kind === filter || site.verdict.label === filter);
  const shown = sites.filter(isShown);
  const value = (site) => (order === "kept" ? (site.driver === null ? -1 : kept(site, site.driver)) : site.totals?.[Number(order)] ?? -1);
  if (order !== "place") shown.sort((a, b) => value(b) - value(a));
  const kinds = [...new Set(sites.map((site) => site.kind))];
  const labels = [...new Set(sites.map((site) => site.verdict.label))].sort();
  const filters = [["all", `all ${sites.length} heads`], ...PARTS.map((part, place) => [`part${place}`, `driven by ${part.name}`]),
    ...(kinds.length > 1 ? kinds.map((kind) => [kind, kindName(kind)]) : []), ...labels.map((label) => [label, `verdict: ${label}`])];

  const pictures = el("div", { class: "atlas-kinds" });
  const rows = () => [["kind", "layer", "head", "verdict", "position", "token", "rest", "driver", "kept"], ...shown.map((site) =>
    [site.kind, site.layer, site.head, site.verdict.label, ...(site.totals ?? ["", "", ""]), site.driver === null ? "" : PARTS[site.driver].key, site.driver === null ? "" : kept(site, site.driver)])];
  fill(main,
    heading("Atlas", downloads(() => `atlas-${context.entry.name}`, {
      figure: () => panelsSvg(`Heads of ${context.entry.name}: colour and size by what drives them, rings by what that keeps`, [elementPanel(atlasFigure(shown, order), "", partItems())]), data: () => shown.map(({ kind, layer, head, verdict, shares }) => ({ kind, layer, head, verdict, shares })), rows,
    })),
    el("p", { class: "lead" }, "Each circle is one attention head. Its colour says what makes it look where it looks, its disc how much of the scores that part makes; the ring says how often that part alone would look at the same place. Choose one to open it."),
    liveOf(context) && liveForm(context, liveOf(context)),
    el("div", { class: "bar" }, partLegend(),
      el("label", {}, "Sort by ", select("Sort by", ORDERS, order, (chosen) => change({ order: chosen === "place" ? null : chosen }))),
      el("label", {}, "Show ", select("Show", filters, filter, (chosen) => change({ filter: chosen === "all" ? null : chosen }))),
      choice("Look of a head", [["driver", "what drives it"], ["average", "average attention"]], look, (chosen) => change({ look: chosen === "driver" ? null : chosen }))),
    pictures,
    explain("What am I looking at?",
      el("p", {}, "Every attention score is a sum of terms: some depend only on where the two tokens stand (position), some only on which tokens they are (token), some on everything else (the rest, mixtures included). The colour is the part with the largest share of what makes a row's scores differ from each other. A full ring means: attention rebuilt from that part alone looks at the same token at every step."),
      el("p", {}, "A share is not yet a proof. Where the model could be run again with the rebuilt attention, the verdict says so; open a head to read it.")),
    el("details", { class: "explain" }, el("summary", {}, "The same as a table"), el("div", { class: "table-scroll" },
      table("Heads and what drives them", ["Head", "Verdict", "Position", "Token", "Rest", "Kept by its driver"], shown.map((site) => [
        el("a", { href: hashOf({ view: "head", report: context.id, site: site.number }) }, siteName(site)), verdictChip(site),
        ...(site.totals ?? [null, null, null]).map((share) => percent(share)), site.driver === null ? "–" : percent(kept(site, site.driver))])))));

  const groups = order === "place" ? kinds.map((kind) => [kindName(kind), shown.filter((site) => site.kind === kind)]) : [["sorted", shown]];
  for (const [name, group] of groups) {
    if (group.length) pictures.append(groupOf(name, group, order, context));
  }
  if (shown.length > 3) pictures.append(lookFirst(shown, context));
  if (!shown.length) pictures.append(el("p", {}, "No head is like that."));
  if (look === "average") drawAverages(pictures, context);
}

function groupOf(name, group, order, context) {
  const isGrid = order === "place";
  const layers = [...new Set(group.map((site) => site.layer))].sort((a, b) => a - b);
  const nHeads = Math.max(...group.map((site) => site.head)) + 1;
  const buttons = group.map((site) => cellOf(site, context));
  const grid = el("div", { class: isGrid ? "atlas-grid" : "atlas-flow", role: "group", "aria-label": `${name}: heads`, style: isGrid ? { "--heads": nHeads } : {} });
  if (isGrid) {
    grid.append(el("span", { class: "corner", "aria-hidden": "true" }, "layer"), ...Array.from({ length: nHeads }, (_, head) => el("span", { class: "atlas-head", "aria-hidden": "true" }, head === 0 ? "head 0" : head)));
    for (const layer of layers) {
      grid.append(el("span", { class: "atlas-layer", "aria-hidden": "true" }, layer));
      for (let head = 0; head < nHeads; head += 1) {
        const place = group.findIndex((site) => site.layer === layer && site.head === head);
        grid.append(place < 0 ? el("span", {}) : buttons[place]);
      }
    }
  } else grid.append(...buttons.map((button, place) => el("div", { class: "atlas-named" }, button, el("span", { "aria-hidden": "true" }, siteShort(group[place])))));
  buttons.forEach((button, place) => { button.tabIndex = place === 0 ? 0 : -1; });
  grid.addEventListener("keydown", (event) => arrows(event, buttons, isGrid ? group : null));
  return el("section", { class: "card" }, el("h2", {}, isGrid ? name : "Heads in order"), el("div", { class: "atlas-scroll" }, grid));
}

/** Which of many heads to open: for each part those it drives most clearly, share times what it keeps. */
function lookFirst(sites, context) {
  const clear = (site, part) => Math.max(0, site.totals[part]) * (kept(site, part) ?? 0);
  return el("section", { class: "card first" }, el("h2", {}, "Where to look first"),
    el("p", { class: "muted small" }, "The heads that one part drives most clearly: by its share of the scores, and by how often it alone looks at the same token."),
    PARTS.map(({ name, title }, part) => {
      const driven = sites.filter((site) => site.driver === part).sort((a, b) => clear(b, part) - clear(a, part));
      return [el("h3", { title }, el("span", { class: "swatch", style: { background: colours().parts[part] } }), `${name}: ${driven.length} of ${sites.length}`),
        driven.length > 0 && el("ol", {}, driven.slice(0, 3).map((site) => el("li", {},
          el("a", { href: hashOf({ view: "head", report: context.id, site: site.number }) }, siteName(site)),
          el("span", { class: "muted small" }, ` ${percent(site.totals[part])} of the scores, keeps ${percent(kept(site, part))}`))))];
    }));
}

/** Arrow keys go from head to head, in a grid of layers up and down to the nearest head shown; Tab leaves the heads. */
function arrows(event, buttons, grid) {
  const at = buttons.indexOf(document.activeElement);
  const last = buttons.length - 1;
  const moves = { ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: grid ? across(grid, at, 1) : at + 1, ArrowUp: grid ? across(grid, at, -1) : at - 1, Home: 0, End: last };
  if (at < 0 || !(event.key in moves)) return;
  const next = Math.min(last, Math.max(0, moves[event.key]));
  buttons[at].tabIndex = -1;
  buttons[next].tabIndex = 0;
  buttons[next].focus();
  event.preventDefault();
}

/** The place, in the next layer that has any, of the head nearest to the one at `at`; the same place where there is no such layer. */
function across(heads, at, way) {
  const beyond = (site) => way * (site.layer - heads[at].layer);
  const layer = Math.min(...heads.map(beyond).filter((steps) => steps > 0));
  const aside = (site) => (beyond(site) === layer ? Math.abs(site.head - heads[at].head) : Infinity);
  return heads.reduce((best, site, place) => (aside(site) < (best === at ? Infinity : aside(heads[best])) ? place : best), at);
}

function cellOf(site, context) {
  const share = site.driver === null ? null : site.totals[site.driver];
  const keeps = site.driver === null ? null : kept(site, site.driver);
  const words = site.driver === null
    ? `${siteName(site)}: ${site.verdict.label}`
    : `${siteName(site)}: ${site.verdict.label}; ${PARTS[site.driver].name} makes ${percent(share)} of the scores and alone keeps ${percent(keeps)} of where it looks`;
  const button = el("button", { type: "button", class: "atlas-cell", "aria-label": words, title: words, "data-site": site.number, onclick: () => {
    change({ view: "head", site: site.number, sample: null, off: null, pin: null }, { isStep: true });
    say(`${siteName(site)} opened`);
  } }, disc(site, share, keeps));
  return button;
}

/** A disc as strong as the share, in a ring as full as what is kept. */
function disc(site, share, keeps) {
  const [middle, ring] = [SIZE / 2, 20];
  const around = 2 * Math.PI * ring;
  const colour = site.driver === null ? colours().faint : colours().parts[site.driver];
  return svg("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, width: SIZE, height: SIZE, "aria-hidden": "true" },
    svg("circle", { cx: middle, cy: middle, r: ring, fill: "none", stroke: colours().faint, "stroke-width": 4 }),
    keeps > 0 && svg("circle", { cx: middle, cy: middle, r: ring, fill: "none", stroke: colour, "stroke-width": 4, "stroke-dasharray": `${around * keeps} ${around}`, transform: `rotate(-90 ${middle} ${middle})` }),
    svg("circle", { cx: middle, cy: middle, r: 4 + 11 * Math.sqrt(Math.min(1, Math.max(0, share ?? 0))), fill: colour }));
}

/** All heads as one SVG, for the download. */
function atlasFigure(sites, order) {
  const kinds = order === "place" ? [...new Set(sites.map((site) => site.kind))] : [null];
  const root = svg("svg", {});
  let y = 24;
  let width = 200;
  for (const kind of kinds) {
    const group = sites.filter((site) => kind === null || site.kind === kind);
    root.append(svg("text", { x: 8, y: y - 6, fill: colours().ink, "font-size": 12 }, kind === null ? "heads in order" : kindName(kind)));
    const nColumns = order === "place" ? Math.max(...group.map((site) => site.head)) + 1 : 12;
    group.forEach((site, place) => {
      const [row, column] = order === "place" ? [site.layer, site.head] : [Math.floor(place / 12), place % 12];
      const share = site.driver === null ? null : site.totals[site.driver];
      const cell = svg("g", { transform: `translate(${40 + column * (SIZE + 4)} ${y + row * (SIZE + 4)})` }, ...disc(site, share, site.driver === null ? null : kept(site, site.driver)).childNodes);
      root.append(cell);
      if (column === 0 && order === "place") root.append(svg("text", { x: 8, y: y + row * (SIZE + 4) + SIZE / 2, fill: colours().muted, "font-size": 11 }, `L${site.layer}`));
    });
    const nRows = order === "place" ? Math.max(...group.map((site) => site.layer)) + 1 : Math.ceil(group.length / 12);
    y += nRows * (SIZE + 4) + 30;
    width = Math.max(width, 50 + nColumns * (SIZE + 4));
  }
  root.setAttribute("viewBox", `0 0 ${width} ${y}`);
  document.body.append(root);
  queueMicrotask(() => root.remove());
  return root;
}

async function drawAverages(pictures, context) {
  const averages = await context.source.averages(context.id);
  for (const button of pictures.querySelectorAll(".atlas-cell")) {
    const average = averages[Number(button.dataset.site)];
    if (!average) continue;
    const canvas = el("canvas", { class: "atlas-thumb", "aria-hidden": "true" });
    thumbnail(canvas, average, "weights", largest(average.values));
    button.replaceChildren(canvas);
  }
}
