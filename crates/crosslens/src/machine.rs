//! When and where the program runs, for pages it writes.

use std::time::{SystemTime, UNIX_EPOCH};

use crosslens_lab::reproduce::Circumstances;

const SECONDS_PER_DAY: u64 = 86_400;

/// Version, date and machine.
pub(crate) fn circumstances(command: &str, seconds: f64, note: Option<&str>) -> Circumstances {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = civil(now / SECONDS_PER_DAY);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = if cores == 1 { "1 core".to_owned() } else { format!("{cores} cores") };
    let machine = format!("{cores} of {}, {} {}", processor(), std::env::consts::OS, std::env::consts::ARCH);
    Circumstances {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        date: format!("{year:04}-{month:02}-{day:02}"),
        machine,
        command: command.to_owned(),
        seconds,
        note: note.map(str::to_owned),
    }
}

/// The processor's name where the system tells it.
fn processor() -> String {
    let facts = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = facts.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split(':').nth(1));
    name.map_or_else(|| "a processor without a name".to_owned(), |name| name.trim().to_owned())
}

/// Year, month and day of a day counted from 1970-01-01, by the rules of the Gregorian calendar.
fn civil(days: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut left) = (1970, days);
    while left >= 365 + u64::from(is_leap(year)) {
        left -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

#[cfg(test)]
mod tests {
    use super::civil;

    /// `date -u -d @$((86400 * n)) +%F`.
    #[test]
    fn days_are_those_of_the_calendar() {
        for (days, date) in
            [(0, (1970, 1, 1)), (59, (1970, 3, 1)), (11_016, (2000, 2, 29)), (20_773, (2026, 11, 16)), (364, (1970, 12, 31))]
        {
            assert_eq!(civil(days), date);
        }
    }
}
