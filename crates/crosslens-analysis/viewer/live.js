// What only a running model can do: explain a sentence somebody types, and explain itself anew on many.

import { checkbox, el, explain, fill, say, select, shownToken } from "./dom.js";
import { change, stateNumber } from "./state.js";

/** What the form held before the page was drawn anew. */
const typed = { source: "", target: "", feeding: "own", estimator: "paper", sample: 0, sentences: 1000 };

/** The bars of the jobs that run, kept while the page changes around them. */
const jobPlace = el("div", { class: "jobs" });
/** Whether the server was asked which jobs go on, which it is once: later ones are started here. */
const jobs = { areFound: false };

/** What the model behind a report can do, or null where none is running. */
export function liveOf({ source, id }) {
  return source.live && source.reports()[id].live ? source.live : null;
}

/** Lets the form hold a question that came with the address. */
export function remember({ sentence: { source, target, sample }, feeding, estimator }) {
  if (source !== undefined) Object.assign(typed, { source: wordsOf(source), target: wordsOf(target ?? "") });
  if (sample !== undefined) typed.sample = sample;
  Object.assign(typed, { feeding, estimator });
}

function wordsOf(words) {
  return Array.isArray(words) ? words.join(" ") : words;
}

/** A form to ask the model; explains a sentence and shows it. */
export function liveForm(context, live) {
  const said = el("output", { class: "muted", "aria-live": "polite" });
  const asks = live.asks(context.id);
  const what = asks.words ? "words" : "text";
  const keep = (name) => (event) => { typed[name] = event.target.value; };
  const text = (name, label) => el("input", { type: "text", id: `live-${name}`, value: typed[name], placeholder: label, "aria-label": label, autocomplete: "off", spellcheck: "false", oninput: keep(name) });
  const ask = async (sentence) => {
    fill(said, "running …");
    try {
      const feeding = asks.feeding ? typed.feeding : "own";
      const site = stateNumber("site", context.entry.report.sites.length - 1);
      const number = await live.explain(context.id, { sentence, feeding, estimator: typed.estimator }, site);
      change({ view: "head", sample: null, asked: live.asked(context.id, number), pin: null });
      say("the sentence is explained");
      return true;
    } catch (error) {
      fill(said, error.message);
      return false;
    }
  };
  const submit = (event) => {
    event.preventDefault();
    ask({ source: typed.source, ...(typed.target.trim() ? { target: typed.target } : {}) });
  };
  const number = el("input", { type: "number", id: "live-sample", min: 0, max: 4294967295, value: typed.sample, "aria-label": `Number of a sentence of the ${asks.take}`, oninput: (event) => { typed.sample = Number(event.target.value) || 0; } });
  const next = async () => {
    const sample = typed.sample;
    // The form is drawn anew with the answer, and then shows the number to come.
    typed.sample += 1;
    if (!(await ask({ sample }))) typed.sample = sample;
  };
  return el("section", { class: "card live", "aria-label": "Ask the model" },
    asks.files ? fileForm(asks.files, ask, said) : el("form", { class: "typed", onsubmit: submit }, text("source", `source ${what}`), text("target", `target ${what} (optional)`), el("button", { type: "submit", id: "live-explain" }, "explain")),
    el("div", { class: "bar" },
      asks.take && [el("button", { type: "button", id: "live-take", onclick: next }, `take from its ${asks.take}`), el("label", {}, "number ", number)],
      asks.feeding && checkbox("the decoder reads the target", typed.feeding === "target", (isOn) => { typed.feeding = isOn ? "target" : "own"; }, "instead of its own likeliest word"),
      asks.fitted && select("Estimator", [["paper", "paper estimator"], ["joint", "joint estimator"]], typed.estimator, (value) => { typed.estimator = value; }, { id: "live-estimator" }),
      said),
    !asks.fitted && el("p", { class: "muted small", id: "live-unfitted" }, "Nothing is fitted: scores are shown whole, under “rest × rest” (biases of the maps under position). To split them by position and token, start the server with ", el("code", {}, "--corpus FILE"), "."),
    asks.take && jobForm(context, live),
    asks.words && knownWords(context, live));
}

/** Most bytes of a file: what the server takes, less than its base64. */
const MOST_BYTES = 12e6;

/** Asks about a sound or a picture of the user's, which goes to the server and nowhere else. */
function fileForm(kind, ask, said) {
  const accept = kind === "sound" ? ".wav,.flac,.mp3,.ogg,.oga" : ".png,.jpg,.jpeg,.webp";
  const choose = el("input", { type: "file", id: "live-file", accept, "aria-label": `A ${kind} to explain` });
  const submit = async (event) => {
    event.preventDefault();
    const [file] = choose.files;
    if (!file) return fill(said, `choose a ${kind} first`);
    if (file.size > MOST_BYTES) return fill(said, `the file has ${(file.size / 1e6).toFixed(1)} MB, and at most ${MOST_BYTES / 1e6} are taken`);
    return ask({ file: base64(new Uint8Array(await file.arrayBuffer())), name: file.name });
  };
  return el("form", { class: "typed", onsubmit: submit }, choose, el("button", { type: "submit", id: "live-explain" }, "explain"));
}

function base64(bytes) {
  const parts = [];
  for (let at = 0; at < bytes.length; at += 0x8000) parts.push(String.fromCharCode(...bytes.subarray(at, at + 0x8000)));
  return btoa(parts.join(""));
}

function knownWords(context, live) {
  const place = el("p", { class: "muted small" });
  const details = explain("Words it knows", place);
  details.addEventListener("toggle", async () => {
    const { words } = await live.model(context.id);
    fill(place, "source: ", words.source.map(shownToken).join(" "), el("br"), "target: ", words.target.map(shownToken).join(" "));
  }, { once: true });
  return details;
}

function jobForm(context, live) {
  if (!jobs.areFound) findJobs(live);
  const sentences = el("input", { type: "number", id: "job-sentences", min: 1, max: 100000, value: typed.sentences, "aria-label": "Sentences", oninput: (event) => { typed.sentences = Number(event.target.value) || 1; } });
  const start = () => startJob(context, live, { sentences: typed.sentences, estimator: typed.estimator });
  return el("div", { class: "bar" }, el("span", {}, "explain the whole model on"), sentences, el("span", {}, "sentences"), el("button", { type: "button", id: "job-start", onclick: start }, "start"), jobPlace);
}

/** A bar and words for how far an explanation is; `show` takes what is told of it. */
export function progressBar() {
  const bar = el("progress", { max: 1, value: 0, "aria-label": "progress of the explanation" });
  const words = el("span", { class: "muted" }, "waiting …");
  const show = ({ state, phase, done, total }) => {
    if (state !== "running") return;
    bar.value = total ? done / total : 0;
    fill(words, `${phase}: ${done} of ${total}`);
  };
  return { bar, words, show };
}

/** Says of a report that a server still works on how far it is; `heading` is the kind of its heading. */
export function preparing(source, id, heading = "h1") {
  const { name, model } = source.reports()[id];
  const { bar, words, show } = progressBar();
  say(`${name} is being explained`);
  // How it ends is seen by whoever asks for the report.
  source.live.prepared(id, show).catch(() => {});
  const cancel = el("button", { type: "button", class: "prepare-cancel", "aria-label": `cancel: ${name}`, onclick: () => source.live.cancelPreparing(id).catch((error) => say(error.message)) }, "cancel");
  return el("section", { class: "card", id: "preparing", "aria-busy": "true" },
    el(heading, {}, `${name} is being explained`), el("p", { class: "muted" }, model), el("div", { class: "job" }, bar, words, cancel));
}

async function startJob(context, live, options) {
  jobPlace.querySelectorAll(".job-end").forEach((end) => end.parentElement.remove());
  try {
    const job = await live.startJob(context.id, options);
    await followJob(live, { ...job, name: context.entry.name }, ({ report }) => change({ report, sample: null, off: null, pin: null }));
  } catch (error) {
    jobPlace.append(el("div", { class: "job" }, el("span", { class: "job-end", role: "alert" }, error.message)));
  }
}

/** Jobs that were started before the page was loaded, or from another one, are watched and can be cancelled here too. */
async function findJobs(live) {
  jobs.areFound = true;
  const found = await live.openJobs().catch(() => []);
  for (const job of found) followJob(live, job, null);
}

/** Shows how far a job is, until it has ended; `then` takes how a job that is done ended, without it its report can be chosen. */
async function followJob(live, job, then) {
  const { bar, words, show } = progressBar();
  const what = `${job.name} on ${job.sentences} sentences`;
  const cancel = el("button", { type: "button", class: "job-cancel", "aria-label": `cancel: ${what}`, onclick: () => live.cancelJob(job.id).catch((error) => say(error.message)) }, "cancel");
  const row = el("div", { class: "job", "data-job": job.id }, el("span", {}, what), bar, words, cancel);
  jobPlace.append(row);
  const end = await live.watchJob(job.id, show).catch((error) => ({ state: "failed", error: error.message }));
  const open = () => change({ report: end.report, sample: null, off: null, pin: null });
  fill(row, el("span", {}, what), el("span", { class: "job-end", role: "status" }, end.state === "done" ? "done: a new report" : end.state === "failed" ? end.error : "cancelled"),
    end.state === "done" && !then && el("button", { type: "button", class: "quiet", onclick: open }, "show it"));
  if (end.state === "done") then?.(end);
}
