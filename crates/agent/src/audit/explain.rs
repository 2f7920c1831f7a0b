//! All about a check; all checks.

use crate::output::wrapped;
use serde::Serialize;
use std::io::{self, Write};
use tailtrim_audit::{Check, Reference};

/// Prints all about a check.
pub(super) fn write(check: &Check, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}  {}  ({} importance)\n", check.id, check.title, check.importance.word())?;
    let since = check.since.map(|since| format!("Linux {since} and later"));
    let lines = |all: Vec<String>| all.join("\n");
    let rows: [(&str, String); 11] = [
        ("why", check.why.to_owned()),
        ("read from", check.read_from.join("\n")),
        ("wanted", check.wanted.to_owned()),
        ("cost", check.cost.to_owned()),
        ("set now", check.set_now.to_owned()),
        ("at boot", check.set_boot.to_owned()),
        ("undo", check.undo.to_owned()),
        ("kernels", since.unwrap_or_else(|| "all".to_owned())),
        ("source", check.source.to_owned()),
        ("confirmed", lines(check.references().iter().map(ToString::to_string).collect())),
        ("no source", lines(check.unconfirmed().iter().map(|what| (*what).to_owned()).collect())),
    ];
    for (name, text) in rows.iter().filter(|(_, text)| !text.is_empty()) {
        for (number, line) in text.lines().enumerate() {
            let lead = format!("  {:<10} ", if number == 0 { name } else { "" });
            write!(out, "{}", wrapped(line, 99, &lead, &" ".repeat(13)))?;
        }
    }
    writeln!(
        out,
        "\n  {{iso}}, {{hk}} and {{nic}} stand for what --isolate, --housekeeping and --interface name."
    )
}

#[derive(Serialize)]
struct Listed<'a> {
    id: &'a str,
    title: &'a str,
    importance: &'a str,
    why: &'a str,
    read_from: &'a [&'a str],
    wanted: &'a str,
    cost: &'a str,
    set_now: &'a str,
    set_boot: &'a str,
    undo: &'a str,
    source: &'a str,
    references: &'a [Reference],
    unconfirmed: &'a [&'a str],
}

/// Lists checks.
pub(super) fn list(checks: &[&'static Check], json: bool, out: &mut dyn Write) -> io::Result<()> {
    if json {
        let all: Vec<Listed<'_>> = checks
            .iter()
            .map(|check| Listed {
                id: check.id,
                title: check.title,
                importance: check.importance.word(),
                why: check.why,
                read_from: check.read_from,
                wanted: check.wanted,
                cost: check.cost,
                set_now: check.set_now,
                set_boot: check.set_boot,
                undo: check.undo,
                source: check.source,
                references: check.references(),
                unconfirmed: check.unconfirmed(),
            })
            .collect();
        serde_json::to_writer_pretty(&mut *out, &all)?;
        return writeln!(out);
    }
    for check in checks {
        writeln!(out, "{:<9} {:<7} {}", check.id, check.importance.word(), check.title)?;
    }
    Ok(())
}
