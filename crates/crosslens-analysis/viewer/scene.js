// What a source that is no text looks or sounds like, and what its codes stand for.

import { el, shownToken } from "./dom.js";
import { sides } from "./parts.js";
import { Picture } from "./picture.js";
import { Sound, seconds } from "./sound.js";

/** Examples of a code that are shown. */
const MOST_EXAMPLES = 6;
/** Side of a patch shown as an example, in pixels. */
const CROP = 44;

/** What is seen or heard where a head looks; null where it looks at text. `view` is a HeadView. */
export function sceneOf(view) {
  const { sentence } = view.data;
  if (!sentence?.scene || sides(view.site).keys !== "source") return null;
  return sentence.scene.kind === "sound" ? new Sound(sentence.scene, view) : new Picture(sentence.scene, view);
}

/** The frames or patches nearest to a code; null where nothing is known of it. */
export function codeExamples(entry, name) {
  const found = (entry.codes ?? []).find((code) => code.name === name);
  const shown = found?.examples.filter(({ sample }) => entry.samples[sample]?.scene).slice(0, MOST_EXAMPLES);
  if (!shown?.length) return null;
  return el("span", { class: "code-examples", role: "group", "aria-label": `what ${shownToken(name)} stands for` }, shown.map(({ sample, step }) => example(entry.samples[sample].scene, sample, step)));
}

function example(scene, sample, step) {
  if (scene.kind === "sound") return el("span", { class: "code-moment" }, `${sample + 1}: ${seconds(step * scene.seconds_per_step, 2)}`);
  const { n_special: nSpecial, rows, columns, width, height } = scene;
  const patch = step - nSpecial;
  if (patch < 0 || patch >= rows * columns) return el("span", { class: "code-moment" }, `${sample + 1}: special ${step + 1}`);
  const place = `sentence ${sample + 1}, patch (${Math.floor(patch / columns) + 1}, ${(patch % columns) + 1})`;
  const canvas = el("canvas", { class: "code-patch", width: CROP, height: CROP, role: "img", "aria-label": place, title: place });
  const image = new Image();
  image.src = scene.png;
  image.decode().then(() => {
    const [x, y] = [width / columns, height / rows];
    canvas.getContext("2d").drawImage(image, (patch % columns) * x, Math.floor(patch / columns) * y, x, y, 0, 0, CROP, CROP);
  }, () => canvas.remove());
  return canvas;
}
