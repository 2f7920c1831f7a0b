//! Text without the time or the name that a log has put before each of its lines.

use super::ReadError;
use std::borrow::Cow;

/// Lines that begin a histogram.
const TITLES: [&str; 3] = ["# RTLA osnoise histogram", "# RTLA timerlat histogram", "# Histogram"];

/// Removes what is in front of the title of a histogram, from each of the following lines too where a log has put
/// it there. The number of lines stays.
pub(super) fn without(text: &str) -> Result<Cow<'_, str>, ReadError> {
    let title = |line: &str| TITLES.iter().find_map(|title| line.find(title));
    let Some((first, at)) =
        text.lines().enumerate().find_map(|(number, line)| Some((number, title(line)?)))
    else {
        return Ok(Cow::Borrowed(text));
    };
    if at == 0 {
        return Ok(Cow::Borrowed(text));
    }
    let lines: Vec<&str> = text.lines().collect();
    let prefix = shape(&lines[first][..at]);
    // Output of a command that rtla started may have no line end: it is not repeated.
    let repeated = lines.get(first + 1).is_some_and(|next| rest(next, &prefix).is_some());
    let mut plain = lines[..first].join("\n");
    for (number, line) in lines.iter().enumerate().skip(first) {
        if number > 0 {
            plain.push('\n');
        }
        plain.push_str(match rest(line, &prefix) {
            _ if number == first => &line[at..],
            Some(rest) if repeated => rest,
            None if repeated && !prefix.trim().is_empty() => {
                return Err(ReadError::Line {
                    number: number + 1,
                    problem: format!(
                        "{:?}; expected {:?} before it as before the lines above: remove what the log has put there",
                        line.chars().take(60).collect::<String>(),
                        &lines[first][..at]
                    ),
                });
            }
            _ => line,
        });
    }
    Ok(Cow::Owned(plain))
}

/// Digits are all the same: times differ.
fn shape(text: &str) -> String {
    text.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect()
}

/// The line behind a prefix of this shape. A log may leave out the blanks at the end of an empty line.
fn rest<'a>(line: &'a str, prefix: &str) -> Option<&'a str> {
    let end = line.char_indices().nth(prefix.chars().count()).map_or(line.len(), |(at, _)| at);
    let before = shape(&line[..end]);
    (before == prefix || before.trim_end() == prefix.trim_end()).then(|| &line[end..])
}
