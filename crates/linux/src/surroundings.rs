//! The day, the terminal and the files of a command.

use crate::sys::clock;
use rustix::fs::{self, CWD, RenameFlags};
use rustix::termios::tcgetwinsize;
use std::io;
use std::path::Path;

/// Lets two files or folders of one file system have each other's name, at once.
///
/// # Errors
/// One of them is missing, or the file system cannot do that.
pub fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    Ok(fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

/// The date in UTC, as `2026-11-21`.
#[must_use]
pub fn today() -> String {
    let (year, month, day) = civil(clock::realtime_ns().div_euclid(86_400_000_000_000));
    format!("{year:04}-{month:02}-{day:02}")
}

/// Columns of the terminal on standard output; `None` where that is none.
#[must_use]
pub fn terminal_columns() -> Option<usize> {
    let columns = tcgetwinsize(io::stdout()).ok()?.ws_col;
    (columns > 0).then_some(columns.into())
}

/// Year, month and day of a number of days since 1970, in the Gregorian calendar. Years begin in March
/// here, so that the leap day is the last one.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn days_of_the_calendar() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(59), (1970, 3, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_778), (2026, 11, 21));
        assert_eq!(civil(-1), (1969, 12, 31));
    }
}
