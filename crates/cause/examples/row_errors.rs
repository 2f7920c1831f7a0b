//! Simulates how often late packets are in the row of the cause that delayed them. Prints a table in Markdown.
//!
//!     cargo run --release -p tailtrim-cause --example row_errors [WORLDS [FIRST_SEED]]
//!
//! The truth is the difference to the same run without a source: a late packet is the source's if it would have come by more
//! than half of its excess earlier. Otherwise it has no source.

mod random;
#[allow(dead_code, reason = "the other example reads more of it")]
mod worlds;

use std::io::Write;
use tailtrim_cause::periodic::{Periodic, explain};
use tailtrim_cause::rows::Kind;
use worlds::{SCHEDULES, World, by_schedule};

/// Late packets of the worlds of a schedule.
#[derive(Default, Clone, Copy)]
struct Counts {
    late: u64,
    /// Packets of a source that was found.
    found: u64,
    /// Packets of these that are in a row of their source.
    right: u64,
    /// Packets in rows of causes.
    told: u64,
    /// Packets of these that have another source, or none.
    wrong: u64,
    /// Packets in the row of several.
    several: u64,
}

/// The source of each cause: of those that have its frequency or an alias, the first that no cause before it has.
fn sources(world: &World, told: &Periodic) -> Vec<Option<usize>> {
    let near = |hz: f64| {
        let is_near = |true_hz: f64| (hz - true_hz).abs() < (2e-4 * true_hz).max(0.03);
        world.sources.iter().position(|source| is_near(source.hz))
    };
    let mut found: Vec<Option<usize>> = Vec::new();
    for (place, cause) in told.causes.iter().enumerate() {
        let level_of = told.causes[..place].iter().position(|other| other.source == cause.source);
        let all = std::iter::once(&cause.frequency_hz).chain(&cause.aliases_hz);
        let near: Vec<usize> = all.filter_map(|hz| near(*hz)).collect();
        let free = near.iter().find(|number| !found.contains(&Some(**number)));
        found.push(match level_of {
            Some(first) => found[first],
            None => free.or(near.first()).copied(),
        });
    }
    found
}

fn judge(world: &World, counts: &mut Counts) {
    let told = explain(&world.samples);
    let sources = sources(world, &told);
    for late in &told.late {
        let half_ns = 0.5 * late.excess_ns as f64;
        let truth =
            (0..world.sources.len()).find(|source| world.added_ns[*source][late.packet] > half_ns);
        let row = &told.rows[late.row];
        let said = row.cause.and_then(|cause| sources.get(cause).copied().flatten());
        let is_found = truth.is_some() && sources.contains(&truth);
        counts.late += 1;
        counts.found += u64::from(is_found);
        counts.right += u64::from(is_found && said == truth);
        counts.told += u64::from(row.cause.is_some());
        counts.wrong += u64::from(row.cause.is_some() && (said.is_none() || said != truth));
        counts.several += u64::from(row.kind == Kind::Several);
    }
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let all = by_schedule(&arguments, |_, world, counts| {
        judge(world, counts);
        Ok(())
    })?;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "| schedule | late | of a found source | in its rows | in rows of causes | wrongly | several |"
    )?;
    writeln!(out, "|---|---:|---:|---:|---:|---:|---:|")?;
    for (name, c) in SCHEDULES.iter().zip(&all) {
        let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
        writeln!(
            out,
            "| {name} | {} | {} | {:.1} % | {} | {:.1} % | {} |",
            c.late,
            c.found,
            percent(c.right, c.found),
            c.told,
            percent(c.wrong, c.told),
            c.several,
        )?;
    }
    Ok(())
}
