//! One sender: it hands probes over when they are due, or ahead of that to a port that keeps them until then.

use super::back::Back;
use super::pool::{Pool, Probes};
use super::stalls::Watch;
use super::{Departures, GenerateError, Load, Share};
use crate::port::{Port, Timed};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tailtrim_wire::traffic::Probe;

/// Least time until the next departure in which a stamp is taken: that takes about 1 µs.
const LOOK_NS: i64 = 4_000;
/// Nothing more comes back when nothing came for so long: a driver hands a stamp over within milliseconds.
const QUIET_NS: i64 = 300_000_000;
const PAUSE: Duration = Duration::from_millis(1);

type Log<'a, 'b> = Option<&'a mut (dyn Write + 'b)>;

/// Sends the probes of one share.
pub(super) fn send(
    port: &mut dyn Port,
    load: Load,
    share: Share,
    mut log: Log<'_, '_>,
    stopped: &AtomicBool,
) -> Result<Departures, GenerateError> {
    let pool = Pool::new(&load.builder, &load.sizes);
    let done = Departures { back: Back::of(port.departing()), ..Departures::default() };
    let mut sender = Sender { port, pool, share, done, watch: Watch::new() };
    let mut probes = Probes::new(load, share);
    match sender.port.departing().timed {
        None => sender.punctually(&mut probes, &mut log, stopped)?,
        Some(timed) => sender.ahead(timed, &mut probes, &mut log, stopped)?,
    }
    sender.hear_out(&mut log)?;
    if let Some(log) = &mut log {
        log.flush().map_err(GenerateError::Log)?;
    }
    let Sender { port, mut done, watch, .. } = sender;
    done.stalls = watch.end();
    done.port = port.counters()?;
    done.sent = done.sent.saturating_sub(done.port.discarded + done.back.missed);
    Ok(done)
}

struct Sender<'a> {
    port: &'a mut dyn Port,
    pool: Pool,
    share: Share,
    done: Departures,
    watch: Watch,
}

impl Sender<'_> {
    /// Polls the clock, and hands probes over when they are due.
    fn punctually(
        &mut self,
        probes: &mut Probes,
        log: &mut Log<'_, '_>,
        stopped: &AtomicBool,
    ) -> Result<(), GenerateError> {
        let clock = self.share.clock;
        while let Some(next_ns) = probes.next_ns() {
            let mut now_ns = clock.now_ns();
            self.watch.waited(now_ns);
            while now_ns < next_ns && !stopped.load(Ordering::Relaxed) {
                if next_ns - now_ns < LOOK_NS || !self.misses_some() || self.hear(&mut None)? == 0 {
                    std::hint::spin_loop();
                }
                now_ns = clock.now_ns();
                self.watch.waited(now_ns);
            }
            if stopped.load(Ordering::Relaxed) {
                break;
            }
            let last_ns = probes.fill(&mut self.pool, now_ns);
            let (frames, probes) = self.pool.batch();
            let actual_ns = clock.now_ns();
            let mut taken = 0;
            while taken < frames.len() {
                let count = self.port.send(&frames[taken..])?;
                // The port took fewer: it has no room.
                taken += count;
                if count == 0 {
                    break;
                }
            }
            let lateness_ns =
                probes.first().map_or(0, |probe| actual_ns - probe.intended_ns.cast_signed());
            self.watch.sent(actual_ns, clock.now_ns(), frames.len(), lateness_ns);
            for probe in &probes[..taken] {
                let lateness_ns = actual_ns - probe.intended_ns.cast_signed();
                self.done.lateness.record(lateness_ns);
                self.watch.departed(lateness_ns);
                write(log, probe, actual_ns)?;
            }
            if taken > 0 {
                self.done.departed(actual_ns);
            }
            self.done.back.gave(frames.len(), taken);
            self.done.handed(&frames, taken, last_ns);
        }
        Ok(())
    }

    /// Sleeps, and hands probes over ahead of their time. They departed when the kernel's stamps say so.
    fn ahead(
        &mut self,
        timed: Timed,
        probes: &mut Probes,
        log: &mut Log<'_, '_>,
        stopped: &AtomicBool,
    ) -> Result<(), GenerateError> {
        let clock = self.share.clock;
        let mut times = Vec::new();
        while let Some(next_ns) = probes.next_ns()
            && !stopped.load(Ordering::Relaxed)
        {
            let now_ns = clock.now_ns();
            // All that are due until then, and then none until half of that is over.
            if now_ns < next_ns - timed.ahead_ns {
                self.hear(log)?;
                let sleep_ns = next_ns - timed.ahead_ns / 2 - clock.now_ns();
                let most = PAUSE.as_nanos() as i64;
                thread::sleep(Duration::from_nanos(sleep_ns.clamp(0, most).cast_unsigned()));
                if sleep_ns > most {
                    continue;
                }
            }
            let last_ns = probes.fill(&mut self.pool, clock.now_ns() + timed.ahead_ns);
            let (frames, batch) = self.pool.batch();
            times.clear();
            times.extend(batch.iter().map(|probe| probe.intended_ns.cast_signed()));
            let (mut taken, mut at) = (0, 0);
            while at < frames.len() {
                let count = self.port.send_at(&frames[at..], &times[at..])?;
                taken += count;
                // The first that is left found no room, or its time had passed: those behind it may depart.
                at += count + usize::from(count == 0);
            }
            self.done.back.gave(1, taken);
            self.done.handed(&frames, taken, last_ns);
        }
        Ok(())
    }

    /// Whether sent probes have not come back.
    fn misses_some(&self) -> bool {
        self.done.back.misses_some(self.done.sent)
    }

    /// Takes some sent probes that came back. Returns their number.
    fn hear(&mut self, log: &mut Log<'_, '_>) -> Result<usize, GenerateError> {
        let timed = self.port.departing().timed.is_some();
        let Self { port, share, done, watch, .. } = self;
        let mut failed = Ok(());
        let count = port.departed(&mut |departed| {
            let (probe, kernel_ns) = (departed.probe, done.back.record(departed, share.step));
            if timed && let Some(actual_ns) = kernel_ns {
                let lateness_ns = actual_ns - probe.intended_ns.cast_signed();
                done.lateness.record(lateness_ns);
                watch.departed(lateness_ns);
                watch.late((actual_ns, actual_ns), lateness_ns);
                done.departed(actual_ns);
                if let Err(error) = write(log, &probe, actual_ns) {
                    failed = Err(error);
                }
            }
        })?;
        failed.map(|()| count)
    }

    /// Takes the rest of what comes back.
    fn hear_out(&mut self, log: &mut Log<'_, '_>) -> Result<(), GenerateError> {
        let clock = self.share.clock;
        let mut heard_ns = clock.now_ns();
        // Some are still to depart.
        if let Some(timed) = self.port.departing().timed {
            heard_ns += timed.ahead_ns;
        }
        while self.misses_some() && clock.now_ns() < heard_ns + QUIET_NS {
            if self.hear(log)? > 0 {
                heard_ns = heard_ns.max(clock.now_ns());
            } else {
                thread::sleep(PAUSE);
            }
        }
        Ok(())
    }
}

impl Departures {
    fn departed(&mut self, actual_ns: i64) {
        self.first_actual_ns = self.first_actual_ns.min(actual_ns);
        self.last_actual_ns = self.last_actual_ns.max(actual_ns);
    }

    fn handed(&mut self, frames: &[&[u8]], taken: usize, last_ns: u64) {
        self.last_intended_ns = last_ns;
        self.due += frames.len() as u64;
        self.sent += taken as u64;
        self.sent_bytes += frames[..taken].iter().map(|frame| frame.len() as u64).sum::<u64>();
    }
}

fn write(log: &mut Log<'_, '_>, probe: &Probe, actual_ns: i64) -> Result<(), GenerateError> {
    if let Some(log) = log {
        let intended_ns = probe.intended_ns.cast_signed();
        for value in [probe.sequence.cast_signed(), intended_ns, actual_ns] {
            log.write_all(&value.to_le_bytes()).map_err(GenerateError::Log)?;
        }
    }
    Ok(())
}
