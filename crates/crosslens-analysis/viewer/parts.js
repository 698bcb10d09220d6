// What several views say about a head: its name, its shares, its verdict.

import { el, percent, select } from "./dom.js";
import { PARTS, colours } from "./colours.js";

const KINDS = { cross: "Cross-attention", "encoder-self": "Encoder self-attention", "decoder-self": "Decoder self-attention" };

/** A head in full: `Cross-attention · layer 0 · head 3`. */
export function siteName(site) {
  return `${KINDS[site.kind] ?? site.kind} · layer ${site.layer} · head ${site.head}`;
}

/** A head in short: `L0 H3`. */
export function siteShort(site) {
  return `L${site.layer} H${site.head}`;
}

/** What kind of attention, in words. */
export function kindName(kind) {
  return KINDS[kind] ?? kind;
}

/** Who asks and who is asked at a site. */
export function sides(site) {
  const keys = site.kind === "decoder-self" ? "fed" : "source";
  const queries = site.kind === "encoder-self" ? "source" : "fed";
  return { queries, keys };
}

/** Shares of the score's variance along the keys by piece: nine or six numbers, or null. */
export function pieceShares(site, measure = "centred") {
  const shares = site.shares;
  if (!shares) return null;
  const parts = shares.parts?.[measure];
  if (parts) return [...parts.query, ...parts.key];
  return shares[measure] ? shares[measure].flat() : null;
}

/** Position (its bias included), token, and everything else; null where there are no shares. They add up to 1. */
export function totals(site) {
  const shares = pieceShares(site);
  if (!shares) return null;
  const bias = site.shares.position_bias ?? 0;
  return totalsOf(shares, bias);
}

/** The same from the pieces alone. */
export function totalsOf(shares, bias = 0) {
  const [position, token] = shares.length === 9 ? [shares[0] + bias, shares[4]] : [shares[0] + shares[3] + bias, shares[1] + shares[4]];
  return [position, token, 1 - position - token];
}

/** The part with the largest share: 0, 1, 2, or null. */
export function driver(site) {
  const all = totals(site);
  return all ? all.indexOf(Math.max(...all)) : null;
}

/** The share of steps at which attention rebuilt from one part alone looks at the same key. */
export function kept(site, part) {
  const name = PARTS[part]?.key;
  const rebuilt = (part === 0 && site.rebuilt["temporal+bias"]) || site.rebuilt[name];
  return rebuilt ? rebuilt.argmax : null;
}

/** The verdict's label, coloured by what drives the head. */
export function verdictChip(site) {
  const part = driver(site);
  const chip = el("span", { class: "chip" }, site.verdict.label || "no verdict");
  chip.style.setProperty("--chip", part === null ? colours().muted : colours().parts[part]);
  return chip;
}

/** A bar split by shares; what is below zero is left out of the picture, not of the numbers. */
export function shareBar(shares) {
  const positive = shares.map((share) => Math.max(0, share));
  const total = positive.reduce((sum, share) => sum + share, 0) || 1;
  const text = shares.map((share, part) => `${PARTS[part].name} ${percent(share)}`).join(", ");
  return el("span", { class: "share-bar", role: "img", "aria-label": text, title: text }, positive.map((share, part) =>
    el("span", { style: { width: `${(100 * share) / total}%`, background: colours().parts[part] } })));
}

/** Which colour is which part. */
export function partLegend() {
  return el("ul", { class: "legend" }, PARTS.map(({ name, title }, part) =>
    el("li", { title }, el("span", { class: "swatch", style: { background: colours().parts[part] } }), name)));
}

/** The same for a figure: `[colour, text]` by part. */
export function partItems() {
  return PARTS.map(({ name }, part) => [colours().parts[part], name]);
}

/** A choice of heads. */
export function sitePicker(sites, chosen, change, label = "Head") {
  return select(label, sites.map((site, place) => [place, `${siteName(site)} (${site.verdict.label})`]), chosen, (value) => change(Number(value)));
}

/** A heading with what belongs beside it. */
export function heading(text, ...beside) {
  return el("div", { class: "heading" }, el("h1", {}, text), el("div", { class: "beside" }, beside));
}

/** What to do where there is nothing to see. */
export function nothing(text, command) {
  return el("div", { class: "card nothing" }, el("p", {}, text), command && el("pre", {}, el("code", {}, command)));
}
