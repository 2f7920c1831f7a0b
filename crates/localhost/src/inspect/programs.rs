//! Facts that only programs of the host know, or files that are not text.

use std::fs::File;
use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Longest wait for a program, in steps of [`STEP`].
const STEPS: u32 = 100;
const STEP: Duration = Duration::from_millis(10);

/// Run a program and return its output. One that is not installed is an error of the kind `NotFound`.
fn run(program: &str, arguments: &[&str]) -> io::Result<String> {
    let mut child = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let Some(mut output) = child.stdout.take() else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    let reader = thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).map(|_| text)
    });
    for _ in 0..STEPS {
        if let Some(status) = child.try_wait()? {
            let text = reader.join().unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))?;
            // A program that is installed and fails has nothing to report: no systemd, no such table.
            return if status.success() {
                Ok(text)
            } else {
                Err(io::ErrorKind::Unsupported.into())
            };
        }
        thread::sleep(STEP);
    }
    child.kill()?;
    child.wait()?;
    Err(io::Error::other(format!("{program} did not answer within a second")))
}

fn systemctl(arguments: &[&str]) -> io::Result<String> {
    let mut all = vec!["--no-pager", "--no-legend", "--plain", "--no-ask-password"];
    all.extend(arguments);
    run("systemctl", &all).map_err(absent)
}

/// Treats a program that failed like one that is not installed.
fn absent(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::Unsupported => io::Error::from_raw_os_error(libc::ENOENT),
        _ => error,
    }
}

/// Timers that wait for their time.
pub(super) fn timers() -> io::Result<String> {
    let text = systemctl(&["list-timers"])?;
    let name = |line: &str| {
        line.split_whitespace().find(|word| word.ends_with(".timer")).map(str::to_owned)
    };
    Ok(text.lines().filter_map(name).collect::<Vec<_>>().join("\n"))
}

/// Number of rules in nftables; an ordinary user is refused.
pub(super) fn rules() -> io::Result<String> {
    let text = run("nft", &["-a", "list", "ruleset"]).map_err(|error| match error.kind() {
        io::ErrorKind::Unsupported => io::Error::from_raw_os_error(libc::EPERM),
        _ => error,
    })?;
    // With -a every table, chain, set and rule has a handle; those that open a block are not rules.
    let rule = |line: &&str| line.contains("# handle") && !line.contains('{');
    Ok(text.lines().filter(rule).count().to_string())
}

/// Interface and discipline, a line each, the root first.
pub(super) fn qdiscs() -> io::Result<String> {
    let text = run("tc", &["qdisc", "show"]).map_err(absent)?;
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let device =
            words.iter().position(|word| *word == "dev").and_then(|at| words.get(at + 1))?;
        let root = if words.contains(&"root") { " root" } else { "" };
        Some(format!("{device} {}{root}\n", words.get(1)?))
    };
    Ok(text.lines().filter_map(line).collect())
}

/// The configuration of the running kernel, from the places where distributions put it.
pub(super) fn kernel_config() -> io::Result<String> {
    match File::open("/proc/config.gz") {
        Ok(file) => {
            let mut text = String::new();
            flate2::read::GzDecoder::new(file).read_to_string(&mut text)?;
            Ok(text)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let release = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
            let release = release.trim();
            std::fs::read_to_string(format!("/boot/config-{release}"))
                .or_else(|_| std::fs::read_to_string(format!("/usr/lib/modules/{release}/config")))
        }
        Err(error) => Err(error),
    }
}

/// The limit that is in force, in µs. Reading it sets none.
pub(super) fn dma_latency() -> io::Result<String> {
    let mut bytes = [0; 4];
    File::open("/dev/cpu_dma_latency")?.read_exact(&mut bytes)?;
    Ok(i32::from_ne_bytes(bytes).to_string())
}
