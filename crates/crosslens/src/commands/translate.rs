use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use crosslens_lab::analysis::Token;
use crosslens_lab::analysis::explain::Options;
use crosslens_lab::analysis::page::Page;
use crosslens_lab::train::RunFolder;
use crosslens_lab::{
    Attention, Decoding, EarlyStopping, ImportedModel, ImportedOptions, ImportedSentences, PretrainedModel, PretrainedModelError,
    PretrainedSubject, Sampling, Shard, ShowOptions, Shown, Translation,
};
use serde_json::json;

use super::memory::state_for_imported;
use super::opening::Opening;
use super::report::{amount, counted};
use crate::failure::Failure;
use crate::hub::Hub;
use crate::progress::SentenceBar;
use crate::{input, output};

/// Lets a model write: translate, summarise, or whatever it was trained for.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of a run, one of Hugging Face's, or a mapped model (docs/import.md).
    #[arg(value_name = "MODEL")]
    pub(super) model: PathBuf,
    #[command(flatten)]
    pub(super) hub: Hub,
    /// The text; `-` or nothing for lines from standard input.
    #[arg(value_name = "TEXT")]
    pub(super) text: Option<String>,
    #[command(flatten)]
    opening: Opening,
    /// Hypotheses that are followed side by side. Default: what the model's files say.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) beams: Option<u16>,
    /// Texts for each source, the best first; at most as many as there are beams.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) n_best: u16,
    /// A text's log probability is divided by its length to this power.
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    pub(super) length_penalty: Option<f64>,
    /// Most tokens to write. Default: what the model's files say.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) max_tokens: Option<u16>,
    /// Draw tokens by their probability instead of taking the likeliest.
    #[arg(long, conflicts_with_all = ["beams", "n_best"])]
    pub(super) sample: bool,
    /// With --sample: below 1 likelier tokens gain. Default: what the model's files say, or 1.
    #[arg(long, value_name = "X", requires = "sample")]
    temperature: Option<f32>,
    /// With --sample: draw from so many likeliest tokens; 0 for all. Default: what the model's files say, or 50 as in transformers.
    #[arg(long, value_name = "K", requires = "sample")]
    top_k: Option<usize>,
    /// With --sample: draw from the likeliest tokens that together reach this probability. Default: what the model's files say, or 1.
    #[arg(long, value_name = "P", requires = "sample")]
    top_p: Option<f64>,
    /// With --sample: the same seed, the same text.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "sample")]
    seed: u64,
    /// Let every text begin like this.
    #[arg(long, value_name = "TEXT")]
    pub(super) prefix: Option<String>,
    /// Begin each line with its score and a tab. Of a run only.
    #[arg(long, conflicts_with = "json")]
    pub(super) scores: bool,
    /// Replace words without a name by the source word most looked at. Of a run only.
    #[arg(long)]
    pub(super) replace_unknown: bool,
    /// Write the attention of every text into a .safetensors file, under the number of its line from 0. Of a run only.
    #[arg(long, value_name = "FILE")]
    pub(super) attention: Option<PathBuf>,
    /// Threads, each for one text at a time; 0 for one per core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) threads: usize,
    /// Write a page that shows how each text came about, for any browser, without a network; of many texts the first 1000 are explained and
    /// 50 shown one by one.
    #[arg(long, value_name = "report.html")]
    explain: Option<PathBuf>,
    /// With --explain: sentences that say what positions and tokens are like, one a line. Without, the translated ones themselves do.
    #[arg(long, value_name = "FILE", requires = "explain")]
    corpus: Option<PathBuf>,
    /// With --explain: sums that say so, made by `crosslens fit`.
    #[arg(long, value_name = "X.stats.safetensors", requires = "explain", conflicts_with = "corpus")]
    components: Option<PathBuf>,
    /// One JSON object a text on standard output.
    #[arg(long)]
    pub(super) json: bool,
}

/// Texts that a page is made of, and those it shows in full.
const EXPLAINED: usize = 1000;
const SHOWN: usize = 50;
/// A line of standard input may be a whole article, to be summarised; a longer one is none.
const MAX_TEXT_BYTES: usize = 1 << 20;
/// Lines of standard input that are read before the first of them is answered; somebody who types waits for none.
const LINES: usize = 32;

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if RunFolder::at(&arguments.model).holds_run() {
        if arguments.explain.is_some() {
            let hint = format!("crosslens report {}", arguments.model.display());
            return Err(Failure::usage("--explain is for models that were not trained here").hint(hint));
        }
        arguments.opening.refuse()?;
        return super::translate_run::run(arguments);
    }
    if arguments.scores || arguments.replace_unknown || arguments.attention.is_some() {
        return Err(Failure::usage("--scores, --replace-unknown and --attention are for networks trained here")
            .hint("--json, or `crosslens attend`"));
    }
    let model = ImportedModel::open_with(&arguments.model, &arguments.opening.choices(), Attention::Cross)?;
    let how = match &model {
        ImportedModel::Pretrained(model) => {
            warn(arguments, model);
            Some(decoding(arguments, model)?)
        }
        ImportedModel::Mapped(_) => {
            refuse_search(arguments)?;
            None
        }
    };
    let mut translator = Translator { arguments, model: &model, how, subject: None, written: Vec::new() };
    match arguments.text.as_deref() {
        Some(text) if text.trim().is_empty() => {
            let hint = format!("crosslens translate {} \"some text\"", arguments.model.display());
            return Err(Failure::refused("the text is empty").hint(hint));
        }
        Some(text) if text != "-" => translator.translate(&[text.to_owned()], None)?,
        _ => {
            let at_once = if std::io::stdin().is_terminal() { 1 } else { LINES };
            let mut input = input::Lines::of(std::io::stdin().lock(), MAX_TEXT_BYTES);
            let (mut lines, mut first) = (Vec::with_capacity(at_once), 0);
            loop {
                let next = input.next_line();
                let is_over = !matches!(next, Ok(Some(_)));
                // What stands before a line that cannot be read is answered all the same.
                let (line, failure) = next.map_or_else(|failure| (None, Some(failure)), |line| (line, None));
                lines.extend(line.map(|(_, line)| line));
                if is_over || lines.len() == at_once {
                    translator.translate(&lines, Some(first))?;
                    first += lines.len();
                    lines.clear();
                }
                if let Some(failure) = failure {
                    return Err(failure);
                }
                if is_over {
                    break;
                }
            }
        }
    }
    let Translator { written, .. } = translator;
    match &arguments.explain {
        Some(page) if written.is_empty() => {
            output::note(&format!("no text was written, so that `{}` is not made", page.display()));
            Ok(())
        }
        Some(page) => explain(arguments, &model, &written, page),
        None => Ok(()),
    }
}

/// Translates line after line, and keeps the first of them where a page is asked for.
struct Translator<'a> {
    arguments: &'a Arguments,
    model: &'a ImportedModel,
    /// How a pretrained model is searched; a mapped one writes its likeliest word.
    how: Option<Decoding>,
    /// A pretrained model on its threads, made when it is first needed.
    subject: Option<PretrainedSubject>,
    written: Vec<(String, Vec<Token>)>,
}

impl Translator<'_> {
    /// Shows what becomes of each line, in their order; a line without words stays one. `first` is the number of the first line of standard
    /// input, from 0; none of a text that was given.
    fn translate(&mut self, lines: &[String], first: Option<usize>) -> Result<(), Failure> {
        let texts: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !line.trim().is_empty()).collect();
        let mut answers = self.answers(&texts)?.into_iter();
        for (number, line) in lines.iter().enumerate() {
            if line.trim().is_empty() {
                show_blank(self.arguments, line);
                continue;
            }
            let answer = answers.next().expect("one for each text");
            let translations = answer.map_err(|failure| match first {
                Some(first) => failure.in_file(input::place(first + number + 1).as_ref()),
                None => failure,
            })?;
            translations.iter().for_each(|translation| show(self.arguments, line, translation));
            let is_kept = self.arguments.explain.is_some() && self.written.len() < EXPLAINED;
            if let Some(best) = translations.into_iter().next().filter(|_| is_kept) {
                self.written.push((line.clone(), best.tokens));
            }
        }
        Ok(())
    }

    /// What becomes of each text. A pretrained model takes several at a time.
    fn answers(&mut self, texts: &[&str]) -> Result<Vec<Result<Vec<Translation>, Failure>>, Failure> {
        let most = self.arguments.max_tokens.map_or(usize::MAX, usize::from);
        let (ImportedModel::Pretrained(model), Some(how)) = (self.model, &self.how) else {
            let greedily = |text: &&str| -> Result<Vec<Translation>, Failure> { Ok(vec![self.model.translate_greedily(text, most)?]) };
            return Ok(texts.iter().map(greedily).collect());
        };
        let subject = match &mut self.subject {
            Some(subject) => subject,
            none => none.insert(model.subject_on(self.arguments.threads)?),
        };
        Ok(model.translate_all(texts, how, subject).into_iter().map(|answer| answer.map_err(Failure::from)).collect())
    }
}

/// Writes a page of the texts.
fn explain(arguments: &Arguments, model: &ImportedModel, written: &[(String, Vec<Token>)], page: &Path) -> Result<(), Failure> {
    let imported =
        ImportedOptions { corpus: arguments.corpus.clone(), components: arguments.components.clone(), ..ImportedOptions::default() };
    let bar = SentenceBar::new();
    let mut progress = |progress| bar.show(progress);
    let corpus = imported.sentences(model, EXPLAINED as u64, arguments.threads, &mut progress)?;
    let pairs: Vec<(&str, Vec<Token>)> = written.iter().map(|(source, tokens)| (source.as_str(), tokens.clone())).collect();
    let sentences = model.written(&pairs)?;
    let options = ShowOptions {
        n_sentences: sentences.len(),
        seed: 0,
        imported,
        explain: Options { samples: SHOWN, geometry: true, n_threads: arguments.threads, ..Options::default() },
    };
    // The corpus is summed as well, and stays in memory beside the texts.
    let all = corpus.iter().cloned().fold(sentences.clone(), ImportedSentences::then);
    bar.aside(|| state_for_imported(model, &all, &options.of_imported()));
    drop(all);
    let sums = match &corpus {
        Some(corpus) => {
            let stats = model.fit(corpus, Shard::WHOLE, arguments.threads, &mut progress)?;
            Some(stats.streams.into_iter().map(|stream| stream.sums).collect())
        }
        None => options.imported.sums(model, &arguments.model)?,
    };
    let mut shown = Shown::of_imported(model, &sentences, sums.as_deref(), &options, &mut progress)?.found_at(&arguments.model)?;
    shown.explained.report.corpus.source = "translated here".into();
    let title = format!("Crosslens: translations of {}", shown.name);
    let size = shown.on(Page::new()).title(title).write(page)?;
    output::note(&format!("{}: {}, {} explained", page.display(), amount(size), counted(written.len(), "text")));
    if sums.is_none() {
        output::note(
            "what positions and tokens are like was taken from these texts alone, where a word seen once explains itself: --corpus FILE takes it from others",
        );
    }
    Ok(())
}

/// A mapped model writes its likeliest word each time, and nothing else.
fn refuse_search(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { beams, n_best, length_penalty, sample, prefix, .. } = arguments;
    if beams.is_none_or(|beams| beams == 1) && *n_best == 1 && length_penalty.is_none() && !sample && prefix.is_none() {
        return Ok(());
    }
    let message = format!("`{}` writes its likeliest word each time: it is searched in no other way", arguments.model.display());
    Err(Failure::usage(message).hint("leave --beams, --n-best, --length-penalty, --sample and --prefix out"))
}

/// Says what of a model's files is not followed, and where a text has no end.
fn warn(arguments: &Arguments, model: &PretrainedModel) {
    let rules = model.model().generation();
    let of_drawing = rules.drawing.unheeded.iter().filter(|_| arguments.sample);
    let is_followed = |setting: &&String| arguments.sample && setting.starts_with("do_sample");
    let unheeded: Vec<&str> = rules.unheeded.iter().filter(|setting| !is_followed(setting)).chain(of_drawing).map(String::as_str).collect();
    if !unheeded.is_empty() {
        let unheeded = unheeded.join(", ");
        output::note(&format!(
            "warning: the model's files ask for {unheeded}; this is not followed here, other programs may write other words"
        ));
    }
    if rules.ends.is_empty() {
        output::note(
            "warning: the model's files name no token that ends a text (`eos_token_id`): it is written until --max-tokens are reached",
        );
    }
}

/// How a pretrained model is searched.
fn decoding(arguments: &Arguments, model: &PretrainedModel) -> Result<Decoding, Failure> {
    if model.model().family() == "whisper" {
        let message = format!("the model `{}` reads no text: it writes down speech", arguments.model.display());
        return Err(Failure::refused(message).hint(format!("crosslens transcribe {} AUDIO", arguments.model.display())));
    }
    let mut how = Decoding::of(model.model());
    if let Some(beams) = arguments.beams {
        how.rules.n_beams = beams.into();
    }
    if arguments.length_penalty.is_some_and(|power| !power.is_finite()) {
        return Err(Failure::usage("--length-penalty is not a finite number"));
    }
    how.rules.length_penalty = arguments.length_penalty.unwrap_or(how.rules.length_penalty);
    if let Some(most) = arguments.max_tokens {
        (how.rules.max_tokens, how.rules.prefix_counts) = (most.into(), false);
    }
    how.n_best = arguments.n_best.into();
    if how.n_best > how.rules.n_beams {
        let message = format!("{} texts of {} beams were asked for", how.n_best, how.rules.n_beams);
        return Err(Failure::usage(message).hint(format!("--beams {}", how.n_best)));
    }
    if arguments.sample {
        let Arguments { temperature, top_k, top_p, seed, .. } = *arguments;
        if temperature.is_some_and(|heat| !(heat.is_finite() && heat > 0.0)) || top_p.is_some_and(|share| share.is_nan() || share <= 0.0) {
            return Err(Failure::usage("--temperature and --top-p are positive numbers"));
        }
        (how.rules.n_beams, how.rules.early_stopping) = (1, EarlyStopping::No);
        let own = &how.rules.drawing;
        let refused = |error| Failure::from(PretrainedModelError::from(error));
        how.sampling = Some(Sampling {
            temperature: temperature.map_or_else(|| own.temperature(), Ok).map_err(refused)?,
            top_k: top_k.map_or_else(|| own.top_k(), Ok).map_err(refused)?,
            top_p: top_p.map_or_else(|| own.top_p(), Ok).map_err(refused)?,
            seed,
        });
    }
    if let Some(prefix) = &arguments.prefix {
        let mut tokens = model.target(prefix)?.ids;
        // What ends a text cannot begin one.
        tokens.retain(|token| !how.rules.ends.contains(token));
        how.prefix = tokens;
    }
    Ok(how)
}

/// A line without words stays one, so that lines out belong to lines in.
pub(super) fn show_blank(arguments: &Arguments, line: &str) {
    output::result(&if arguments.json { json!({ "source": line, "text": "", "tokens": [] }).to_string() } else { String::new() });
}

fn show(arguments: &Arguments, source: &str, translation: &Translation) {
    if arguments.json {
        let Translation { text, tokens, score } = translation;
        output::result(&json!({ "source": source, "text": text, "tokens": tokens, "score": score }).to_string());
    } else if arguments.n_best > 1 {
        output::result(&format!("{:>9.4}  {}", translation.score, translation.text));
    } else {
        output::result(&translation.text);
    }
}
