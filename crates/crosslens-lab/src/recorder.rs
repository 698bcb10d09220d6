//! Keeps the components along training.

use crosslens_analysis::explain::{ExplainError, Live, Options, explain};
use crosslens_analysis::timeline::{Timeline, TimelinePoint};
use crosslens_analysis::{Fed, RecordingError, Stats, StatsError};
use crosslens_nets::Subject;
use crosslens_nets::tasks::Split;
use crosslens_nets::train::{Event, FolderError, Observer, Run, RunFolder, TrainError, Trained, Wish};

/// Sentences every record is made on.
const N_SENTENCES: u64 = 200;
/// Draws them; no run is trained or explained on these.
const SEED: u64 = 0x5EED_0007;

/// Why training could not be recorded, or failed itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordedTrainError {
    /// Training failed.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// The folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The network cannot be explained.
    #[error("the network cannot be recorded after {step} steps")]
    Explain {
        /// Updates made.
        step: u64,
        /// Why.
        source: ExplainError,
    },
    /// Sums cannot be written.
    #[error(transparent)]
    Sums(#[from] StatsError),
    /// The timeline cannot be read or written.
    #[error(transparent)]
    Timeline(#[from] RecordingError),
}

/// Begins a run, or goes on with the one in its folder; where its configuration says so, the component sums and the shares of every head
/// are kept every so many updates, from before the first, in `timeline/*.stats.safetensors` and `timeline.json`.
///
/// A run that was killed goes on from its last checkpoint: what was recorded after that is recorded again, and comes out the same.
pub fn train(run: &Run, n_threads: usize, is_resumed: bool, observer: &mut dyn Observer) -> Result<Trained, RecordedTrainError> {
    let begin = |observer: &mut dyn Observer| if is_resumed { run.resume(n_threads, observer) } else { run.start(n_threads, observer) };
    let every = run.config().training.record_every;
    if every == 0 {
        return Ok(begin(observer)?);
    }
    let mut recorder = Recorder { run, every, n_threads, timeline: Timeline::new(Vec::new()), failure: None, next: observer };
    let trained = begin(&mut recorder)?;
    recorder.failure.map_or(Ok(trained), Err)
}

/// Records, and passes on what it is told.
struct Recorder<'a> {
    run: &'a Run,
    every: u64,
    n_threads: usize,
    timeline: Timeline,
    failure: Option<RecordedTrainError>,
    next: &'a mut dyn Observer,
}

impl Observer for Recorder<'_> {
    fn observe(&mut self, event: Event<'_>) -> Wish {
        let done = match event {
            Event::Started { step, weights, .. } => self.begin(step, weights),
            Event::Updated { step, weights, .. } if step.is_multiple_of(self.every) => self.record(step, weights),
            _ => Ok(()),
        };
        let wish = self.next.observe(event);
        match done {
            Ok(()) => wish,
            Err(failure) => {
                self.failure.get_or_insert(failure);
                Wish::Stop
            }
        }
    }
}

impl Recorder<'_> {
    fn folder(&self) -> &RunFolder {
        self.run.folder()
    }

    /// Keeps what was recorded up to `step`.
    fn begin(&mut self, step: u64, weights: &[f32]) -> Result<(), RecordedTrainError> {
        self.folder().create_sums_folder()?;
        let file = self.folder().timeline_file();
        if file.exists() {
            self.timeline = Timeline::load(&file)?;
        }
        self.timeline.points.retain(|point| point.step <= step);
        self.folder().remove_sums(|recorded| recorded > step)?;
        if step == 0 { self.record(0, weights) } else { Ok(self.timeline.save(&file)?) }
    }

    fn record(&mut self, step: u64, weights: &[f32]) -> Result<(), RecordedTrainError> {
        let cannot = |source| RecordedTrainError::Explain { step, source };
        let task = self.run.task();
        let (source, target) = (task.source_vocabulary(), task.target_vocabulary());
        let subject = Subject::new(self.run.network().clone(), weights.to_vec(), source, target, self.n_threads)
            .map_err(|error| cannot(ExplainError::Threads(error)))?;
        let pair = |number| task.pair(Split::Test, SEED, number);
        let corpus = Live { model: &subject, pair: &pair, n_pairs: N_SENTENCES, fed: Fed::Own };
        let stats = Stats::of(&corpus, self.n_threads, &mut |_| ()).map_err(cannot)?;
        stats.save(&self.folder().sums_file(step))?;
        let options = Options { causal: 0, samples: 0, n_threads: self.n_threads, ..Options::default() };
        let explained = explain(&corpus, None, &options, &mut |_| ()).map_err(cannot)?;
        self.timeline.points.retain(|point| point.step < step);
        self.timeline.points.push(TimelinePoint::of(step, &explained.report, Some(&explained.samples)));
        Ok(self.timeline.save(&self.folder().timeline_file())?)
    }
}
