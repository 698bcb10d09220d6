use std::path::PathBuf;
use std::time::Instant;

use crosslens_lab::analysis::corpus::CorpusSpec;
use crosslens_lab::reproduce::{
    CLAIMS, ClaimOutcome, OnCorpus, ReproduceError, ReproduceOptions, Reproduction, Role, Scale, asked, choose, costs, found, markdown,
    number, reproduce,
};

use crate::failure::Failure;
use crate::progress::NetworkBar;
use crate::{choices, interrupt, machine, output};

/// Seeds where none are asked for.
const SEEDS: u8 = 3;

/// Tests the claims about how these networks attend, on networks trained for it.
///
/// Networks are kept in the folder and found again, so a second call only trains what is missing.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only these claims, after one flag or several. Without, all.
    #[arg(long, value_name = "ID", num_args = 1..)]
    claim: Vec<String>,
    /// Seeds every claim must hold on.
    #[arg(long, value_name = "N", default_value_t = SEEDS, value_parser = clap::value_parser!(u8).range(1..=100))]
    seeds: u8,
    /// Test what is claimed of translation on these sentences, instead of a miniature grammar.
    #[arg(long, value_name = "CORPUS")]
    corpus: Option<CorpusSpec>,
    /// Updates a network makes on these sentences.
    #[arg(long, value_name = "N", default_value_t = OnCorpus::STEPS, requires = "corpus")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    corpus_steps: u64,
    /// Where networks and results are kept.
    #[arg(long, value_name = "DIR", default_value = "crosslens-reproduction")]
    out: PathBuf,
    /// Fewer claims, on fewer networks and shorter sentences.
    #[arg(long)]
    quick: bool,
    /// Also write the results as a page of documentation.
    #[arg(long, value_name = "FILE.md")]
    markdown: Option<PathBuf>,
    /// A sentence for that page, such as the commit or what ran beside.
    #[arg(long, value_name = "TEXT", requires = "markdown")]
    note: Option<String>,
    /// List the claims and test none.
    #[arg(long)]
    list: bool,
    /// Threads; 0 for one per core. The result does not depend on it.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// The result as JSON on standard output.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    interrupt::listen();
    let options = ReproduceOptions {
        claims: arguments.claim.clone(),
        seeds: usize::from(arguments.seeds),
        scale: if arguments.quick { Scale::Quick } else { Scale::Full },
        corpus: arguments.corpus.clone().map(|spec| OnCorpus { spec, steps: arguments.corpus_steps }),
        out: arguments.out.clone(),
        n_threads: arguments.threads,
    };
    let chosen = choose(&options)?;
    if arguments.list {
        chosen.iter().for_each(|claim| output::result(&format!("{:<24}{}", claim.id, claim.sentence)));
        return Ok(());
    }
    let clock = Instant::now();
    let mut bar = NetworkBar::new(&costs(&options)?);
    let reproduction = reproduce(&options, &mut |work| bar.show(work))?;
    drop(bar);
    let seconds = clock.elapsed().as_secs_f64();
    let page = arguments.out.join("reproduce.html");
    reproduction.write_page(&page)?;
    if let Some(path) = &arguments.markdown {
        let page = markdown(&reproduction, &machine::circumstances(&command(arguments), seconds, arguments.note.as_deref()));
        output::write_file(path, &page)?;
        output::note(&format!("written to {}", path.display()));
    }
    if arguments.json {
        output::result(&reproduction.to_json());
    } else {
        table(&reproduction).iter().for_each(|line| output::result(line));
        let file = arguments.out.join("reproduce.json");
        output::note(&format!("look at them: {} (one file, no network needed)", page.display()));
        output::note(&format!("all numbers are in {}; this took {:.1} minutes", file.display(), seconds / 60.0));
    }
    Ok(())
}

/// What was typed, without paths that only say where.
fn command(arguments: &Arguments) -> String {
    let mut words = vec!["crosslens reproduce".to_owned()];
    words.extend(arguments.claim.iter().map(|claim| format!("--claim {claim}")));
    words.extend(arguments.corpus.iter().map(|corpus| format!("--corpus {corpus}")));
    let is_other = arguments.corpus.is_some() && arguments.corpus_steps != OnCorpus::STEPS;
    words.extend(is_other.then(|| format!("--corpus-steps {}", arguments.corpus_steps)));
    words.extend((arguments.seeds != SEEDS).then(|| format!("--seeds {}", arguments.seeds)));
    words.extend(arguments.quick.then(|| "--quick".to_owned()));
    words.extend(arguments.markdown.iter().map(|path| format!("--markdown {}", path.display())));
    words.join(" ")
}

fn table(reproduction: &Reproduction) -> Vec<String> {
    let mut lines = vec![format!("{:<24}{:<10}{:>18}  {:<9}{:<12}{}", "claim", "", "found", "asked", "holds", "what was found")];
    lines.extend(reproduction.claims.iter().flat_map(row));
    lines.push(String::new());
    for entry in reproduction.missed() {
        let what = if entry.role == Role::Replaced { "missed the gate and was replaced" } else { "missed the gate" };
        lines.push(format!("{}, seed {}: {}, {what}", entry.about, entry.seed, entry.came_to()));
    }
    lines.push(format!("{} of {} claims hold, each on every seed", reproduction.held, reproduction.of));
    lines
}

/// One line for a claim; where it fails, one for every number that does.
fn row(claim: &ClaimOutcome) -> Vec<String> {
    let found = found(claim);
    let floor = claim.bound.zip(claim.floor).map_or("–".into(), |(bound, floor)| asked(bound, floor));
    let holds = match (claim.holds, claim.seeds.is_empty()) {
        (true, _) => "yes",
        (false, true) => "not tested",
        (false, false) => "NO",
    };
    let mut lines = vec![format!("{:<24}{:<10}{found:>18}  {floor:<9}{holds:<12}{}", claim.id, claim.origin, claim.what)];
    for (place, seed) in claim.seeds.iter().enumerate() {
        let failed = seed.checks.iter().filter(|check| !check.holds);
        lines.extend(failed.map(|check| {
            format!("    seed {}: {} is {}, not {}", place + 1, check.what, number(check.value), asked(check.bound, check.floor))
        }));
        lines.extend(seed.missed.iter().map(|network| format!("    seed {}: {network} does not do its task", place + 1)));
    }
    lines
}

impl From<ReproduceError> for Failure {
    fn from(error: ReproduceError) -> Self {
        match error {
            ReproduceError::UnknownClaim { ref id } => {
                let failure = Self::usage(error.to_string());
                match choices::nearest(id, CLAIMS.iter().map(|claim| claim.id)) {
                    Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
                    None => failure.hint("crosslens reproduce --list"),
                }
            }
            ReproduceError::NotQuick { .. } => Self::usage(error.to_string()).hint("leave --quick out"),
            ReproduceError::Interrupted => Self::refused(error.to_string()).hint("the same command goes on"),
            ReproduceError::Train(error) => error.into(),
            ReproduceError::Open(error) => error.into(),
            ReproduceError::Show(error) => error.into(),
            ReproduceError::Page(error) => error.into(),
            error => Self::of(&error),
        }
    }
}
