// Head: one attention head on one sentence, its terms, and what is left when some are switched off.

import { checkbox, choice, el, explain, fill, lineName, number, percent, say, shownToken, slider, table, token, unbroken } from "./dom.js";
import { PARTS, colours, isLight, weightPlace } from "./colours.js";
import { RebuiltLines, allPieces, argmax, centred, hasPieces, largest, looksSpecial, madeOf, piecePartsOf, rebuild, view, wordText, words } from "./attention.js";
import { change, state, stateCell, stateNumber } from "./state.js";
import { Heatmap, thinned, thumbnail } from "./heatmap.js";
import { downloads, matrixPanel, matrixRows, matrixSvg, panelsSvg, rampPanel } from "./download.js";
import { questionOf } from "./source.js";
import { liveForm, liveOf, remember } from "./live.js";
import { heading, nothing, pieceShares, shareBar, sides, siteName, sitePicker, totals, verdictChip } from "./parts.js";
import { AVERAGE, samplePicker } from "./samples.js";
import { codeExamples, sceneOf } from "./scene.js";

const TABLE_CELLS = 10_000;
/** Rows and columns of a term in a figure. */
const MOST_IN_TERM = 64;

const SHOWN = [
  ["true", "the model's", "the attention the model itself computed"],
  ["rebuilt", "rebuilt", "the softmax of the terms that are switched on"],
  ["difference", "difference", "rebuilt less the model's own"],
  ["value", "by value", "attention times the length of what is read there: how much each token adds"],
];

/** Draws the view into `main`. */
export async function headView(main, context) {
  const { report, samples } = context.entry;
  if (!report.sites.length) {
    fill(main, heading("Head"), nothing("This network has no attention. Its states are explained all the same: see Components."));
    return;
  }
  const number = stateNumber("site", report.sites.length - 1);
  const site = report.sites[number];
  const { sample, why } = await chosenSample(context, number);
  if (!context.isCurrent()) return;
  if (why) {
    fill(main, heading(siteName(site)), liveOf(context) && liveForm(context, liveOf(context)), samplePicker(context, null), el("div", { class: "card nothing", id: "not-here", role: "alert" }, el("p", {}, why)));
    return;
  }
  const data = sample === AVERAGE
    ? averageOf((await context.source.averages(context.id))[number])
    : { ...(await context.source.sample(context.id, sample, number)), sentence: samples[sample] };
  if (!context.isCurrent()) return;
  new HeadView(main, context, { site, number, sample, data }).show();
}

/** The sentence the address means, `{ sample }`; or `{ why }` it is not to be seen: another in its place would be taken for it. */
async function chosenSample(context, site) {
  const { samples } = context.entry;
  const { asked, sample } = state();
  if (asked) return askedSample(context, asked, site);
  if (sample === AVERAGE || !samples.length) return { sample: AVERAGE };
  const number = stateNumber("sample", Infinity);
  return number < samples.length ? { sample: number } : { why: `This address is of sentence ${number + 1}, and ${samples.length} are here. Choose one above.` };
}

/** A sentence that a model was asked about, perhaps in another window: it is asked again. */
async function askedSample(context, asked, site) {
  const [live, question] = [liveOf(context), questionOf(asked)];
  const { source, sample, name } = question?.sentence ?? {};
  const said = source === undefined ? (name === undefined ? `number ${Number(sample) + 1} of its sentences` : `the file “${shownToken(String(name))}”`) : `“${shownToken(String(source))}”`;
  if (!live) return { why: `This address is of a sentence that a running model was asked about, ${said}. Only a report is here: start crosslens serve with the model, and open the address there.` };
  if (question && !name && !live.isKnown(context.id, asked)) remember(question);
  try {
    const number = await live.find(context.id, asked, site);
    return number === null ? { why: `This address is of ${said}, which it cannot hold. Choose the file again.` } : { sample: number };
  } catch (error) {
    return { why: `This address is of ${said}, about which the model was asked again: ${error.message}` };
  }
}

function averageOf(average) {
  const { values, nRows, nColumns } = average ?? { values: new Float32Array(0), nRows: 0, nColumns: 0 };
  return { nPieces: 0, nQueries: nRows, nKeys: nColumns, pieces: null, average: values, isCausal: false, sentence: null };
}

class HeadView {
  constructor(main, context, chosen) {
    Object.assign(this, { main, context, ...chosen });
    const now = state();
    const nPieces = this.data.nPieces;
    const off = Number(now.off) || 0;
    this.mask = allPieces(this.data) & ~off;
    this.hasBias = !((off >> nPieces) & 1);
    this.show_ = SHOWN.some(([name]) => name === now.show) ? now.show : "true";
    this.threshold = Math.min(1, Math.max(0, Number(now.threshold) || 0));
    this.isHiding = now.hide === "1";
    this.isWords = now.words === "1";
    this.title = siteName(this.site);
    // Rows are what the decoder writes, not what the encoder reads.
    this.isWritten = sides(this.site).queries === "fed";
    this.centred = null;
    this.truth = nPieces ? rebuild(this.data, allPieces(this.data)) : this.data.average;
    // Attention spread over many tokens would be all pale on a scale to 100 %.
    this.isStretched = now.stretch === undefined ? largest(this.truth) < 0.3 : now.stretch === "1";
  }

  /** Lines of both axes: which places they stand for and what they are called. */
  axes() {
    const { sentence, nQueries, nKeys } = this.data;
    const steps = (n) => Array.from({ length: n }, (_, place) => ({ group: [place], text: `step ${place}` }));
    if (!sentence) return { rows: steps(nQueries), columns: steps(nKeys), canHide: false, canJoin: false };
    const { queries, keys } = sides(this.site);
    const isScene = (side) => side === "source" && this.scene;
    const special = (side, tokens) => (isScene(side) ? this.scene.specials()
      : new Set([...(sentence.special?.[side] ?? []), ...tokens.flatMap((name, place) => (looksSpecial(name) ? [place] : []))]));
    const hasWritten = queries === "fed" && sentence.predicted.length === sentence.fed.length;
    const queryTokens = hasWritten ? sentence.predicted : sentence[queries];
    const [querySpecial, keySpecial] = [special(hasWritten ? "predicted" : queries, queryTokens), special(keys, sentence[keys])];
    const wordOf = (side) => sentence.words?.[side];
    const lines = (side, tokens, specials, wordOfToken) => {
      const groups = this.isWords ? words(tokens, specials, wordOfToken) : tokens.map((_, place) => [place]);
      const all = isScene(side) ? this.scene.lines() : groups.map((group) => ({ group, text: wordText(tokens, group) }));
      return all.filter(({ group }) => !this.isHiding || !group.every((place) => specials.has(place)));
    };
    const queryWords = wordOf(hasWritten ? "predicted" : queries);
    const rows = lines(queries, queryTokens, querySpecial, queryWords).map((line) => ({ ...line, before: hasWritten ? sentence.fed[line.group[0]] : undefined }));
    const columns = lines(keys, sentence[keys], keySpecial, wordOf(keys));
    const canJoin = [[queries, queryTokens, queryWords], [keys, sentence[keys], wordOf(keys)]].some(([side, tokens, wordOfToken]) => !isScene(side) && hasPieces(tokens, wordOfToken));
    return { rows, columns, canHide: querySpecial.size + keySpecial.size > 0, canJoin };
  }

  show() {
    const { report, samples } = this.context.entry;
    const { rows, columns } = axisNames(this.site);
    const zoomed = (zoom) => change({ zoom: zoom === 1 ? null : zoom.toFixed(2) }, { isQuiet: true });
    const scrolled = ({ row, column }) => change({ at: row || column ? `${row},${column}` : null }, { isQuiet: true });
    this.heatmap = new Heatmap({ label: `Attention. Rows: ${rows}. Columns: ${columns}. Arrow keys move, Enter pins.`, zoom: Number(state().zoom) || 1, zoomed, at: stateCell("at"), scrolled, told: (cell, isPinned) => this.tell(cell, isPinned), speak: (cell) => this.words(cell) });
    this.scene = sceneOf(this);
    this.lines = this.axes();
    this.context.onLeave(() => {
      this.heatmap.destroy();
      this.scene?.leave();
    });
    this.readout = el("div", { class: "readout", role: "status", "aria-live": "polite" });
    this.why = el("section", { class: "card why", "aria-label": "The cell looked at" });
    this.asTable = el("div", { class: "table-scroll" });
    this.sentenceBox = this.sentenceLines();
    const hasTerms = this.data.nPieces > 0;
    this.showChoice = el("div", {});
    const previous = (site) => change({ site: (site + report.sites.length) % report.sites.length, off: null, pin: null });
    fill(this.main,
      heading(this.title, report.sites.length > 1 && el("div", { class: "stepper" },
        el("button", { type: "button", id: "head-back", "aria-label": "head before", onclick: () => previous(this.number - 1) }, "‹"),
        sitePicker(report.sites, this.number, (site) => change({ site, off: null, pin: null })),
        el("button", { type: "button", id: "head-next", "aria-label": "next head", onclick: () => previous(this.number + 1) }, "›"))),
      this.verdict(),
      liveOf(this.context) && liveForm(this.context, liveOf(this.context)),
      samplePicker(this.context, this.sample),
      this.data.sentence?.warning && el("p", { class: "missed", id: "file-warning", role: "alert" }, sentenceCase(this.data.sentence.warning), "."),
      el("div", { class: "head-grid" },
        el("section", { class: "card matrix", "aria-label": "Attention matrix" },
          el("div", { class: "bar" }, el("h2", {}, "Where it looks"), hasTerms && this.showChoice, el("span", { class: "push" }),
            downloads(() => `attention-${this.context.entry.name}-${this.site.kind}-l${this.site.layer}h${this.site.head}-${this.sample}`, {
              figure: () => this.scene?.figure(this.wholePicture(), this.title) ?? matrixSvg({ ...this.wholePicture(), title: this.title }),
              data: () => this.dataOut(), rows: () => matrixRows(this.wholePicture()) })),
          el("p", { class: "axes-hint" }, this.data.sentence ? axesHint(this.site, this.scene) : `Averaged step by step over the sentences that have both steps; rows need not add up to 100 %. ${stepsHint(this.site)}`),
          this.sentenceBox.element,
          this.scene?.element,
          this.heatmap.element,
          this.options()),
        hasTerms ? this.terms() : el("section", { class: "card terms" }, el("h2", {}, "Terms"), el("p", {}, samples.length || !liveOf(this.context) ? "The average attention is a mean over sentences and has no terms of its own. Choose a sentence to take it apart." : "Type a sentence above to see where the model looks.")),
        this.why),
      this.corpus(),
      el("details", { class: "explain", ontoggle: (event) => event.target.open && this.fillTable() }, el("summary", {}, "The matrix as a table"), this.asTable),
      guide());
    const pin = stateCell("pin");
    this.update();
    if (pin && pin.row < this.lines.rows.length && pin.column < this.lines.columns.length) this.heatmap.setPin(pin);
    else this.tell(null, false);
  }

  verdict() {
    const all = totals(this.site);
    const { error } = this.site;
    return el("section", { class: "card verdict", "aria-label": "Verdict" },
      el("p", { class: "verdict-line" }, verdictChip(this.site), el("span", {}, unbroken(sentenceCase(this.site.verdict.text)), ".")),
      all && el("p", { class: "verdict-shares" }, shareBar(all), el("span", { class: "muted" }, all.map((share, part) => `${PARTS[part].name}${PARTS[part].key === "residual" ? "" : ` (${PARTS[part].key})`} ${percent(share)}`).join(" · "),
        ` of what makes a row's scores differ; the terms add up to the score to ${Math.max(error.score, error.attention ?? 0).toExponential(0)}`)));
  }

  /** The sentence itself; what the columns name is shaded by the row looked at. */
  sentenceLines() {
    const { sentence } = this.data;
    if (!sentence) return { element: null, spans: [] };
    const { keys } = sides(this.site);
    const most = 400;
    const word = (text, place, isWrong) => el("bdi", { class: isWrong?.(place) ? "token wrong" : "token", title: isWrong?.(place) ? "not the target" : undefined }, shownToken(text));
    const line = (name, tokens, isWrong, around = (_, inside) => inside) => el("div", { class: "sentence-line" }, el("span", { class: "muted" }, name), el("span", { class: "tokens" },
      tokens.slice(0, most).map((text, place) => [around(place, word(text, place, isWrong)), " "]), tokens.length > most && `… ${tokens.length} tokens`));
    // Beside a sound or a picture, a word leads to its row; keys reach it in the matrix, without a stop at every word.
    const leads = this.scene && this.isWritten && ((place, inside) => el("button", { type: "button", class: "word", tabindex: -1, onclick: () => this.pinRow(place), onpointerenter: () => this.lookAt(place), onpointerleave: () => this.heatmap.setHover(null) }, inside));
    const target = sentence.target;
    const source = !sentence.scene && line("source", sentence.source);
    const hasWritten = sentence.predicted.length > 0;
    const written = hasWritten && line("written", sentence.predicted, target && ((place) => target[place] !== sentence.predicted[place]), leads || undefined);
    // The columns of a decoder that looks at itself are what it read, one place behind what it wrote.
    const read = (keys === "fed" || !hasWritten) && line("read", sentence.fed, undefined, (!hasWritten && leads) || undefined);
    const isRight = target && target.every((name, place) => name === sentence.predicted[place]);
    const element = el("div", { class: "sentence" }, source, read, written, target && !isRight && line("should be", target));
    const shaded = keys === "source" ? source : read;
    return { element, spans: shaded ? [...shaded.querySelectorAll("bdi")] : [] };
  }

  /** The cell a word looks at most. */
  cellOf(place) {
    const row = this.lines.rows.findIndex(({ group }) => group.includes(place));
    const { values, nColumns } = this.truthShown;
    return row < 0 ? null : { row, column: Math.min(argmax(values, row * nColumns, nColumns), this.heatmap.nColumns() - 1) };
  }

  lookAt(place) {
    const cell = this.cellOf(place);
    if (cell) this.heatmap.setHover(cell);
  }

  pinRow(place) {
    const cell = this.cellOf(place);
    const isSame = cell && this.heatmap.pin?.row === cell.row;
    if (cell && !isSame) this.heatmap.reveal(cell);
    this.heatmap.setPin(isSame ? null : cell);
  }

  options() {
    const quiet = (changes) => change(changes, { isQuiet: true });
    const redo = (changes) => {
      quiet(changes);
      // Of other lines another cell would stand at its place.
      if ("pin" in changes) {
        this.lines = this.axes();
        this.heatmap.pin = this.heatmap.hover = null;
      }
      this.update();
      this.tell(this.heatmap.hover ?? this.heatmap.pin, Boolean(this.heatmap.pin));
    };
    return el("div", { class: "bar options" },
      slider("Hide weights below", { min: 0, max: 0.5, step: 0.01, value: this.threshold, id: "threshold", show: (value) => percent(value) }, (value) => {
        this.threshold = value;
        quiet({ threshold: value || null });
        this.update();
      }),
      checkbox("stretch colours", this.isStretched, (isOn) => { this.isStretched = isOn; redo({ stretch: isOn ? "1" : "0" }); }, "let the highest weight have the full colour, instead of 100 %"),
      this.lines.canHide && checkbox("hide end and other signs", this.isHiding, (isOn) => { this.isHiding = isOn; redo({ hide: isOn ? "1" : null, pin: null }); }, "leave start, end, padding and language tokens out, and let the other weights add up to 100 %"),
      this.lines.canJoin && checkbox("whole words", this.isWords, (isOn) => { this.isWords = isOn; redo({ words: isOn ? "1" : null, pin: null }); }, "join the pieces of a word: weights of its pieces are added, rows averaged"),
      this.scene?.options(),
      el("span", { class: "zoom" }, el("button", { type: "button", "aria-label": "smaller cells", onclick: () => this.heatmap.setZoom(this.heatmap.zoom / 1.5) }, "−"), el("button", { type: "button", "aria-label": "larger cells", onclick: () => this.heatmap.setZoom(this.heatmap.zoom * 1.5) }, "+")));
  }

  terms() {
    const { nPieces, bias } = this.data;
    const shares = pieceShares(this.site);
    this.buttons = [];
    const button = (piece, name) => {
      const canvas = el("canvas", { "aria-hidden": "true" });
      const share = shares?.[piece];
      const isOn = () => (piece === nPieces ? this.hasBias : Boolean((this.mask >> piece) & 1));
      const press = el("button", { type: "button", class: "term", "data-piece": piece, title: `${name}: switch on or off`, "aria-label": `${name}, ${percent(piece === nPieces ? this.site.shares?.position_bias : share)}`,
        onclick: () => this.toggle(piece, name) },
      canvas, el("span", { class: "term-share" }, percent(piece === nPieces ? this.site.shares?.position_bias : share)));
      this.buttons.push({ press, canvas, piece, isOn });
      return press;
    };
    const head = (part, text) => el("span", { class: "term-head", style: { "--part": colours().parts[part] }, title: PARTS[part].title }, text ?? PARTS[part].name);
    const grid = nPieces === 9
      ? [el("span", { class: "term-corner" }, "query ↓ key →"), ...PARTS.map((_, part) => head(part)),
        ...PARTS.flatMap(({ name }, query) => [head(query), ...PARTS.map((key, part) => button(3 * query + part, `${name} × ${key.name}`))])]
      : [el("span", { class: "term-corner" }, "part →"), ...PARTS.map((_, part) => head(part)),
        ...["query", "key"].flatMap((side, row) => [el("span", { class: "term-head" }, side), ...PARTS.map(({ name }, part) => button(3 * row + part, `${side}: ${name}`))])];
    const presets = [["everything", allPieces(this.data), true], ["position", madeOf(nPieces, [0]), true], ["token", madeOf(nPieces, [1]), false], ["position + token", madeOf(nPieces, [0, 1]), true],
      ["without position", nPieces === 9 ? allPieces(this.data) & ~1 : madeOf(nPieces, [1, 2]), false]];
    this.presets = presets.map(([name, mask, withBias]) => ({ name, mask, withBias, press: el("button", { type: "button", class: "quiet", "data-preset": name, onclick: () => this.choose(mask, withBias) }, name) }));
    const live = liveOf(this.context);
    const again = live && el("div", { class: "again" }, el("button", { type: "button", id: "rerun", onclick: () => this.rerun(live) }, "decode again with these terms"), this.again = el("output", { "aria-live": "polite" }), this.otherComponents(live));
    return el("section", { class: "card terms", "aria-label": "Terms of the score" },
      el("div", { class: "bar" }, el("h2", {}, nPieces === 9 ? "Why it looks there: nine terms" : "Why it looks there: six parts"),
        downloads(() => `terms-${this.context.entry.name}-${this.site.kind}-l${this.site.layer}h${this.site.head}-${this.sample}`, { figure: () => this.termsFigure(), rows: () => this.termRows() })),
      el("p", { class: "muted small" }, "The score is their sum. Press one to switch it off; the softmax is rebuilt at once."),
      el("div", { class: "term-grid", role: "group", "aria-label": "Terms: rows are parts of the query, columns parts of the key" }, grid),
      bias && el("div", { class: "term-bias" }, button(nPieces, "bias of positions"), el("span", { class: "muted" }, "bias of positions")),
      el("div", { class: "presets", role: "group", "aria-label": "Choose terms" }, el("span", { class: "muted" }, "keep"), this.presets.map(({ press }) => press)),
      this.readout,
      again);
  }

  /** A model is run with the components it was opened with; the sentences of a job's report are split by others. */
  otherComponents(live) {
    if (live.isOwn(this.context.id) || live.asked(this.context.id, this.sample) !== undefined) return null;
    return el("p", { class: "muted small", id: "other-components" }, "Decoded with terms by the components the model was opened with, not by those of this report, which were fitted on other sentences: the terms switched off are near those pictured, not the same.");
  }

  toggle(piece, name) {
    if (piece === this.data.nPieces) this.hasBias = !this.hasBias;
    else this.mask ^= 1 << piece;
    this.chosen();
    say(`${name} ${this.buttons.find((button) => button.piece === piece).isOn() ? "on" : "off"}; ${this.readout.textContent}`);
  }

  choose(mask, withBias) {
    this.mask = mask;
    this.hasBias = withBias || !this.data.bias;
    this.chosen();
  }

  chosen() {
    const isAll = this.mask === allPieces(this.data) && this.hasBias;
    // Whoever switches a term wants to see what comes of it.
    if (this.show_ === "true" && !isAll) this.show_ = "rebuilt";
    const off = (allPieces(this.data) & ~this.mask) | (this.hasBias ? 0 : 1 << this.data.nPieces);
    change({ off: off || null, show: this.show_ === "true" ? null : this.show_ }, { isQuiet: true });
    this.update();
    this.tell(this.heatmap.hover ?? this.heatmap.pin, Boolean(this.heatmap.pin));
  }

  /** Which places the lines stand for. */
  groups() {
    const { rows, columns } = this.lines;
    const of = (lines) => lines.map((line) => line.group);
    return { rows: of(rows), columns: of(columns), isWhole: rows.length === this.data.nQueries && columns.length === this.data.nKeys };
  }

  /** A matrix as its lines show it. */
  shown(values, isWeights) {
    const { rows, columns, isWhole } = this.groups();
    return view(values, this.data.nKeys, rows, columns, { isWeights, isWhole });
  }

  /** Attention rebuilt from the terms that are on; of a large matrix the lines in sight first. What is there or on its way stays: gives whether anything began anew. */
  rebuilt() {
    if (this.rebuiltLines?.truth !== this.truthShown) this.rebuiltLines = new RebuiltLines({ site: this.data, ...this.groups(), truth: this.truthShown });
    const lines = this.rebuiltLines;
    if (!lines.choose(this.mask, this.hasBias, this.show_ === "difference")) return false;
    if (!lines.isDone) lines.finish(() => this.rebuiltLines === lines && this.context.isCurrent(), () => {
      this.fillReadout();
      this.heatmap.show(this.picture());
    });
    return true;
  }

  /** Every term as the lines show it, each row less its mean; the bias of positions last. */
  pieces() {
    if (this.centred?.lines === this.lines) return this.centred.list;
    const { nPieces, nQueries, nKeys, pieces, bias } = this.data;
    const size = nQueries * nKeys;
    const list = Array.from({ length: nPieces }, (_, piece) => centred(this.shown(pieces.subarray(piece * size, (piece + 1) * size), false)));
    if (bias) list.push(centred(this.shown(bias, false)));
    this.centred = { lines: this.lines, list };
    return list;
  }

  /** What the large matrix shows, and what is seen or heard with it. */
  picture() {
    const plain = this.plainPicture();
    return this.scene?.decorate(plain) ?? plain;
  }

  plainPicture() {
    const { rows, columns } = this.lines;
    const common = { rows, columns, threshold: this.threshold };
    const weights = (matrix, caption) => ({ ...common, matrix, kind: "weights", largest: this.isStretched ? Math.max(1e-6, largest(matrix.values)) : 1, caption });
    const lines = this.rebuiltLines;
    const need = (from, to) => lines.need(from, to);
    if (this.show_ === "rebuilt") {
      return { ...common, need, matrix: lines.matrix, kind: "weights", largest: this.isStretched ? Math.max(1e-6, lines.largestOf(lines.matrix)) : 1, caption: "share of attention, rebuilt" };
    }
    if (this.show_ === "difference") {
      return { ...common, need, matrix: lines.difference, kind: "signed", isShare: true, largest: Math.max(0.01, this.isStretched ? lines.largestOf(lines.difference) : 1), caption: "rebuilt less the model's own" };
    }
    if (this.show_ === "value" && this.data.valueNorms) {
      const { nKeys, valueNorms } = this.data;
      const matrix = this.shown(this.truth.map((weight, place) => weight * valueNorms[place % nKeys]), false);
      return { ...common, matrix, kind: "amount", threshold: 0, largest: Math.max(1e-9, largest(matrix.values)), caption: "length of what each token adds" };
    }
    return weights(this.truthShown, "share of attention");
  }

  /** The same with every line there, to be taken away. */
  wholePicture() {
    this.rebuiltLines?.need(0, this.lines.rows.length);
    return this.picture();
  }

  update() {
    const { nPieces } = this.data;
    if (this.shownLines !== this.lines) {
      this.shownLines = this.lines;
      this.truthShown = this.shown(this.truth, true);
    }
    if (nPieces) {
      const isNew = this.rebuilt();
      // What is seen now is there before anything is drawn, so that colours can be stretched to it.
      const { first, last } = this.heatmap.seenRows();
      this.rebuiltLines.need(first, Math.min(last, this.lines.rows.length));
      this.drawTerms();
      for (const { press, isOn } of this.buttons) press.setAttribute("aria-pressed", String(isOn()));
      const mask = this.mask;
      for (const preset of this.presets) preset.press.setAttribute("aria-pressed", String(preset.mask === mask && (!this.data.bias || preset.withBias === this.hasBias)));
      // It is said aloud whenever it is filled.
      if (isNew) this.fillReadout();
      if (this.chosenShow !== this.show_) this.fillChoice();
    }
    this.heatmap.show(this.picture());
    this.scene?.refresh();
  }

  fillChoice() {
    this.chosenShow = this.show_;
    fill(this.showChoice, choice("What the matrix shows", SHOWN.filter(([name]) => name !== "value" || this.data.valueNorms), this.show_, (name) => {
        this.show_ = name;
        change({ show: name === "true" ? null : name }, { isQuiet: true });
        this.update();
        this.showChoice.querySelector(`[data-value="${name}"]`)?.focus();
      }));
  }

  /** The small pictures, once for the lines shown. */
  drawTerms() {
    const nShown = this.scene?.nShown ?? this.lines.columns.length;
    if (this.scene?.drawsTerms || (this.drawnLines === this.lines && this.drawnColumns === nShown)) return;
    [this.drawnLines, this.drawnColumns] = [this.lines, nShown];
    const list = this.pieces();
    const most = list.reduce((sum, matrix) => Math.max(sum, largestOf(matrix, nShown)), 1e-9);
    for (const { canvas, piece } of this.buttons) thumbnail(canvas, list[piece], "signed", most, nShown);
  }

  /** All terms as one figure, on one scale; large ones thinned out. */
  termsFigure() {
    const list = this.pieces();
    const most = list.reduce((sum, matrix) => Math.max(sum, largest(matrix.values)), 1e-9);
    const shares = pieceShares(this.site) ?? [];
    const scale = { kind: "signed", largest: most, threshold: 0 };
    const panels = list.map((matrix, piece) => matrixPanel({ ...scale, matrix: thinned(matrix, MOST_IN_TERM), rows: [], columns: [],
      title: `${this.pieceName(piece)}: ${percent(piece === this.data.nPieces ? this.site.shares?.position_bias : shares[piece])}` }, true));
    return panelsSvg(`Terms of the score · ${this.title}`, [...panels, rampPanel({ ...scale, caption: "above or below the mean of a row" })], 3);
  }

  /** The same as a table: a line for every cell. */
  termRows() {
    const { rows, columns } = this.lines;
    const list = this.pieces();
    const head = ["row", "column", ...list.map((_, piece) => this.pieceName(piece))];
    return [head, ...rows.flatMap((line, row) => columns.map((column, place) => [line.text, column.text, ...list.map(({ values }) => values[row * columns.length + place])]))];
  }

  pieceName(piece) {
    const { nPieces } = this.data;
    if (piece === nPieces) return "bias of positions";
    const [query, key] = piecePartsOf(nPieces, piece);
    return nPieces === 9 ? `${PARTS[query].name} × ${PARTS[key].name}` : query === null ? `key: ${PARTS[key].name}` : `query: ${PARTS[query].name}`;
  }

  fillReadout() {
    const close = this.rebuiltLines.closeness();
    const nOn = this.buttons.filter(({ isOn }) => isOn()).length;
    fill(this.readout,
      el("div", { class: "figures" },
        el("div", { class: "figure" }, el("strong", { id: "agreement", "data-value": close?.argmax }, close ? percent(close.argmax) : "…"), el("span", {}, "of steps look at the same token")),
        el("div", { class: "figure" }, el("strong", { id: "tv", "data-value": close?.tv }, close ? number(close.tv, 3) : "…"), el("span", {}, "total variation: 0 the same, 1 nothing in common"))),
      el("p", { class: "muted small" }, `rebuilt from ${nOn} of ${this.buttons.length} ${this.data.nPieces === 9 ? "terms" : "parts"}, on this sentence`));
  }

  /** The report's own figures, over all sentences. */
  corpus() {
    const names = { temporal: "position alone", "temporal+bias": "position with its bias", input: "token alone", residual: "the rest alone", "temporal+input": "position and token", "temporal+input+bias": "position and token with bias", "no-temporal": "all but position × position", uniform: "the same weight everywhere", average: "the average attention" };
    const isRun = Object.values(this.site.rebuilt).some((rebuilt) => (rebuilt.accuracy ?? null) !== null);
    // Subsets that were asked for come last, under their own names.
    const chosen = Object.keys(this.site.rebuilt).filter((name) => !(name in names)).map((name) => [name, name]);
    const rows = [...Object.entries(names), ...chosen].filter(([name]) => this.site.rebuilt[name]).map(([name, text]) => {
      const rebuilt = this.site.rebuilt[name];
      return [text, percent(rebuilt.argmax), number(rebuilt.tv, 3), ...(isRun ? [percent(rebuilt.accuracy, 1)] : [])];
    });
    return explain(`How much is kept, over all ${this.context.entry.report.corpus.pairs} sentences`,
      el("div", { class: "table-scroll" }, table("Attention rebuilt from some terms, beside the true one", ["Attention rebuilt from", "Same token", "Total variation", ...(isRun ? ["Words right with it in place"] : [])], rows)),
      isRun ? el("p", { class: "muted" }, `The model itself gets ${percent(this.context.entry.report.task.word_accuracy, 1)} of the words right. The last column is the causal check: the model was run again with the rebuilt attention in place of its own.`) : el("p", { class: "muted" }, "The model was not at hand to be run again, so nothing is said here about what causes its answers."));
  }

  words({ row, column }) {
    const { rows, columns } = this.lines;
    this.rebuiltLines?.need(row, row + 1);
    const value = this.heatmap.data.matrix.values[row * columns.length + column];
    const what = this.heatmap.isShare() ? percent(value, 1) : number(value, 3);
    const line = rows[row];
    return `row ${row + 1} of ${rows.length}, ${line.before === undefined ? shownToken(line.text) : `reads ${shownToken(line.before)}, writes ${shownToken(line.text)}`}; column ${column + 1} of ${columns.length}, ${shownToken(columns[column].text)}; ${what}`;
  }

  /** Says everything about one cell. */
  tell(cell, isPinned) {
    const { rows, columns } = this.lines;
    if (isPinned || !this.heatmap.pin) change({ pin: this.heatmap.pin ? `${this.heatmap.pin.row},${this.heatmap.pin.column}` : null }, { isQuiet: true });
    this.shadeSentence(cell);
    const isThere = cell && rows[cell.row] && columns[cell.column];
    this.scene?.tell(isThere ? cell.row : null, isThere ? cell.column : null);
    if (!isThere) {
      fill(this.why, el("h2", {}, "One cell"), el("p", { class: "muted" }, "Point at a cell, or move to it with the arrow keys, to see why it is bright. Click or Enter keeps it."));
      return;
    }
    const line = rows[cell.row];
    const at = cell.row * columns.length + cell.column;
    const weight = this.truthShown.values[at];
    this.rebuiltLines?.need(cell.row, cell.row + 1);
    const rebuilt = this.data.nPieces ? this.rebuiltLines.matrix.values[at] : null;
    const step = columns[cell.column].group[0];
    const code = this.scene && this.data.sentence.source[step];
    const stands = code && codeExamples(this.context.entry, code);
    const what = line.before === undefined ? [token(line.text)] : ["After ", token(line.before), " it writes ", token(line.text)];
    fill(this.why,
      el("h2", {}, "One cell", isPinned && el("span", { class: "pinned" }, "pinned")),
      el("p", { class: "cell-words" }, ...what, " and gives ", token(columns[cell.column].text), el("span", { class: "muted" }, ` (place ${step})`), " ",
        el("strong", { id: "cell-weight", "data-value": weight }, percent(weight, 1)), " of its attention",
        rebuilt !== null && this.mask !== allPieces(this.data) && [", rebuilt ", el("strong", {}, percent(rebuilt, 1))], "."),
      stands && el("p", { class: "code-line" }, el("span", { class: "muted" }, "its code ", token(code), " stands for "), stands),
      this.data.nPieces > 0 && this.bars(at));
  }

  /** The terms of one score, above or below the mean of its row. */
  bars(at) {
    const values = this.pieces().map(({ values: list }, piece) => ({ piece, value: list[at] }));
    const most = Math.max(1e-9, ...values.map(({ value }) => Math.abs(value)));
    const total = values.reduce((sum, { value }) => sum + value, 0);
    const { css } = colours().signed;
    return el("div", { class: "bars" },
      el("p", { class: "muted small" }, `Its score is ${number(Math.abs(total))} ${total < 0 ? "below" : "above"} the mean of its row, because of:`),
      [...values].sort((a, b) => Math.abs(b.value) - Math.abs(a.value)).map(({ piece, value }) => {
        const width = `${(50 * Math.abs(value)) / most}%`;
        const isOn = this.buttons.find((button) => button.piece === piece).isOn();
        return el("div", { class: isOn ? "bar-row" : "bar-row off" }, el("span", { class: "bar-name" }, this.pieceName(piece)),
          el("span", { class: "bar-track", "aria-hidden": "true" }, el("span", { class: "bar-fill", style: { width, left: value < 0 ? `calc(50% - ${width})` : "50%", background: css[value < 0 ? 20 : css.length - 21] } })),
          el("span", { class: "bar-value" }, number(value)));
      }));
  }

  shadeSentence(cell) {
    const { spans } = this.sentenceBox;
    const { weights } = colours();
    const row = cell && this.lines.rows[cell.row]?.group[0];
    spans.forEach((span, place) => {
      if (row === null || row === undefined) {
        span.style.removeProperty("background");
        span.style.removeProperty("color");
        return;
      }
      const at = weightPlace(this.truth[row * this.data.nKeys + place]);
      span.style.background = weights.css[at];
      span.style.color = isLight(weights.rgb[at]) ? "#111" : "#fff";
    });
  }

  fillTable() {
    const { rows, columns } = this.lines;
    if (rows.length * columns.length > TABLE_CELLS) {
      fill(this.asTable, el("p", {}, `${rows.length} × ${columns.length} cells are too many to read; the CSV above has them all.`));
      return;
    }
    const { matrix, kind } = this.wholePicture();
    const axes = axisNames(this.site);
    fill(this.asTable, table(`Rows: ${axes.rows}. Columns: ${axes.columns}.`, ["", ...columns.map(lineName)], rows.map((line, row) =>
      [lineName(line), ...Array.from({ length: columns.length }, (_, column) => {
        const value = matrix.values[row * columns.length + column];
        return kind === "weights" ? percent(value) : number(value, 2);
      })])));
  }

  dataOut() {
    const { sentence, nPieces, nQueries, nKeys } = this.data;
    const picture = this.wholePicture();
    return {
      // Sounds and pictures are figures, not numbers.
      head: { kind: this.site.kind, layer: this.site.layer, head: this.site.head }, sentence: sentence && { ...sentence, scene: undefined }, shown: this.show_, terms_on: this.buttons?.filter(({ isOn }) => isOn()).map(({ piece }) => piece),
      rows: picture.rows.map(({ text, before }) => ({ fed: before, text })), columns: picture.columns.map(({ text }) => text),
      shape: [picture.matrix.nRows, picture.matrix.nColumns], values: picture.matrix.values, terms: nPieces ? { shape: [nPieces, nQueries, nKeys], values: this.data.pieces } : null,
    };
  }

  async rerun(live) {
    fill(this.again, "decoding …");
    const off = allPieces(this.data) & ~this.mask;
    try {
      const { predicted } = await live.rerun(this.context.id, this.sample, this.number, { mask: this.mask, off, bias: this.hasBias });
      const before = this.data.sentence.predicted;
      fill(this.again, "it now writes: ", predicted.map((name, place) => [el("bdi", { class: name === before[place] ? "token" : "token wrong" }, shownToken(name)), " "]));
    } catch (error) {
      fill(this.again, `it could not be run: ${error.message}`);
    }
  }
}

function sentenceCase(text) {
  return text ? text[0].toUpperCase() + text.slice(1) : "There is no verdict";
}

/** The largest size of any number in the first columns. */
function largestOf({ values, nRows, nColumns }, nShown) {
  if (nShown === nColumns) return largest(values);
  return Array.from({ length: nRows }, (_, row) => largest(values.subarray(row * nColumns, row * nColumns + nShown))).reduce((a, b) => Math.max(a, b), 0);
}

/** What rows and columns of a head's matrix are. */
function axisNames(site) {
  const { queries, keys } = sides(site);
  return { rows: queries === "source" ? "a source token" : "what the decoder writes", columns: keys === "source" ? "the source tokens looked at" : "the tokens read so far" };
}

/** The same where sentences are averaged step by step. */
function stepsHint(site) {
  const side = (name) => (name === "source" ? "steps of the source" : "steps of the decoder");
  const { queries, keys } = sides(site);
  return `Rows are ${side(queries)}, columns ${side(keys)}.`;
}

function axesHint(site, scene) {
  if (scene) return site.kind === "encoder-self" ? `Rows: a step of the source. ${scene.hint}` : `Rows: a step of the decoder, the token it read → the token it writes. ${scene.hint}`;
  if (site.kind === "encoder-self") return "Rows: a source token. Columns: the source tokens it looks at.";
  if (site.kind === "decoder-self") return "Rows: a step of the decoder, the token it read → the token it writes. Columns: the tokens it has read.";
  return "Rows: a step of the decoder, the token it read → the token it writes. Columns: the source tokens it looks at. Each row adds up to 100 %.";
}

function guide() {
  return explain("How to read this",
    el("p", {}, "To write a word, the decoder gives every source token a score; the softmax of a row of scores is its attention. A state is split into three parts that add up to it: what its position alone explains, what its token alone explains, and the rest. A score is a product of two states, so it is a sum of three times three terms. (An additive score splits into three parts of the query and three of the key.)"),
    el("p", {}, "The small pictures are these terms, blue where they raise a score above the mean of its row and orange where they lower it, all on one scale. The percentages say how much of what varies along a row each term makes, over all sentences; they add up to 100 %, and a term that works against the others is below zero."),
    el("p", {}, "Switch terms off and watch the two figures: if attention hardly changes without a term, the term was not what decided. That is evidence about attention, not yet about the answer: for that, see the causal check under “How much is kept”."));
}
