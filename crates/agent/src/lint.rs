//! `tailtrim-agent audit --boot-line`: effects of a boot line on a kernel.

use crate::exit::{Exit, Failure, Outcome};
use crate::lint_text;
use crate::output;
use tailtrim_host::{Cpus, KernelVersion, Tree, limits};
use tailtrim_lint::{Context, LintReport, Running, Severity, lint};

/// A boot line, read as a kernel does: words that it does not know, takes otherwise, or drops.
#[derive(Debug, clap::Args)]
pub(crate) struct Request {
    /// Check only this kernel command line; without a value that of the running kernel, compared with its effect
    #[arg(long, value_name = "LINE", num_args = 0..=1)]
    boot_line: Option<Option<String>>,
    /// Kernel version that will boot it: 6.1, or the output of uname -r
    #[arg(long, value_name = "KERNEL", requires = "boot_line")]
    kernel: Option<KernelVersion>,
    /// CPUs of the machine, such as 0-15
    #[arg(long, value_name = "LIST", value_parser = some_cpus, requires = "boot_line")]
    cpus: Option<Cpus>,
}

impl Request {
    /// Whether this was asked for, instead of an audit.
    pub(crate) fn is_asked(&self) -> bool {
        self.boot_line.is_some()
    }
}

fn some_cpus(text: &str) -> Result<Cpus, String> {
    match text.parse::<Cpus>() {
        Ok(cpus) if cpus.is_empty() => Err("a machine has at least one CPU, such as 0".to_owned()),
        Ok(cpus) => Ok(cpus),
        Err(error) => Err(error.to_string()),
    }
}

/// Runs the verb and prints its result.
pub(crate) fn run(request: &Request, tree: &dyn Tree, json: bool) -> Outcome {
    let report = report(request, tree)?;
    let warned = report.worst() >= Some(Severity::Warning);
    let exit = if warned { Exit::Negative } else { Exit::Success };
    if json { output::json(&report, exit) } else { output::write(lint_text::text(&report), exit) }
}

fn report(request: &Request, tree: &dyn Tree) -> Result<LintReport, Failure> {
    let context = Context { kernel: request.kernel, cpus: request.cpus.clone() };
    if let Some(Some(line)) = &request.boot_line {
        if line.len() > limits::BOOT_LINE {
            let (found, most) = (line.len(), limits::BOOT_LINE - 1);
            return Err(Failure::usage(format!(
                "a boot line of {found} bytes, expected at most {most}: no kernel takes more"
            )));
        }
        return Ok(lint(line, &context));
    }
    let running = Running::read(tree);
    let Some(line) = running.line.clone() else {
        let error = format!("the boot line cannot be read: {}", running.unread.join(", "));
        let hint = Some("give the line with --boot-line".to_owned());
        return Err(Failure::impossible(error).hint(hint));
    };
    let release = running.release.as_deref().and_then(|release| release.parse().ok());
    let context = Context {
        kernel: context.kernel.or(release),
        cpus: context.cpus.or_else(|| running.possible.clone()),
    };
    let mut report = lint(&line, &context);
    report.compare(running);
    Ok(report)
}
