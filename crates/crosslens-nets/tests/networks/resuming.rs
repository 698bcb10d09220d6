use crosslens_nets::network::{Family, Feeding, NetworkConfig};
use crosslens_nets::tasks::{Listed, Split, TaskConfig};
use crosslens_nets::train::{
    Ending, Event, Metrics, OptimizerConfig, Run, RunConfig, RunFolder, TrainError, Trained, TrainingConfig, Wish,
};

fn config() -> RunConfig {
    RunConfig {
        seed: 5,
        version: None,
        task: TaskConfig::named("sort").expect("a task of that name"),
        network: NetworkConfig { hidden: 12, dropout: 0.1, ..NetworkConfig::of(Family::Luong) },
        training: TrainingConfig {
            steps: 47,
            batch: 20,
            forced_steps: 10,
            feeding: Feeding::Free,
            evaluate_every: 10,
            ..TrainingConfig::default()
        },
        optimizer: OptimizerConfig::default(),
    }
}

fn run(config: &RunConfig, folder: &std::path::Path) -> Run {
    Run::prepare(config.clone(), RunFolder::at(folder)).expect("a configuration that makes sense")
}

/// Stops after the update that makes `step`.
fn stop_at(step: u64) -> impl FnMut(Event<'_>) -> Wish {
    move |event| if matches!(event, Event::Updated { step: made, .. } if made == step) { Wish::Stop } else { Wish::GoOn }
}

fn go_on(_: Event<'_>) -> Wish {
    Wish::GoOn
}

/// The model's bytes and the metrics without their timings.
fn result(folder: &std::path::Path) -> (Vec<u8>, Vec<Metrics>) {
    let mut metrics = RunFolder::at(folder).read_metrics().expect("metrics");
    metrics.iter_mut().for_each(|line| line.seconds = 0.0);
    (std::fs::read(folder.join("model.safetensors")).expect("a model"), metrics)
}

#[test]
fn stopping_between_evaluations_changes_nothing() {
    let (whole, stopped) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    run(&config(), whole.path()).start(1, &mut go_on).expect("a run that ends");
    let stop = run(&config(), stopped.path()).start(2, &mut stop_at(13)).expect("a run that stops");
    assert_eq!((stop.ending, stop.steps), (Ending::Interrupted, 13));
    for step in [14, 20, 39] {
        let stop = run(&config(), stopped.path()).resume(3, &mut stop_at(step)).expect("a run that stops again");
        assert_eq!((stop.ending, stop.steps), (Ending::Interrupted, step));
    }
    let end = run(&config(), stopped.path()).resume(1, &mut go_on).expect("a run that ends");
    assert_eq!((end.ending, end.steps), (Ending::Finished, 47));
    assert_eq!(result(stopped.path()), result(whole.path()));
    assert_eq!(result(whole.path()).1.iter().map(|line| line.step).collect::<Vec<_>>(), [10, 20, 30, 40, 47]);
}

/// A kill between two checkpoints of a resumed run must not leave the weights it was stopped with the time before.
#[test]
fn a_run_that_goes_on_past_its_model_has_none_until_it_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = RunFolder::at(folder.path());
    run(&config(), folder.path()).start(1, &mut stop_at(13)).expect("a run that stops");
    let mut seen = Vec::new();
    let mut look = |event: Event<'_>| {
        let step = match event {
            Event::Started { step, .. } | Event::Updated { step, .. } => step,
            Event::Evaluated(line) => line.step,
            _ => return Wish::GoOn,
        };
        seen.push((step, kept.holds_model()));
        Wish::GoOn
    };
    run(&config(), folder.path()).resume(1, &mut look).expect("a run that ends");
    assert_eq!(seen.first(), Some(&(13, true)), "what was stopped has its model until there is a checkpoint beyond it");
    assert!(seen.iter().all(|&(step, has_model)| step <= 20 || !has_model), "{seen:?}");
    assert!(seen.contains(&(20, false)) && kept.holds_model(), "{seen:?}");
}

#[test]
fn a_run_stops_early_at_the_accuracy_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut easy = config();
    easy.training.stop_at = 0.0;
    let trained = run(&easy, folder.path()).start(1, &mut go_on).expect("a run that ends");
    assert_eq!((trained.ending, trained.steps), (Ending::Finished, 10));
    let again = run(&easy, folder.path()).resume(1, &mut go_on).expect("nothing is left to do");
    assert_eq!((again.ending, again.steps), (Ending::Finished, 10));
}

#[test]
fn a_finished_run_can_be_made_longer_but_not_shorter() {
    let folder = tempfile::tempdir().expect("a folder");
    run(&config(), folder.path()).start(1, &mut go_on).expect("a run that ends");
    let mut longer = config();
    longer.training.steps = 60;
    let trained: Trained = run(&longer, folder.path()).resume(1, &mut go_on).expect("a longer run");
    assert_eq!((trained.ending, trained.steps), (Ending::Finished, 60));
    let error = run(&config(), folder.path()).resume(1, &mut go_on).expect_err("60 steps are made");
    assert!(matches!(error, TrainError::AlreadyFurther { made: 60, steps: 47 }), "{error}");
    assert_eq!(RunFolder::at(folder.path()).read_config().expect("run.toml").training.steps, 60, "a refused change is not written");
}

#[test]
fn a_new_run_takes_the_place_of_an_old_one_and_of_what_a_kill_left() {
    let folder = tempfile::tempdir().expect("a folder");
    run(&config(), folder.path()).start(1, &mut go_on).expect("a run that ends");
    std::fs::write(folder.path().join(".crosslens-left"), "half a checkpoint").expect("a writable folder");
    let stopped = run(&config(), folder.path()).start(1, &mut stop_at(1)).expect("a run that stops");
    assert_eq!(stopped.steps, 1);
    assert!(!folder.path().join(".crosslens-left").exists(), "temporary files of a killed run are removed");
    assert!(!folder.path().join("metrics.jsonl").exists(), "the old run's metrics are gone");
}

/// A list of pairs trains, learns, and resumes like any task.
#[test]
fn pairs_from_any_iterator_train_and_resume() {
    let config = RunConfig { optimizer: OptimizerConfig::default(), ..config() };
    let task = config.task.build().expect("a task that makes sense");
    let listed = || {
        let pairs = |split| (0..64).map(move |index| (split, index));
        let list = |split| pairs(split).map(|(split, index)| task.pair(split, 1, index)).collect::<Vec<_>>();
        let (source, target) = (task.source_vocabulary().clone(), task.target_vocabulary().clone());
        Box::new(Listed::new(source, target, list(Split::Train), list(Split::Test)).expect("the pairs of a task are good"))
    };
    let run = |folder: &std::path::Path| Run::with_task(config.clone(), listed(), RunFolder::at(folder)).expect("it makes sense");
    let (whole, stopped) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    run(whole.path()).start(2, &mut go_on).expect("a run that ends");
    run(stopped.path()).start(1, &mut stop_at(17)).expect("a run that stops");
    run(stopped.path()).resume(1, &mut go_on).expect("a run that ends");
    assert_eq!(result(stopped.path()), result(whole.path()));
    let losses: Vec<f64> = result(whole.path()).1.iter().map(|line| line.train_loss).collect();
    assert!(losses[losses.len() - 1] < losses[0], "{losses:?}");
}
