//! What each route does.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crosslens_lab::analysis::explain::Samples;
use crosslens_lab::analysis::page::{sample_header, value_norms};
use crosslens_lab::analysis::report::Verdict;
use crosslens_lab::analysis::{Estimator, N_PARTS, N_TERMS, Subset};
use crosslens_lab::{Answer, Asked, Feeds, FileKind, LiveError, LiveModel, Spelled, Taken, WordsOf, in_words};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Bytes};
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Request, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use crate::guard::{Guard, Pass};
use crate::jobs::{Job, Jobs};
use crate::library::{Library, Model, ServedReport, Source};
use crate::reply::{Content, Refusal, Reply, arrays, events, json, whole, with_safe_headers};
use crate::routes::{Found, Route, find};
use crate::status::{Status, tell};
use crate::{Limits, viewer};

/// The description of the API, as it is served.
pub(crate) const OPENAPI: &str = include_str!("../../../docs/openapi.json");
/// What a report is, to which that description refers.
const REPORT_SCHEMA: &str = include_str!("../../../docs/report.schema.json");

/// What all requests share.
pub(crate) struct State {
    pub(crate) library: Arc<Library>,
    pub(crate) guard: Guard,
    pub(crate) limits: Limits,
    pub(crate) jobs: Jobs,
    pub(crate) stopping: watch::Sender<bool>,
    page: Bytes,
    /// Places for questions that wait or are worked on.
    places: Arc<Semaphore>,
    /// Places for those that are worked on.
    working: Arc<Semaphore>,
    streams: Arc<Semaphore>,
}

impl State {
    pub(crate) fn new(library: Arc<Library>, guard: Guard, limits: Limits) -> Self {
        let places = |n| Arc::new(Semaphore::new(n));
        Self {
            page: viewer::page(&library.title()),
            places: places(limits.working + limits.waiting),
            working: places(limits.working),
            streams: places(limits.streams),
            jobs: Jobs::new(),
            stopping: watch::Sender::new(false),
            library,
            guard,
            limits,
        }
    }
}

#[cfg(test)]
impl State {
    /// As if so many asked at once.
    pub(crate) fn take_all_places(&self) -> tokio::sync::OwnedSemaphorePermit {
        let n = u32::try_from(self.limits.working + self.limits.waiting).expect("few");
        Arc::clone(&self.places).try_acquire_many_owned(n).expect("nobody asks")
    }
}

/// Answers a request, whatever it is and whatever goes wrong.
pub(crate) async fn answer<B>(state: Arc<State>, request: Request<B>) -> Reply
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let time = state.limits.request_time;
    // A task of its own, so that a panic ends nothing but this answer.
    let task = tokio::spawn(handle(state, request));
    let abort = task.abort_handle();
    let reply = match tokio::time::timeout(time, task).await {
        Ok(Ok(Ok(reply))) => reply,
        Ok(Ok(Err(refusal))) => refusal.reply(),
        Ok(Err(_)) => Refusal::broken().reply(),
        Err(_) => {
            abort.abort();
            Refusal::busy(format!("this took longer than {} s", time.as_secs_f64())).reply()
        }
    };
    with_safe_headers(reply)
}

async fn handle<B>(state: Arc<State>, request: Request<B>) -> Result<Reply, Refusal>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (head, body) = request.into_parts();
    if let Pass::Token(cookie) = state.guard.check(&head)? {
        return without_token(&cookie);
    }
    let found = find(&head.method, head.uri.path())?;
    match found.route {
        Route::Page => Ok(whole(StatusCode::OK, "text/html; charset=utf-8", state.page.clone())),
        Route::ViewerFile => viewer::file(found.values[0]),
        Route::OpenApi => Ok(whole(StatusCode::OK, "application/json", Bytes::from_static(OPENAPI.as_bytes()))),
        Route::ReportSchema => Ok(whole(StatusCode::OK, "application/json", Bytes::from_static(REPORT_SCHEMA.as_bytes()))),
        Route::Models => Ok(models(&state)),
        Route::Model => Ok(json(StatusCode::OK, &model_view(found.number(0)?, model(&state, &found)?, true))),
        Route::ModelEvents => told(&state, model(&state, &found)?.status()),
        Route::CancelModel => {
            let model = model(&state, &found)?;
            model.cancel();
            Ok(json(StatusCode::OK, &model_view(found.number(0)?, model, false)))
        }
        Route::Explain => {
            let (live, place) = (live(&state, &found)?, place(&state)?);
            let request = read_at_most(state.limits.of_question(&live), &head, body).await?;
            explain(&state, place, live, found.number(0)?, request).await
        }
        Route::Rerun => {
            let (live, place) = (live(&state, &found)?, place(&state)?);
            let request = read_at_most(state.limits.of_question(&live), &head, body).await?;
            rerun(&state, place, live, request).await
        }
        Route::Reports => Ok(reports(&state)),
        Route::Report => Ok(whole(StatusCode::OK, "application/json", report(&state, &found)?.json.clone())),
        Route::Averages => Ok(arrays(report(&state, &found)?.averages.clone())),
        Route::Sample => {
            let report = report(&state, &found)?;
            let sample = report.samples.get(found.number(1)?).ok_or_else(|| Refusal::nothing("the report holds no such sentence"))?;
            Ok(arrays(sample.clone()))
        }
        Route::Jobs => Ok(json(StatusCode::OK, &state.jobs.views())),
        Route::StartJob => start_job(&state, read(&state, &head, body).await?),
        Route::Job => Ok(json(StatusCode::OK, &job(&state, &found)?.view())),
        Route::JobEvents => told(&state, job(&state, &found)?.status()),
        Route::CancelJob => {
            let job = job(&state, &found)?;
            job.cancel();
            Ok(json(StatusCode::OK, &job.view()))
        }
        #[cfg(test)]
        Route::Panic if head.uri.query() == Some("work") => work(&state, place(&state)?, || panic!("asked for by a test")).await,
        #[cfg(test)]
        Route::Panic if head.uri.query() == Some("sleep") => {
            let nap = state.limits.request_time * 3;
            let slept = move || {
                std::thread::sleep(nap);
                Ok(json(StatusCode::OK, &"slept"))
            };
            work(&state, place(&state)?, slept).await
        }
        #[cfg(test)]
        Route::Panic => panic!("asked for by a test"),
    }
}

/// Leads to the page's address without the token, which the browser now keeps.
fn without_token(cookie: &str) -> Result<Reply, Refusal> {
    let mut reply = Response::new(Content::Whole(None));
    *reply.status_mut() = StatusCode::SEE_OTHER;
    reply.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/"));
    let cookie = HeaderValue::from_str(cookie).map_err(|_| Refusal::broken())?;
    reply.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(reply)
}

/// Reads a body of JSON, as long as most are allowed to be.
async fn read<B, T>(state: &State, head: &Parts, body: B) -> Result<T, Refusal>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    T: DeserializeOwned,
{
    read_at_most(state.limits.body_bytes, head, body).await
}

async fn read_at_most<B, T>(most: usize, head: &Parts, body: B) -> Result<T, Refusal>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    T: DeserializeOwned,
{
    let media_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if media_type.split(';').next().map(str::trim) != Some("application/json") {
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be JSON, with content-type application/json"));
    }
    let bytes = match Limited::new(body, most).collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            return Err(Refusal::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the body is larger than the {most} bytes that are taken; send less"),
            ));
        }
        Err(_) => return Err(Refusal::bad("the body did not arrive")),
    };
    serde_json::from_slice(&bytes).map_err(|error| Refusal::bad(format!("the body is not what is expected here: {error}")))
}

/// A place for a question. It is taken before the question is read, so that no more of them than wait or are worked on lie in memory.
fn place(state: &State) -> Result<OwnedSemaphorePermit, Refusal> {
    let busy = |_| Refusal::busy("too many questions at once; ask again in a moment");
    Arc::clone(&state.places).try_acquire_owned().map_err(busy)
}

/// Does work that keeps a core busy, when it is its turn.
async fn work(
    state: &State,
    place: OwnedSemaphorePermit,
    work: impl FnOnce() -> Result<Reply, Refusal> + Send + 'static,
) -> Result<Reply, Refusal> {
    let turn = Arc::clone(&state.working).acquire_owned().await.map_err(|_| Refusal::broken())?;
    let done = tokio::task::spawn_blocking(move || {
        let _held = (place, turn);
        work()
    });
    done.await.map_err(|_| Refusal::broken())?
}

fn model<'a>(state: &'a State, found: &Found<'_>) -> Result<&'a Model, Refusal> {
    state.library.models.get(found.number(0)?).ok_or_else(|| Refusal::nothing("there is no such model"))
}

fn live(state: &State, found: &Found<'_>) -> Result<Arc<LiveModel>, Refusal> {
    match model(state, found)?.source()? {
        Source::Live(live) => Ok(Arc::clone(live)),
        _ => Err(Refusal::new(StatusCode::CONFLICT, "this is no running model: only what was recorded of it is here")),
    }
}

fn report(state: &State, found: &Found<'_>) -> Result<Arc<ServedReport>, Refusal> {
    let number = found.number(0)?;
    let Some(report) = state.library.report(number) else {
        // The first reports are those of the models, by their numbers.
        state.library.models.get(number).map_or(Ok(()), |model| model.source().map(drop))?;
        return Err(Refusal::nothing("there is no such report"));
    };
    Ok(report)
}

fn job(state: &State, found: &Found<'_>) -> Result<Arc<Job>, Refusal> {
    state.jobs.find(found.number(0)?).ok_or_else(|| Refusal::nothing("there is no such job"))
}

fn models(state: &State) -> Reply {
    let views: Vec<_> = state.library.models.iter().enumerate().map(|(id, model)| model_view(id, model, false)).collect();
    json(StatusCode::OK, &views)
}

/// A model for pages; its words only where one asks for it alone.
fn model_view(id: usize, model: &Model, with_words: bool) -> serde_json::Value {
    let source = model.source().ok();
    let mut view = json!({
        "id": id, "name": model.name, "kind": model.kind, "live": model.kind.is_live(), "report": id, "ready": source.is_some(),
    });
    if let Some(Source::Live(live)) = source {
        view["asks"] = asks(live);
        if let Some(run) = live.run() {
            let lengths = run.task.max_lengths();
            view["task"] = run.config.task.name().into();
            view["longest"] = json!({ "source": lengths.source, "target": lengths.target });
        }
        if let Some([source, target]) = live.words().filter(|_| with_words) {
            view["words"] = json!({ "source": source, "target": target });
        }
    }
    view
}

/// How a model can be asked.
fn asks(live: &LiveModel) -> serde_json::Value {
    let (taken, n_sentences) = match live.taken() {
        None => (None, None),
        Some(Taken::Task) => (Some("task"), None),
        Some(Taken::Corpus(n)) => (Some("corpus"), Some(n)),
    };
    json!({
        "take": taken, "sentences": n_sentences, "fitted": live.is_fitted(),
        "feeding": live.chooses_feeding(), "words": live.words().is_some(),
        "files": live.reads().map(|kind| match kind { FileKind::Sound => "sound", FileKind::Picture => "picture" }),
    })
}

fn reports(state: &State) -> Reply {
    let models = &state.library.models;
    let list = state.library.reports().into_iter().enumerate().map(|(id, report)| {
        let Some(report) = report else {
            let Model { name, description, .. } = &models[id];
            return json!({
                "id": id, "name": name, "model": description, "n_sites": 0, "n_samples": 0, "of": id, "ready": false,
                "live": false, "asks": null,
            });
        };
        let live = match models.get(report.model).map(Model::source) {
            Some(Ok(Source::Live(live))) => Some(asks(live)),
            _ => None,
        };
        let (n_sites, n_samples) = (report.verdicts.len(), report.samples.len());
        json!({
            "id": id, "name": report.name, "model": report.description, "n_sites": n_sites, "n_samples": n_samples,
            "of": report.model, "ready": true, "live": live.is_some(), "asks": live,
        })
    });
    json(StatusCode::OK, &list.collect::<Vec<_>>())
}

/// Words as text or one by one.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "words must be a text or a list of texts")]
enum Words {
    Text(String),
    List(Vec<String>),
}

impl From<Words> for Spelled {
    fn from(words: Words) -> Self {
        match words {
            Words::Text(text) => Self::Text(text),
            Words::List(list) => Self::Words(list),
        }
    }
}

/// A sentence somebody asks about: their own, or one of the task by its number.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sentence {
    source: Option<Words>,
    target: Option<Words>,
    sample: Option<u32>,
    /// A sound or a picture, in base64.
    file: Option<String>,
}

impl Sentence {
    fn asked(self) -> Result<Asked, Refusal> {
        match self {
            Self { source: Some(source), target, sample: None, file: None } => {
                Ok(Asked::Typed { source: source.into(), target: target.map(Spelled::from) })
            }
            Self { source: None, target: None, sample: Some(number), file: None } => Ok(Asked::Task(number.into())),
            Self { source: None, target: None, sample: None, file: Some(file) } => {
                Ok(Asked::File(STANDARD.decode(file).map_err(|_| Refusal::unfit("the file is not in base64"))?))
            }
            _ => Err(Refusal::unfit("a sentence is a source, perhaps with a target, or else the number of a sample, or a file")),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Feeding {
    #[default]
    Own,
    Target,
}

impl From<Feeding> for Feeds {
    fn from(feeding: Feeding) -> Self {
        match feeding {
            Feeding::Own => Self::Own,
            Feeding::Target => Self::Target,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EstimatorName {
    #[default]
    Paper,
    Joint,
}

impl From<EstimatorName> for Estimator {
    fn from(name: EstimatorName) -> Self {
        match name {
            EstimatorName::Paper => Self::Paper,
            EstimatorName::Joint => Self::Joint,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExplainRequest {
    sentence: Sentence,
    #[serde(default)]
    feeding: Feeding,
    #[serde(default)]
    estimator: EstimatorName,
    /// The heads to give; all of them if nothing is said.
    sites: Option<Vec<usize>>,
}

/// One sentence at the heads that were asked for.
#[derive(Serialize)]
struct Explanation {
    /// Its tokens by name, as among the samples of a report.
    sample: serde_json::Value,
    /// What is wrong with the file that was sent.
    warning: Option<String>,
    estimator: &'static str,
    /// Which tokens form a word, where they are pieces of words.
    words: Option<WordsOf>,
    sites: Vec<SiteView>,
}

/// One head: arrays by row.
#[derive(Serialize)]
struct SiteView {
    /// Which head.
    site: usize,
    /// Pieces, queries, keys.
    shape: [usize; 3],
    attention: Vec<f32>,
    pieces: Vec<f32>,
    bias: Option<Vec<f32>>,
    value_norms: Vec<f32>,
    /// What the model's report says of this head.
    verdict: Option<Verdict>,
}

/// Samples at these heads, or at all.
fn site_views(samples: &Samples, sites: Option<&[usize]>, verdicts: &[Verdict]) -> Vec<SiteView> {
    let Some(sample) = samples.sentences.first() else { return Vec::new() };
    let number = |place: usize| sites.map_or(place, |sites| sites[place]);
    let view = |(site, &(n_queries, n_keys)): (usize, &(usize, usize))| SiteView {
        site: number(site),
        shape: [sample.pieces[site].len() / (n_queries * n_keys).max(1), n_queries, n_keys],
        attention: sample.attention[site].clone(),
        pieces: sample.pieces[site].clone(),
        bias: Some(sample.bias[site].clone()).filter(|bias| !bias.is_empty()),
        value_norms: value_norms(&sample.attention[site], &sample.value_weighted[site], n_keys),
        verdict: verdicts.get(number(site)).cloned(),
    };
    sample.shapes.iter().enumerate().map(view).collect()
}

async fn explain(
    state: &State,
    place: OwnedSemaphorePermit,
    live: Arc<LiveModel>,
    id: usize,
    request: ExplainRequest,
) -> Result<Reply, Refusal> {
    let ExplainRequest { sentence, feeding, estimator, sites } = request;
    let asked = sentence.asked()?;
    let own = state.library.report(id);
    let explained = move || {
        let estimator = Estimator::from(estimator);
        let explained = live.explain(&asked, feeding.into(), estimator, sites.as_deref());
        let Answer { samples, warning } = explained.map_err(|error| refused(&error))?;
        let sample = samples.sentences.first().map(|sample| sample_header(&samples, sample)).unwrap_or_default();
        let sites = site_views(&samples, sites.as_deref(), own.as_ref().map_or(&[], |report| report.verdicts.as_slice()));
        let words = live.word_of(&samples);
        Ok(json(StatusCode::OK, &Explanation { sample, warning, estimator: estimator.name(), words, sites }))
    };
    work(state, place, explained).await
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RerunRequest {
    sentence: Sentence,
    #[serde(default)]
    feeding: Feeding,
    #[serde(default)]
    estimator: EstimatorName,
    /// The head.
    site: usize,
    /// Pieces switched off: `3·query part + key part` of nine, or of six the query's three and the key's.
    off: Vec<usize>,
    /// Whether the bias of positions stays.
    #[serde(default = "yes")]
    bias: bool,
}

fn yes() -> bool {
    true
}

async fn rerun(state: &State, place: OwnedSemaphorePermit, live: Arc<LiveModel>, request: RerunRequest) -> Result<Reply, Refusal> {
    let RerunRequest { sentence, feeding, estimator, site, off, bias } = request;
    let asked = sentence.asked()?;
    let sites = &live.subject().description().sites;
    let is_additive = sites.get(site).is_some_and(|site| site.map.is_additive());
    let n_pieces = if is_additive { N_PARTS } else { N_TERMS };
    if let Some(piece) = off.iter().find(|&&piece| piece >= n_pieces) {
        return Err(Refusal::unfit(format!("there is no piece {piece}: the scores of this head have {n_pieces}")));
    }
    let kept = off.iter().fold((1u16 << n_pieces) - 1, |kept, &piece| kept & !(1 << piece));
    let decoded = move || {
        let subset = Subset::from_mask(kept, bias);
        let rerun = live.rerun(&asked, feeding.into(), estimator.into(), site, subset).map_err(|error| refused(&error))?;
        Ok(json(StatusCode::OK, &json!({ "predicted": rerun.predicted, "before": rerun.before, "loss": rerun.loss })))
    };
    work(state, place, decoded).await
}

/// What the client can mend is 422; the rest is the server's.
fn refused(error: &LiveError) -> Refusal {
    match error {
        LiveError::Sums(_) | LiveError::Fit(_) | LiveError::Split(_) | LiveError::Threads(_) | LiveError::NotLaidDown(_) => {
            Refusal::broken()
        }
        _ => Refusal::unfit(in_words(error)),
    }
}

/// A whole model, or so many sentences of a recording, to be explained.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobRequest {
    pub(crate) model: usize,
    #[serde(default = "usual_sentences")]
    pub(crate) sentences: u64,
    #[serde(default = "usual_samples")]
    pub(crate) samples: usize,
    #[serde(default)]
    pub(crate) estimator: EstimatorName,
    #[serde(default = "usual_seed")]
    pub(crate) seed: u64,
}

fn usual_sentences() -> u64 {
    1000
}

fn usual_samples() -> usize {
    12
}

fn usual_seed() -> u64 {
    1_000_003
}

fn start_job(state: &State, request: JobRequest) -> Result<Reply, Refusal> {
    let model = state.library.models.get(request.model).ok_or_else(|| Refusal::unfit("there is no such model"))?;
    let source = model.source()?;
    if matches!(source, Source::Report) {
        return Err(Refusal::new(StatusCode::CONFLICT, "this is a report: there is nothing to explain anew"));
    }
    if matches!(source, Source::Live(live) if live.taken().is_none()) {
        let why = "this model was opened without sentences: start the server again with --corpus FILE";
        return Err(Refusal::new(StatusCode::CONFLICT, why));
    }
    if !(1..=Limits::JOB_SENTENCES).contains(&request.sentences) || request.samples > Limits::JOB_SAMPLES {
        let (sentences, samples) = (Limits::JOB_SENTENCES, Limits::JOB_SAMPLES);
        return Err(Refusal::unfit(format!("`sentences` is from 1 to {sentences}, `samples` at most {samples}")));
    }
    let view = state.jobs.start(&state.library, request, &state.limits)?;
    Ok(json(StatusCode::ACCEPTED, &view))
}

/// A stream of events that tell how something stands.
fn told(state: &State, status: watch::Receiver<Status>) -> Result<Reply, Refusal> {
    let place = Arc::clone(&state.streams).try_acquire_owned().map_err(|_| Refusal::busy("too many streams of events at once"))?;
    let (sender, receiver) = mpsc::channel(4);
    let stopping = state.stopping.subscribe();
    tokio::spawn(async move {
        tell(status, sender, stopping).await;
        drop(place);
    });
    Ok(events(receiver))
}
