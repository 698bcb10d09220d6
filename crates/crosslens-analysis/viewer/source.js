// Where the page's data come from. A source has:
//
//   title                        what the page is called
//   reports()                    [{ id, name, model, n_sites, n_samples }], at once
//   report(id)                   a promise of { id, name, report, samples, codes, training, timeline }; `report` is report.json, `samples`
//                                lists sentences by their tokens: { number, source, fed, predicted, target, special, scene, visible };
//                                `scene` is what a source that is no text sounds or looks like, `codes` what its codes stand for;
//                                of a file that was sent, `warning` is what is wrong with it; of a sentence that was asked about, `words`
//                                has for each token the number of its word, by side, where the model's rules are known
//   sample(id, number, site)     a promise of one sentence at one head: { pieces, nPieces, nQueries, nKeys, bias, valueNorms, isCausal }
//   averages(id)                 a promise of the average attention by head: [{ values, nRows, nColumns }]
//   claims()                     a promise of what `crosslens reproduce` found, or null where the page is not about that
//   live                         null, or what only a running model can do, of reports whose summary says `live`:
//       asks(id)                               how it can be asked, at once: { take, sentences, fitted, feeding, words }
//       model(id)                              a promise of the model: { name, task, words, … }
//       explain(id, question, site)            a promise of the number of a new sentence: it joins the report's samples; one head is asked
//                                              for now, others when they are looked at. A question is { sentence, feeding, estimator }, its
//                                              sentence `{ source, target }`, `{ sample }` or `{ file, name }`
//       asked(id, number)                      what the address says of the question behind a sentence; undefined for those of the report
//       find(id, asked, site)                  a promise of the number of the sentence an address asks about, asked again if need be; null
//                                              where it cannot be, since a file is too long for an address
//       isKnown(id, asked)                     whether it was asked already
//       isOwn(id)                              whether questions are answered by the components of this report
//       rerun(id, number, site, { off, bias })   a promise of { predicted }: decodes again without the pieces whose bits are set in `off`
//       startJob(id, options), watchJob(job, told), cancelJob(job)    explain the whole model anew; the last told is how it ended
//       openJobs()                             a promise of the jobs that wait or run, whoever started them: [{ id, name, sentences }]
//       prepared(id, told)                     a promise that ends when a report whose summary says `ready: false` is there or never will be;
//                                              `told` hears how far it is
//       cancelPreparing(id)                    breaks that off
//
// `StaticSource` reads what stands in the page itself. `LiveSource` asks a server, at an address the page's index gives as `api`; what it
// may ask is described in docs/openapi.json. Reports and sentences are there as they are in a page: `reports/{id}` is the block
// `report-{id}`, `reports/{id}/averages` is `averages-{id}`, `reports/{id}/samples/{number}` is `sample-{id}-{number}`.
//
// An error is a status from 400 on with { error } in words.

import { readSafetensors } from "./safetensors.js";

/** Reads blocks of gzipped, base64-coded data from the page's own script elements. */
class StaticSource {
  constructor() {
    const index = document.getElementById("crosslens-index");
    const { title, reports, claims } = index ? JSON.parse(index.textContent) : { title: "Crosslens", reports: [] };
    this.title = title;
    this.hasClaims = claims === true;
    this.live = null;
    this.list = reports.map((report, id) => ({ id, ...report }));
    this.cache = new Map();
  }

  async ready() {}

  reports() {
    return this.list;
  }

  report(id) {
    return this.once(`report-${id}`, async (buffer) => ({ id, ...JSON.parse(new TextDecoder().decode(buffer)) }));
  }

  async sample(id, number, site) {
    const arrays = await this.once(`sample-${id}-${number}`, readSafetensors);
    const { samples } = await this.report(id);
    return siteOf(arrays, site, samples[number].visible?.[site] === "causal");
  }

  averages(id) {
    return this.once(`averages-${id}`, async (buffer) => averagesOf(readSafetensors(buffer), (await this.report(id)).report.sites.length));
  }

  claims() {
    return this.hasClaims ? this.once("claims", async (buffer) => JSON.parse(new TextDecoder().decode(buffer))) : null;
  }

  /** Unpacks a block once. */
  once(block, read) {
    if (!this.cache.has(block)) this.cache.set(block, text(block).then(unpack).then(read));
    return this.cache.get(block);
  }
}

/** Asks a server. */
class LiveSource {
  constructor(title, api) {
    Object.assign(this, { title, api, list: [], cache: new Map(), questions: new Map(), numbers: new Map(), preparing: new Map(), hasClaims: false });
    this.live = {
      asks: (id) => this.list[id].asks,
      model: (id) => this.once(`models/${this.list[id].of}`, (response) => response.json()),
      explain: (id, question, site) => this.explain(id, question, site),
      asked: (id, number) => this.asked(id, number),
      find: (id, asked, site) => this.find(id, asked, site),
      isKnown: (id, asked) => this.numbers.has(`${id} ${asked}`),
      isOwn: (id) => this.list.findIndex(({ of }) => of === this.list[id].of) === id,
      rerun: (id, number, site, { off, bias }) => this.rerun(id, number, site, off, bias),
      startJob: (id, options) => this.post("jobs", { model: this.list[id].of, ...options }),
      openJobs: () => this.openJobs(),
      watchJob: (job, told) => this.watch(`jobs/${job}`, told),
      prepared: (id, told) => this.prepared(id, told),
      cancelPreparing: (id) => this.ask(`models/${this.list[id].of}/explanation`, { method: "DELETE" }),
      cancelJob: (job) => this.ask(`jobs/${job}`, { method: "DELETE" }),
    };
  }

  /** A sentence asked about here is kept here: the server forgets it at once. The same question again is the same sentence. */
  explain(id, question, site) {
    if (question.sentence.file) return this.askNew(id, question, site);
    const key = `${id} ${addressOf(question)}`;
    if (!this.numbers.has(key)) {
      const number = this.askNew(id, question, site);
      number.catch(() => this.numbers.delete(key));
      this.numbers.set(key, number);
    }
    return this.numbers.get(key);
  }

  async askNew(id, question, site) {
    const answer = await this.askAt(id, question, site);
    const { samples } = await this.report(id);
    const number = samples.push({ ...answer.sample, warning: answer.warning, words: answer.words }) - 1;
    this.questions.set(`${id}/${number}`, question);
    this.cache.set(`typed/${id}/${number}/${site}`, Promise.resolve(answer));
    if (question.sentence.file) this.numbers.set(`${id} ${this.asked(id, number)}`, Promise.resolve(number));
    return number;
  }

  asked(id, number) {
    const question = this.questions.get(`${id}/${number}`);
    return question && addressOf(question, Number(number));
  }

  async find(id, asked, site) {
    const known = this.numbers.get(`${id} ${asked}`);
    if (known) return known;
    const question = questionOf(asked);
    return question && !question.sentence.name ? this.explain(id, question, site) : null;
  }

  /** The answer to a question at one head: a model may have hundreds. */
  askAt(id, question, site) {
    return this.post(`models/${this.list[id].of}/explain`, { ...wireOf(question), sites: [site] });
  }

  /** A typed sentence at one head. */
  async typed(id, number, site) {
    const place = `typed/${id}/${number}/${site}`;
    if (!this.cache.has(place)) {
      const answer = this.askAt(id, this.questions.get(`${id}/${number}`), site);
      answer.catch(() => this.cache.delete(place));
      this.cache.set(place, answer);
    }
    const { sample, sites: [{ shape: [nPieces, nQueries, nKeys], pieces, bias, value_norms: norms }] } = await this.cache.get(place);
    const numbers = (list) => (list ? Float32Array.from(list) : null);
    return { nPieces, nQueries, nKeys, isCausal: sample.visible?.[site] === "causal", pieces: numbers(pieces), bias: numbers(bias), valueNorms: numbers(norms) };
  }

  async rerun(id, number, site, off, bias) {
    const { samples, report } = await this.report(id);
    const { source, target, number: place } = samples[number];
    const sentence = this.list[id].asks?.files ? { sample: place } : { source, ...(target ? { target } : {}) };
    const ofReport = { sentence, estimator: report.components.estimator };
    const pieces = Array.from({ length: 9 }, (_, piece) => piece).filter((piece) => (off >> piece) & 1);
    return this.post(`models/${this.list[id].of}/rerun`, { ...wireOf(this.questions.get(`${id}/${number}`) ?? ofReport), site, off: pieces, bias });
  }

  async openJobs() {
    const jobs = await this.ask("jobs").then((response) => response.json());
    const isOpen = ({ state }) => ["waiting", "running"].includes(state);
    return jobs.filter(isOpen).map(({ id, model, sentences }) => ({ id, sentences, name: this.list.find(({ of }) => of === model)?.name ?? "a model" }));
  }

  /** Hears how a job or a model stands until that has ended; then the list of reports is read anew. */
  watch(place, told) {
    return new Promise((resolve, reject) => {
      const events = new EventSource(`${this.api}${place}/events`);
      events.addEventListener("progress", (event) => told(JSON.parse(event.data)));
      for (const name of ["done", "failed", "cancelled"]) {
        events.addEventListener(name, (event) => {
          events.close();
          this.ready().then(() => resolve(JSON.parse(event.data)), reject);
        });
      }
      events.onerror = () => {
        events.close();
        reject(new Error("the server no longer says how it stands"));
      };
    });
  }

  /** However many wait for a model, one stream tells how far it is, and the last who asked to be told is. */
  prepared(id, told) {
    const model = this.list[id].of;
    const one = this.preparing.get(model) ?? { told: () => {} };
    this.preparing.set(model, one);
    one.told = told ?? one.told;
    one.ended ??= this.watch(`models/${model}`, (status) => one.told(status)).finally(() => this.preparing.delete(model));
    return one.ended;
  }

  async ready() {
    this.list = await this.ask("reports").then((response) => response.json());
  }

  reports() {
    return this.list;
  }

  async report(id) {
    if (this.list[id]?.ready === false) await this.prepared(id);
    return this.once(`reports/${id}`, async (response) => ({ id, ...(await response.json()) }));
  }

  async sample(id, number, site) {
    if (this.questions.has(`${id}/${number}`)) return this.typed(id, number, site);
    const arrays = await this.once(`reports/${id}/samples/${number}`, async (response) => readSafetensors(await response.arrayBuffer()));
    const { samples } = await this.report(id);
    return siteOf(arrays, site, samples[number].visible?.[site] === "causal");
  }

  averages(id) {
    return this.once(`reports/${id}/averages`, async (response) => averagesOf(readSafetensors(await response.arrayBuffer()), (await this.report(id)).report.sites.length));
  }

  claims() {
    return null;
  }

  once(place, read) {
    if (!this.cache.has(place)) {
      const answer = this.ask(place).then(read);
      answer.catch(() => this.cache.delete(place));
      this.cache.set(place, answer);
    }
    return this.cache.get(place);
  }

  post(place, body) {
    return this.ask(place, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }).then((response) => response.json());
  }

  async ask(place, request) {
    const response = await fetch(`${this.api}${place}`, request);
    if (response.ok) return response;
    const { error } = await response.json().catch(() => ({}));
    throw new Error(error ?? `the server answers ${response.status}`);
  }
}

/** A question as an address holds it, its fields in one order. Of a file its name stands there, and which sentence of this page it is. */
function addressOf({ sentence: { source, target, sample, file, name }, feeding, estimator }, number) {
  return JSON.stringify(file ? { name, number, feeding, estimator } : { source, target, sample, feeding, estimator });
}

/** The question an address holds; null if that is not what it is. */
export function questionOf(asked) {
  try {
    const { source, target, sample, name, feeding = "own", estimator = "paper" } = JSON.parse(asked);
    return { sentence: { source, target, sample, name }, feeding, estimator };
  } catch {
    return null;
  }
}

/** A question as the server takes it. */
function wireOf({ sentence: { source, target, sample, file }, ...options }) {
  return { sentence: { source, target, sample, file }, ...options };
}

/** What the page was made for: a server if its index names one, else what stands in it. */
export function openSource() {
  const index = document.getElementById("crosslens-index");
  const { title, api } = index ? JSON.parse(index.textContent) : {};
  return api ? new LiveSource(title, api) : new StaticSource();
}

function averagesOf(arrays, nSites) {
  return Array.from({ length: nSites }, (_, site) => {
    if (!arrays.has(`sites.${site}.average`)) return null;
    const { shape: [nRows, nColumns], values } = arrays.get(`sites.${site}.average`);
    return { values, nRows, nColumns };
  });
}

/** One head of a sentence from its arrays. */
function siteOf(arrays, site, isCausal) {
  const { shape: [nPieces, nQueries, nKeys], values } = arrays.get(`sites.${site}.pieces`);
  const optional = (name) => (arrays.has(`sites.${site}.${name}`) ? arrays.get(`sites.${site}.${name}`).values : null);
  return {
    nPieces, nQueries, nKeys, isCausal,
    pieces: scaled(values, optional("pieces.scale"), nQueries * nKeys),
    bias: optional("bias"),
    valueNorms: optional("value_norms"),
  };
}

/** Numbers kept in sixteen bits, each run of `size` in units of its own. */
function scaled(values, scales, size) {
  if (!scales) return values;
  const out = new Float32Array(values.length);
  for (let place = 0; place < out.length; place += 1) out[place] = values[place] * scales[Math.floor(place / size)];
  return out;
}

/** The text of a block, which the browser may not have read yet. */
async function text(block) {
  const find = () => document.getElementById(`crosslens-${block}`);
  if (!find() && document.readyState === "loading") {
    await new Promise((resolve) => document.addEventListener("DOMContentLoaded", resolve, { once: true }));
  }
  if (!find()) throw new Error(`the page holds no ${block}`);
  return find().textContent;
}

async function unpack(base64) {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let place = 0; place < binary.length; place += 1) bytes[place] = binary.charCodeAt(place);
  // Written by hand: a Blob's stream asks the browser's other processes for the bytes, which can fail where they are busy.
  const stream = new DecompressionStream("gzip");
  const writer = stream.writable.getWriter();
  const written = Promise.all([writer.write(bytes), writer.close()]);
  written.catch(() => {});
  const [reader, chunks] = [stream.readable.getReader(), []];
  for (let read = await reader.read(); !read.done; read = await reader.read()) chunks.push(read.value);
  await written;
  const whole = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  chunks.reduce((at, chunk) => (whole.set(chunk, at), at + chunk.length), 0);
  return whole.buffer;
}
