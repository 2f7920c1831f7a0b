//! The tables of a run directory as Parquet files.

use crate::batches;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use tailtrim_tail::analysis::{Analysis, Sample, Sink};

/// Samples held before they are handed to the writer.
const BATCH: usize = 64 * 1024;

/// Rows of a row group: what the writer may hold in memory.
const ROW_GROUP: usize = 1 << 20;

fn create(directory: &Path, table: &str, schema: SchemaRef) -> io::Result<ArrowWriter<File>> {
    let file = File::create(directory.join(format!("{table}.parquet")))?;
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(ROW_GROUP));
    // Stamps grow: their differences are small, and a dictionary of them would be larger than they are.
    for column in ["ingress_ns", "egress_ns"] {
        let path = ColumnPath::from(column);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    ArrowWriter::try_new(file, schema, Some(properties.build())).map_err(said)
}

/// The error of the system in one of the Parquet writer.
fn said(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(cause) => io::Error::other(cause),
        },
        error => error.into(),
    }
}

/// Writes every table but the samples into `directory`.
///
/// # Errors
/// What the system says.
pub fn write_tables(directory: &Path, analysis: &Analysis) -> io::Result<()> {
    let tables = batches::all(analysis).map_err(io::Error::other)?;
    tables.iter().try_for_each(|(name, batch)| write(directory, name, batch))
}

fn write(directory: &Path, name: &str, batch: &RecordBatch) -> io::Result<()> {
    let mut writer = create(directory, name, batch.schema())?;
    writer.write(batch).map_err(said)?;
    writer.close().map_err(said)?;
    Ok(())
}

/// Where the samples of an analysis go: to memory, to a file, to both or nowhere.
pub struct SampleSink {
    /// Those in memory.
    pub kept: Option<Vec<Sample>>,
    file: Option<SampleFile>,
}

struct SampleFile {
    directory: PathBuf,
    writer: ArrowWriter<File>,
    buffer: Vec<Sample>,
}

impl SampleSink {
    /// Keeps samples in memory, or writes them to `sample.parquet` in a directory.
    ///
    /// # Errors
    /// What the system says of the file.
    pub fn new(keep: bool, directory: Option<&Path>) -> io::Result<Self> {
        let file = match directory {
            None => None,
            Some(directory) => {
                let writer = create(directory, "sample", batches::sample_schema())?;
                let directory = directory.to_owned();
                Some(SampleFile { directory, writer, buffer: Vec::with_capacity(BATCH) })
            }
        };
        Ok(Self { kept: keep.then(Vec::new), file })
    }

    /// Writes what is left and ends the file.
    ///
    /// # Errors
    /// The directory, and what the system says.
    pub fn close(&mut self) -> io::Result<()> {
        if let Some(mut file) = self.file.take() {
            file.flush()?;
            file.writer.close().map_err(|error| cannot_be_written(&file.directory, error))?;
        }
        Ok(())
    }
}

impl SampleFile {
    fn flush(&mut self) -> io::Result<()> {
        let samples = batches::samples(&self.buffer).map_err(io::Error::other)?;
        self.writer.write(&samples).map_err(|error| cannot_be_written(&self.directory, error))?;
        self.buffer.clear();
        Ok(())
    }
}

fn cannot_be_written(directory: &Path, error: ParquetError) -> io::Error {
    let error = said(error);
    io::Error::new(error.kind(), format!("{}: cannot be written: {error}", directory.display()))
}

impl Sink for SampleSink {
    #[inline]
    fn sample(&mut self, sample: &Sample) -> io::Result<()> {
        if let Some(kept) = &mut self.kept {
            kept.push(*sample);
        }
        if let Some(file) = &mut self.file {
            file.buffer.push(*sample);
            if file.buffer.len() == BATCH {
                file.flush()?;
            }
        }
        Ok(())
    }

    fn start_again(&mut self) -> io::Result<bool> {
        let directory = self.file.take().map(|file| file.directory);
        *self = Self::new(self.kept.is_some(), directory.as_deref())?;
        Ok(true)
    }

    fn takes_samples(&self) -> bool {
        self.kept.is_some() || self.file.is_some()
    }
}
