//! Texts as data: files of JSON that are part of the program, with one record for each thing that they describe.
//!
//! Records hold [`Text`]s, which live as long as the program, as constants do.

use serde::de::{Deserialize, DeserializeOwned, Deserializer};

/// A text that lives as long as the program.
pub type Text = &'static str;

/// Content of a file, most often a list of records.
///
/// # Panics
///
/// The file does not have this form. It is part of the program, and tests read all of them.
#[must_use]
pub fn read<T: DeserializeOwned>(file: &str) -> T {
    serde_json::from_str(file).expect("a file of this program has the form that is read")
}

/// Read a text of a record; for `deserialize_with`.
///
/// # Errors
///
/// The value is not a string.
pub fn text<'de, D: Deserializer<'de>>(value: D) -> Result<Text, D::Error> {
    String::deserialize(value).map(|text| &*text.leak())
}

/// Read a list of texts of a record; for `deserialize_with`.
///
/// # Errors
///
/// The value is not a list of strings.
pub fn list<'de, D: Deserializer<'de>>(value: D) -> Result<&'static [Text], D::Error> {
    let texts: Vec<String> = Vec::deserialize(value)?;
    Ok(texts.into_iter().map(|text| &*text.leak()).collect::<Vec<Text>>().leak())
}
