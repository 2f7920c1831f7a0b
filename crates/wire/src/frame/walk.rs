//! From the start of a frame to the innermost packet.

use super::encapsulation::{self, Encapsulation};
use super::{Layers, Link, layers, tunnel};
use std::ops::Range;

/// Encapsulations are followed this far; a deeper nesting is an attack, not traffic.
const MOST_STEPS: usize = 32;

/// A place in a frame where a packet stands.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The encapsulation around it, if it was found in one. An encrypted one is told at the place where it stands.
    pub encapsulation: Option<Encapsulation>,
    /// Its ethertype.
    pub ethertype: u16,
    /// Its first byte, at most the length of the frame.
    pub start: usize,
    /// Its end at the latest, by the packets around it.
    pub end: usize,
    /// Its layers, if it is IP.
    pub layers: Option<Layers>,
}

/// The packets in a frame, from the outermost to the innermost. Steps into all encapsulations, VLAN tags too.
#[derive(Debug)]
pub struct Walk<'a> {
    frame: &'a [u8],
    next: Option<Place>,
    steps: usize,
}

impl<'a> Walk<'a> {
    /// Begins behind the L2 header. A frame that ends in it has no place.
    #[must_use]
    pub fn new(link: Link, frame: &'a [u8]) -> Self {
        let next = link
            .header(frame)
            .and_then(|(ethertype, start)| Place::new(None, ethertype, frame, start..frame.len()));
        Self { frame, next, steps: 0 }
    }

    /// The place behind `place`.
    fn step(&mut self, place: &Place) -> Option<Place> {
        let packet = &self.frame[place.start..place.end];
        let (encapsulation, inner) = match &place.layers {
            Some(layers) => tunnel::step(layers, packet)?,
            None => encapsulation::step(place.ethertype, packet)?,
        };
        let encapsulation = Some(encapsulation);
        let Some((ethertype, offset)) = inner else {
            self.steps = MOST_STEPS;
            return Some(Place { encapsulation, ..*place });
        };
        let end = place
            .layers
            .map_or(place.end, |layers| place.end.min(place.start.saturating_add(layers.end)));
        Place::new(encapsulation, ethertype, self.frame, place.start + offset..end)
    }
}

impl Iterator for Walk<'_> {
    type Item = Place;

    #[inline]
    fn next(&mut self) -> Option<Place> {
        let place = self.next.take()?;
        if self.steps < MOST_STEPS {
            self.steps += 1;
            self.next = self.step(&place);
        }
        Some(place)
    }
}

impl Place {
    fn new(
        encapsulation: Option<Encapsulation>,
        ethertype: u16,
        frame: &[u8],
        Range { start, end }: Range<usize>,
    ) -> Option<Self> {
        let layers = layers(ethertype, frame.get(start..end)?);
        Some(Self { encapsulation, ethertype, start, end, layers })
    }
}
