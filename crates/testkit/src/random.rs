//! Random numbers that can be had again: the seed is printed, and `TESTKIT_RANDOM` sets it.

use crate::surroundings::random_seed;
use std::time::{SystemTime, UNIX_EPOCH};

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A new stream for a test, its seed printed.
    pub fn new(test: &str) -> Self {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
        let seed = random_seed().unwrap_or(clock.as_nanos() as u64);
        eprintln!("{test}: TESTKIT_RANDOM={seed}");
        Self::from_seed(seed)
    }

    /// The stream with this seed. Every seed has another one, and those of neighbours have nothing in common.
    pub fn from_seed(seed: u64) -> Self {
        let mut state = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        // From nothing nothing comes, for ever.
        Self((state ^ (state >> 31)).max(1))
    }

    /// The next number.
    pub fn next_number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below a limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next_number() % limit
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }

    /// Damages bytes in a few places: some changed, some gone, some twice, some new, the end cut off.
    pub fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(4) {
            let length = bytes.len() as u64;
            let at = self.below(length + 1) as usize;
            let count = (self.below(16) as usize).min(bytes.len() - at);
            match self.below(6) {
                0 => bytes[at..at + count].iter_mut().for_each(|byte| *byte ^= self.byte()),
                1 => drop(bytes.drain(at..at + count)),
                2 => {
                    let again = bytes[at..at + count].to_vec();
                    bytes.splice(at..at, again);
                }
                3 => {
                    let new: Vec<u8> = (0..self.below(16)).map(|_| self.byte()).collect();
                    bytes.splice(at..at, new);
                }
                4 => bytes[at..at + count]
                    .fill(*[0, 0xff, b'"', b'{', b'9'].get(count % 5).unwrap_or(&0)),
                _ => bytes.truncate(at),
            }
        }
    }

    fn byte(&mut self) -> u8 {
        self.next_number().to_le_bytes()[3]
    }

    /// Letters and digits, for names nobody else uses.
    pub fn word(&mut self) -> String {
        format!("{:016x}", self.next_number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_seed_gives_the_same_numbers_again() {
        let numbers = |seed| {
            let mut random = Random::from_seed(seed);
            (0..8).map(|_| random.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8 << 20));
    }

    #[test]
    fn every_seed_gives_other_numbers() {
        let firsts: HashSet<u64> =
            (0..1000).map(|seed| Random::from_seed(seed).next_number()).collect();
        assert_eq!(firsts.len(), 1000);
        assert!(!firsts.contains(&0));
    }
}
