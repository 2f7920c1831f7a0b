//! nft(8), which knows the kernel's tables.

use serde_json::Value;
use std::io::{self, ErrorKind, Write};
use std::process::{Command, Stdio};

/// Runs `nft` with these words, and what it reads. Returns what it wrote.
pub(super) fn nft(words: &[&str], input: &str) -> io::Result<String> {
    let mut process = Command::new("nft")
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                io::Error::new(ErrorKind::NotFound, "nft is not installed (apt install nftables)")
            }
            _ => error,
        })?;
    if let Some(mut stdin) = process.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    let output = process.wait_with_output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().next().unwrap_or("nft gave no reason").to_owned();
    Err(io::Error::other(first))
}

/// The objects of a kind in what `nft -j` wrote.
pub(super) fn objects(text: &str, kind: &str) -> Vec<Value> {
    let parsed: Value = serde_json::from_str(text).unwrap_or_default();
    let all = parsed["nftables"].as_array().cloned().unwrap_or_default();
    all.into_iter().map(|object| object[kind].clone()).filter(Value::is_object).collect()
}
