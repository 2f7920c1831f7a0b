//! `tailtrim._native`: the crates behind Python. Captures in, Arrow tables and a JSON summary out; the
//! public face of it is `python/tailtrim`.
#![forbid(unsafe_code)]

mod analysis;
mod compare;
mod decode;
mod errors;
mod exchange;
mod explain;
mod groups;
mod ledger;
mod merge;
mod names;
mod probabilities;
mod roundtrip;
mod rows;
mod stretches;
mod tail;
mod words;

use pyo3::pymodule;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::analysis::{NativeAnalysis, analyze, survey};
    #[pymodule_export]
    use crate::compare::{
        NativeRepetition, compare_losses, compare_runs, design_effect, plan_length, promised,
    };
    #[pymodule_export]
    use crate::decode::NativeDecoder;
    #[pymodule_export]
    use crate::errors::{CaptureError, OutputError, TailtrimError, TwoDirectionsError};

    #[pymodule_export]
    use crate::exchange::{analyze_exchanges, count_exchanges, protocols};

    #[pymodule_export]
    use crate::explain::{explain_late, periodic_causes, phases_covered, simulate_interrupts};

    #[pymodule_export]
    use crate::groups::{analyze_by, fields};

    #[pymodule_export]
    use crate::ledger::NativeLedger;

    #[pymodule_export]
    use crate::names::exchange;

    #[pymodule_export]
    use crate::probabilities::{confidence, episodes_needed, quantile};
    #[pymodule_export]
    use crate::words::{nanoseconds, rate};

    #[pymodule_export]
    use crate::roundtrip::analyze_round_trips;

    #[pymodule_export]
    use crate::tail::NativeTail;

    #[pymodule_export]
    use crate::stretches::{analyze_stretches, count_stretch, outline_stretch};

    /// Version of the crate, equal to that of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
