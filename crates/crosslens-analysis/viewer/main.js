// Starts the page: reads what is there, shows the view the address asks for, and keeps the two in step.

import { el, fill, percent, say, select } from "./dom.js";
import { theme } from "./colours.js";
import { openSource } from "./source.js";
import { change, hashOf, onChange, state, stateNumber } from "./state.js";
import { atlasView } from "./atlas.js";
import { headView } from "./head.js";
import { componentsView } from "./components.js";
import { trainingView } from "./training.js";
import { compareView } from "./compare.js";
import { claimsView } from "./claims.js";
import { preparing } from "./live.js";

const VIEWS = [
  ["claims", "Claims", claimsView, "what was tested and what came out"],
  ["atlas", "Atlas", atlasView, "all heads at a glance"],
  ["head", "Head", headView, "one head, one sentence, its terms"],
  ["components", "Components", componentsView, "where positions and tokens lie"],
  ["training", "Training", trainingView, "how it learned"],
  ["compare", "Compare", compareView, "two heads or two models"],
];

/** Files with something wrong that are named. */
const MOST_WARNINGS = 5;

let turn = 0;
let leaving = [];
let shownView = null;

async function show(source) {
  const mine = (turn += 1);
  const main = document.getElementById("main");
  const reports = source.reports();
  if (!reports.length) {
    fill(main, el("p", {}, "This page holds no report."));
    return;
  }
  const id = stateNumber("report", reports.length - 1);
  if (reports[id].ready === false) {
    navigation(source, id, state().view, false);
    fill(main, preparing(source, id));
  }
  const entry = await source.report(id).catch((error) => {
    if (mine === turn) fill(main, failed(error));
    throw error;
  });
  if (mine !== turn) return;
  const hasAtlas = entry.report.sites.length > 1;
  const wanted = state().view || (source.hasClaims ? "claims" : hasAtlas && entry.report.corpus.pairs ? "atlas" : "head");
  const [name, title, draw] = VIEWS.find(([view]) => view === wanted) ?? VIEWS[2];
  navigation(source, id, name, hasAtlas);
  footer(entry);
  document.title = `${title} · ${source.title}`;
  const focus = document.activeElement;
  const remembered = focus && main.contains(focus) ? { id: focus.id, label: focus.getAttribute("aria-label"), tag: focus.tagName } : null;
  const left = leaving;
  leaving = [];
  const context = { source, id, entry, isCurrent: () => mine === turn, onLeave: (action) => leaving.push(action) };
  try {
    await draw(main, context);
  } catch (error) {
    if (mine === turn) fill(main, failed(error));
    throw error;
  } finally {
    left.forEach((action) => action());
  }
  if (mine !== turn) return;
  const isOther = shownView !== null && shownView !== name;
  shownView = name;
  if (remembered) refocus(main, remembered);
  if (isOther) {
    say(`${title}: shown`);
    if (!remembered) scrollTo(0, 0);
  }
  document.documentElement.dataset.ready = String(mine);
  performance.mark("crosslens-shown");
}

function failed(error) {
  return el("div", { class: "card", role: "alert" }, el("h1", {}, "This cannot be shown"), el("p", {}, error.message));
}

/** The element that had the focus was drawn anew: its successor gets it. */
function refocus(main, { id, label, tag }) {
  const byId = id && document.getElementById(id);
  const next = byId || [...main.querySelectorAll(tag)].find((element) => label && element.getAttribute("aria-label") === label);
  (next ?? main).focus({ preventScroll: true });
}

function navigation(source, id, chosen, hasAtlas) {
  const nav = document.getElementById("views");
  const had = nav.contains(document.activeElement) ? document.activeElement.dataset.view : null;
  fill(nav, VIEWS.filter(([view]) => (view !== "atlas" || hasAtlas) && (view !== "claims" || source.hasClaims)).map(([view, title, , hint]) =>
    el("a", { href: hashOf({ ...keptState(), view }), "data-view": view, title: hint, "aria-current": view === chosen ? "page" : undefined }, title)));
  if (had) nav.querySelector(`[data-view="${had}"]`)?.focus();
  const reports = source.reports();
  fill(document.getElementById("reports"), reports.length > 1
    ? select("Report", reports.map((report) => [report.id, report.name]), id, (value) => change({ report: value, site: null, sample: null, off: null, pin: null, step: null }), { id: "report-picker" })
    : el("span", { class: "report-name" }, reports[0].name));
}

/** What stays when one goes from view to view. */
function keptState() {
  const { report, site, sample, asked, theme } = state();
  return { report, site, sample, asked, theme };
}

function footer({ report }) {
  const { task, corpus, components, model } = report;
  fill(document.getElementById("foot"),
    el("p", {}, model.description, task.word_accuracy === null ? "" : ` · ${percent(task.word_accuracy, 1)} of words right`, ` · ${corpus.pairs} sentences${corpus.source ? ` (${corpus.source})` : ""}${corpus.held_out ? ", others than it was fitted on" : ""} · ${components.estimator} estimator`),
    corpus.codes && codesLine(corpus.codes),
    fileWarnings(corpus.warnings ?? []),
    el("p", {}, "Attention weights alone explain nothing: read the shares with the causal check, and rare tokens and late steps with care."));
}

/** What stands for tokens that a source of frames or patches does not have. */
function codesLine({ of, asked, found, seed }) {
  return el("p", { id: "codes" }, `The ${of} of a source have no tokens: “input” is here the code of a step, the nearest of ${found} that k-means found among all ${of} (at most ${asked}, seed ${seed}).`);
}

/** What is wrong with the sounds or pictures that were explained. */
function fileWarnings(warnings) {
  if (!warnings.length) return null;
  const more = warnings.length - MOST_WARNINGS;
  return el("p", { class: "missed", id: "file-warnings" }, warnings.slice(0, MOST_WARNINGS).join("; "), more > 0 && `; and ${more} more`, ".");
}

/** Links within the page change its state; inside another page they would lead out of it. */
function follow(event) {
  const href = event.target.closest?.("a[href^='#']")?.getAttribute("href");
  if (!href?.includes("=") || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const all = Object.fromEntries(Object.keys(state()).map((name) => [name, null]));
  change({ ...all, theme: state().theme, ...Object.fromEntries(new URLSearchParams(href.slice(1))) }, { isStep: true });
}

/** Light or dark colours: as the address says, else as the system prefers. */
const themeButton = el("button", { type: "button", class: "quiet", id: "theme", onclick: () => change({ theme: theme() === "dark" ? "light" : "dark" }) });

function applyTheme() {
  const chosen = state().theme;
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  else delete document.documentElement.dataset.theme;
  const isDark = theme() === "dark";
  themeButton.textContent = isDark ? "☀" : "☾";
  themeButton.title = isDark ? "light colours" : "dark colours";
  themeButton.setAttribute("aria-label", themeButton.title);
}

async function start() {
  const source = openSource();
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  });
  const redraw = () => {
    applyTheme();
    return show(source);
  };
  document.addEventListener("click", follow);
  document.getElementById("settings").append(themeButton);
  applyTheme();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  onChange(redraw);
  await source.ready();
  await redraw();
}

start();
