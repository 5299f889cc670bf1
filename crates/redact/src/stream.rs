//! [`Stream`]: takes secrets out of a text that comes in pieces.

use crate::MARK;
use crate::automaton::{Automaton, State};
use std::collections::VecDeque;
use std::sync::Arc;

/// A text that comes in pieces. Secrets are found wherever the pieces are cut.
///
/// Places that overlap become one mark, so that no part of any secret is left between two.
pub struct Stream {
    automaton: Option<Arc<Automaton>>,
    state: State,
    /// What is not passed on yet, and where in the text it begins.
    held: Vec<u8>,
    start: u64,
    /// Where secrets stand in what is held: apart from each other, in order.
    found: VecDeque<Place>,
}

#[derive(Clone, Copy)]
struct Place {
    start: u64,
    end: u64,
}

impl Stream {
    pub(crate) fn new(automaton: Option<Arc<Automaton>>) -> Self {
        Self { automaton, state: 0, held: vec![], start: 0, found: VecDeque::new() }
    }

    /// Takes the next piece and adds to `clean` what can be passed on.
    pub fn push(&mut self, piece: &[u8], clean: &mut Vec<u8>) {
        let Some(automaton) = self.automaton.clone() else {
            clean.extend_from_slice(piece);
            return;
        };
        let mut at = self.start + self.held.len() as u64;
        self.held.extend_from_slice(piece);
        for byte in piece {
            self.state = automaton.next(self.state, *byte);
            at += 1;
            let length = automaton.longest(self.state);
            if length > 0 {
                self.note(Place { start: at - length, end: at });
            }
        }
        self.release(at - automaton.open(self.state), clean);
    }

    /// Ends the text and adds to `clean` what was held back. Another text may follow.
    pub fn finish(&mut self, clean: &mut Vec<u8>) {
        self.release(self.start + self.held.len() as u64, clean);
        self.state = 0;
    }

    fn note(&mut self, mut place: Place) {
        while let Some(last) = self.found.back()
            && last.end > place.start
        {
            place.start = place.start.min(last.start);
            self.found.pop_back();
        }
        self.found.push_back(place);
    }

    /// Passes on what comes before `settled`: nothing that begins there can become a match. A secret
    /// that reaches beyond it may grow, and waits.
    fn release(&mut self, settled: u64, clean: &mut Vec<u8>) {
        let mut at = self.start;
        while let Some(place) = self.found.front().copied()
            && place.end <= settled
        {
            clean.extend_from_slice(self.part(at, place.start));
            clean.extend_from_slice(MARK.as_bytes());
            at = place.end;
            self.found.pop_front();
        }
        let until = self.found.front().map_or(settled, |place| place.start.min(settled));
        clean.extend_from_slice(self.part(at, until));
        self.held.drain(..(until - self.start) as usize);
        self.start = until;
    }

    fn part(&self, from: u64, to: u64) -> &[u8] {
        &self.held[(from - self.start) as usize..(to - self.start) as usize]
    }
}
