// Which sentence is looked at.

import { el, select, shownToken } from "./dom.js";
import { change, state } from "./state.js";

/** The state of no sentence: the average over all. */
export const AVERAGE = "average";

/** Chooses a sentence, by its number or by a token in it; `chosen` is a number, AVERAGE, or null while there is none to be shown. */
export function samplePicker({ source, id, entry: { samples } }, chosen) {
  // One that a model was asked about is found again by its question.
  const to = (value) => {
    const asked = source.live?.asked(id, value);
    return asked ? { sample: null, asked, pin: null } : { sample: value, pin: null };
  };
  // A sound or a picture has no words: those written are its name.
  const named = (sample) => (sample.scene ? (sample.predicted.length ? sample.predicted : sample.fed) : sample.source);
  const summary = (sample, place) => `${place + 1}: ${named(sample).slice(0, 9).map(shownToken).join(" ")}${named(sample).length > 9 ? " …" : ""}`;
  const options = [...(chosen === null ? [["", "not here"]] : []), ...samples.map((sample, place) => [place, summary(sample, place)]), [AVERAGE, "average over all sentences"]];
  const go = (step) => {
    const places = options.map(([value]) => value);
    const at = places.indexOf(chosen ?? "");
    change(to(places[(at + step + places.length) % places.length]));
  };
  const found = el("output", { class: "muted", "aria-live": "polite" });
  const search = el("input", { type: "search", id: "sample-search", placeholder: "find a token …", "aria-label": "Find a sentence by a token in it", list: "sample-tokens", autocomplete: "off" });
  const matches = () => {
    const wanted = search.value.trim().toLowerCase();
    if (!wanted) return [];
    const has = (list) => (list ?? []).some((name) => name.toLowerCase().includes(wanted));
    return samples.flatMap((sample, place) => (has(sample.source) || has(sample.fed) || has(sample.predicted) ? [place] : []));
  };
  search.addEventListener("input", () => { found.textContent = search.value.trim() ? `in ${matches().length} of ${samples.length} sentences` : ""; });
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    const all = matches();
    if (!all.length) return;
    const next = all.find((place) => place > (typeof chosen === "number" ? chosen : -1)) ?? all[0];
    change({ ...to(next), find: search.value.trim() });
  });
  search.value = state().find ?? "";
  const tokens = [...new Set(samples.flatMap((sample) => [...named(sample), ...sample.predicted]))].slice(0, 400);
  return el("div", { class: "bar samples" },
    el("div", { class: "stepper" },
      el("button", { type: "button", id: "sample-back", "aria-label": "sentence before", onclick: () => go(-1) }, "‹"),
      select("Sentence", options, chosen ?? "", (value) => change(to(value))),
      el("button", { type: "button", id: "sample-next", "aria-label": "next sentence", onclick: () => go(1) }, "›")),
    samples.length > 0 && el("span", { class: "search" }, search, el("datalist", { id: "sample-tokens" }, tokens.map((name) => el("option", { value: name }))), found));
}
