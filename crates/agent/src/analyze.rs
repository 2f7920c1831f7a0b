//! `tailtrim-agent analyze`.

use crate::args::{Analyze, Mask, Stamps};
use crate::exit::Exit;
use crate::hints::Hint;
use crate::output::{self, failed};
use std::ops::ControlFlow;
use tailtrim_linux::source::{self, Reading};
use tailtrim_tail::analysis::{AnalysisError, Options, analyze};
use tailtrim_tail::capture::StampSource;
use tailtrim_tail::matching::Window;
use tailtrim_tail::signature::Rewrites;
use tailtrim_tail::summary::Summary;

/// Runs the verb and prints its result.
pub(crate) fn run(request: &Analyze) -> Exit {
    match summary(request) {
        Ok(summary) => {
            if let Err(error) = summary.check_order()
                && !request.allow_negative
            {
                return failed(&error.told(), Exit::Usage);
            }
            let none = summary.samples == 0;
            output::json(&summary, if none { Exit::Negative } else { Exit::Success })
        }
        Err(AnalysisError::Capture(error)) => failed(&error.told(), Exit::Usage),
        Err(error) => failed(&error.to_string(), Exit::Usage),
    }
}

fn summary(request: &Analyze) -> Result<Summary, AnalysisError> {
    let reading = Reading {
        stamps: match request.stamps {
            Stamps::Header => StampSource::Header,
            Stamps::X552 => StampSource::X552Trailer,
        },
        salvage: request.salvage,
    };
    let mut ingress = source::open(&request.ingress, reading)?;
    let mut egress = source::open(&request.egress, reading)?;
    let masked = |mask| request.mask.contains(&mask);
    let options = Options {
        window: Window { window_ns: request.window, ..Window::default() },
        trim_ns: request.trim,
        rewrites: Rewrites {
            nat: masked(Mask::Nat),
            tos: masked(Mask::Tos),
            tunnel: masked(Mask::Tunnel),
        },
        selection: request.signature.clone(),
        quantiles: request.quantiles.clone(),
        confidence: request.confidence,
        ..Options::default()
    };
    let progress = |_, _| ControlFlow::Continue(());
    let analysis = analyze(&mut ingress.capture, &mut egress.capture, &options, &mut (), progress)?;
    Ok(analysis.summary)
}
