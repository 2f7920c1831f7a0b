//! A capture file, written by a thread of its own: a disk may stand still for longer than a port has memory for.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread::{self, JoinHandle};
use tailtrim_sys::clock;

/// Bytes that are written at once, and how many of these wait for the disk before the tap does.
const BLOCK: usize = 1 << 20;
const WAITING: usize = 32;

/// A capture file being written.
pub struct CaptureFile {
    pub(super) path: PathBuf,
    block: Block,
    /// The way to the thread; `None` once it has ended.
    blocks: Option<SyncSender<Block>>,
    /// Memory of blocks that were written.
    spare: Receiver<Vec<u8>>,
    written: Arc<AtomicU64>,
    thread: Option<JoinHandle<io::Result<()>>>,
    waited_ns: i64,
}

/// Whole records.
#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    frames: u64,
}

enum Output {
    Plain(File),
    Zstd(zstd::Encoder<'static, File>),
}

impl CaptureFile {
    /// Creates the file, compressed with zstd or not.
    ///
    /// # Errors
    /// The system's error.
    pub fn create(path: &Path, zstd: bool) -> io::Result<Self> {
        let file = File::create(path)?;
        let output = match zstd {
            true => Output::Zstd(zstd::Encoder::new(file, 1)?),
            false => Output::Plain(file),
        };
        let (blocks, full) = sync_channel(WAITING);
        let (empty, spare) = channel();
        let written = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&written);
        let thread =
            thread::Builder::new().spawn(move || write(output, &full, &empty, &counted))?;
        Ok(Self {
            path: path.to_owned(),
            block: Block::default(),
            blocks: Some(blocks),
            spare,
            written,
            thread: Some(thread),
            waited_ns: 0,
        })
    }

    /// Takes the header of the file.
    pub(super) fn header(&mut self, bytes: &[u8]) {
        self.block.bytes.extend_from_slice(bytes);
    }

    /// Takes a record. An error is that of an earlier one.
    pub(super) fn record(&mut self, head: &[u8], frame: &[u8]) -> io::Result<()> {
        if self.block.bytes.len() + head.len() + frame.len() > BLOCK {
            self.hand_over()?;
        }
        self.block.bytes.extend_from_slice(head);
        self.block.bytes.extend_from_slice(frame);
        self.block.frames += 1;
        Ok(())
    }

    /// Writes the rest.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.hand_over()?;
        self.end()
    }

    /// Frames that were written, as far as the system says so.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Time for which frames were left in their port because the disk was behind.
    pub(super) fn waited_ns(&self) -> i64 {
        self.waited_ns
    }

    fn hand_over(&mut self) -> io::Result<()> {
        let mut next = self.spare.try_recv().unwrap_or_else(|_| Vec::with_capacity(BLOCK));
        next.clear();
        let block = std::mem::replace(&mut self.block, Block { bytes: next, frames: 0 });
        let Some(blocks) = &self.blocks else { return self.end() };
        let sent = match blocks.try_send(block) {
            Err(TrySendError::Full(block)) => {
                let begun_ns = clock::monotonic_ns();
                let sent = blocks.send(block).is_ok();
                self.waited_ns += clock::monotonic_ns() - begun_ns;
                sent
            }
            other => other.is_ok(),
        };
        // The thread ends earlier only by an error.
        if sent { Ok(()) } else { self.end() }
    }

    /// Waits until the thread has written everything. Returns its error.
    fn end(&mut self) -> io::Result<()> {
        self.blocks = None;
        let ended = self.thread.take().map(JoinHandle::join);
        ended.unwrap_or(Ok(Ok(()))).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for CaptureFile {
    fn drop(&mut self) {
        // A capture that broke off keeps what it has.
        let _ = self.end();
    }
}

fn write(
    mut output: Output,
    full: &Receiver<Block>,
    empty: &Sender<Vec<u8>>,
    written: &AtomicU64,
) -> io::Result<()> {
    for block in full {
        match &mut output {
            Output::Plain(file) => file.write_all(&block.bytes)?,
            Output::Zstd(file) => file.write_all(&block.bytes)?,
        }
        written.fetch_add(block.frames, Ordering::Relaxed);
        // At the end, no memory is taken back.
        let _ = empty.send(block.bytes);
    }
    match output {
        Output::Plain(_) => Ok(()),
        Output::Zstd(file) => file.finish().map(drop),
    }
}
