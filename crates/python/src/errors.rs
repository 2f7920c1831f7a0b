//! Rust errors as Python exceptions. What to do about an error is attached as a note (PEP 678).

use pyo3::exceptions::{PyException, PyValueError};
use pyo3::{PyErr, Python, create_exception};
use tailtrim_tail::analysis::{AnalysisError, OrderError};
use tailtrim_tail::capture::{self, Remedy};
use tailtrim_tail::summary::counted;

create_exception!(
    tailtrim,
    TailtrimError,
    PyException,
    "Anything that tailtrim reports as an error."
);
create_exception!(
    tailtrim,
    CaptureError,
    TailtrimError,
    "A capture that cannot be read; says where and what was expected there."
);
create_exception!(
    tailtrim,
    TwoDirectionsError,
    CaptureError,
    "Captures whose packets go two ways: each is to be analysed on its own."
);
create_exception!(tailtrim, OutputError, TailtrimError, "A result that cannot be written.");

/// The exception for `error`.
pub(crate) fn raise(py: Python<'_>, error: &AnalysisError) -> PyErr {
    match error {
        AnalysisError::Capture(capture) => raise_capture(py, capture),
        AnalysisError::Sink(_) => OutputError::new_err(error.to_string()),
        _ => TailtrimError::new_err(error.to_string()),
    }
}

/// The exception for an option that makes no sense.
pub(crate) fn invalid(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The exception for a capture that cannot be read.
pub(crate) fn raise_capture(py: Python<'_>, error: &capture::CaptureError) -> PyErr {
    noted(py, CaptureError::new_err(error.to_string()), error.remedy().map(note))
}

/// The exception for captures that were given in the wrong order, or twice.
pub(crate) fn raise_order(py: Python<'_>, error: &OrderError) -> PyErr {
    let hint = match error {
        OrderError::TwoDirections { .. } => {
            let hint = "use direction='forward' or direction='reverse'";
            return noted(
                py,
                TwoDirectionsError::new_err(error.to_string()),
                Some(hint.to_owned()),
            );
        }
        OrderError::Same { .. } | OrderError::Negative { median_ns: 1.., .. } => {
            "use allow_negative=True to analyse them as they are"
        }
        OrderError::Negative { .. } => {
            "give the ingress capture first, correct the clocks with clock_fit=True, or use \
             allow_negative=True to analyse them as they are"
        }
    };
    noted(py, CaptureError::new_err(error.to_string()), Some(hint.to_owned()))
}

/// Advice on an error, in terms of the functions' keyword options.
fn note(remedy: Remedy) -> String {
    match remedy {
        Remedy::Salvage { packets: Some(packets) } => {
            format!("use salvage=True to analyse the {} before the damage", counted(packets, "packet"))
        }
        Remedy::Salvage { packets: None } => {
            "use salvage=True to analyse what could be read".to_owned()
        }
        Remedy::Nanoseconds { packets } => format!(
            "nanoseconds=True if these are nanoseconds under the magic number of microseconds; if the capture is damaged, \
             salvage=True to analyse the {} before",
            counted(packets, "packet")
        ),
        Remedy::Sort => "the capture's clock was set back: use clock_fit=True to correct it; or sort the file (reordercap) if only that \
                         is disordered"
            .to_owned(),
    }
}

fn noted(py: Python<'_>, exception: PyErr, hint: Option<String>) -> PyErr {
    match hint.map(|hint| exception.value(py).add_note(&hint)) {
        Some(Err(failure)) => failure,
        None | Some(Ok(())) => exception,
    }
}

/// Attaches a note, as `BaseException.add_note` does.
trait AddNote {
    fn add_note(&self, note: &str) -> Result<(), PyErr>;
}

impl AddNote for pyo3::Bound<'_, pyo3::exceptions::PyBaseException> {
    fn add_note(&self, note: &str) -> Result<(), PyErr> {
        use pyo3::types::PyAnyMethods;
        self.call_method1("add_note", (note,)).map(|_| ())
    }
}
