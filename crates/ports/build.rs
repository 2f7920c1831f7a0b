//! Compiles the BPF programs with clang. Without clang they are empty, and modes that need them fail with that reason.
#![allow(clippy::print_stdout, reason = "how a build script speaks to cargo")]

use std::error::Error;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::{env, fs, io};

const PROGRAMS: [&str; 3] = ["reflect", "redirect", "nothing"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    let out = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    for name in PROGRAMS {
        let object = Path::new(&out).join(format!("{name}.bpf.o"));
        if !compile(&clang, name, &object)? {
            println!(
                "cargo::warning=clang is not installed: `reflect --mode xdp`, `reflect --mode af-xdp` and ports \
                 xdp:INTERFACE are missing from this build (apt install clang)"
            );
            // Missing, so cargo asks again the next time.
            println!("cargo::rerun-if-changed={}", Path::new(&out).join("clang").display());
            for name in PROGRAMS {
                fs::write(Path::new(&out).join(format!("{name}.bpf.o")), [])?;
            }
            return Ok(());
        }
    }
    Ok(())
}

/// Returns whether there is a compiler.
fn compile(clang: &OsString, name: &str, object: &Path) -> Result<bool, Box<dyn Error>> {
    let endian = env::var("CARGO_CFG_TARGET_ENDIAN")?;
    let target = if endian == "big" { "bpfeb" } else { "bpfel" };
    // Version 3 of the instructions is there since Linux 5.1; maps are described in BTF, which -g makes.
    let options = [
        "-ffreestanding",
        "-fno-strict-aliasing",
        "-O2",
        "-g",
        "-mcpu=v3",
        "-Wall",
        "-Wextra",
        "-fdebug-compilation-dir=.",
    ];
    let ended = Command::new(clang)
        .args(["-target", target])
        .args(options)
        .args(["-c", &format!("bpf/{name}.bpf.c"), "-o"])
        .arg(object)
        .output();
    match ended {
        Ok(ended) if ended.status.success() => Ok(true),
        Ok(ended) => {
            let said = String::from_utf8_lossy(&ended.stderr);
            Err(format!("bpf/{name}.bpf.c: clang says: {said}").into())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}
