//! Finds many patterns in one pass: the automaton of Aho and Corasick.
//!
//! Every node stands for the beginning of a pattern. After each byte the automaton is at the longest
//! beginning that the text ends with, so the node says how much of the text may still become a match.
//! That number is what a stream holds back by.

/// A node by its place in the table; 0 is the start.
pub(crate) type State = u32;

const START: State = 0;
/// No node: the start is nobody's child.
const NONE: State = 0;

/// Patterns, ready to be looked for once linked.
pub(crate) struct Automaton {
    nodes: Vec<Node>,
    /// Where each byte leads from the start, which is where most bytes of most texts are met.
    first: [State; 256],
}

#[derive(Clone, Copy, Default)]
struct Node {
    /// The first child and the next child of the same parent.
    child: State,
    sibling: State,
    /// The longest other beginning that this one ends with.
    fallback: State,
    /// How many bytes lead here.
    depth: u32,
    /// How many of them may still be part of a longer match.
    open: u32,
    /// Length of the longest pattern that ends here; 0 when none does.
    longest: u32,
    byte: u8,
}

impl Default for Automaton {
    fn default() -> Self {
        Self { nodes: vec![Node::default()], first: [NONE; 256] }
    }
}

impl Automaton {
    /// Adds a pattern. All come before [`Automaton::link`].
    pub(crate) fn add(&mut self, pattern: &[u8]) {
        let mut state = START;
        for byte in pattern {
            state = match self.child(state, *byte) {
                NONE => self.grow(state, *byte),
                child => child,
            };
        }
        let node = &mut self.nodes[state as usize];
        node.longest = node.depth;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.len() == 1
    }

    /// Finds out where to go on when a byte does not fit, level by level.
    pub(crate) fn link(&mut self) {
        let mut level: Vec<State> = self.first.iter().copied().filter(|s| *s != NONE).collect();
        for state in &level {
            self.nodes[*state as usize].open = 1;
        }
        while !level.is_empty() {
            let mut below = vec![];
            for parent in level {
                let mut child = self.nodes[parent as usize].child;
                while child != NONE {
                    self.link_one(parent, child);
                    below.push(child);
                    child = self.nodes[child as usize].sibling;
                }
            }
            level = below;
        }
    }

    fn link_one(&mut self, parent: State, child: State) {
        let byte = self.nodes[child as usize].byte;
        let fallback = self.next(self.nodes[parent as usize].fallback, byte);
        let below = self.nodes[fallback as usize];
        let node = &mut self.nodes[child as usize];
        node.fallback = fallback;
        node.longest = node.longest.max(below.longest);
        // A pattern that ends here and goes on nowhere is over.
        node.open = if node.child == NONE { below.open } else { node.depth };
    }

    /// Where a byte leads.
    pub(crate) fn next(&self, mut state: State, byte: u8) -> State {
        loop {
            match self.child(state, byte) {
                NONE if state == START => return START,
                NONE => state = self.nodes[state as usize].fallback,
                child => return child,
            }
        }
    }

    /// How much of the end of the text so far may still become a match.
    pub(crate) fn open(&self, state: State) -> u64 {
        u64::from(self.nodes[state as usize].open)
    }

    /// Length of the longest pattern that the text so far ends with.
    pub(crate) fn longest(&self, state: State) -> u64 {
        u64::from(self.nodes[state as usize].longest)
    }

    /// Whether there is any pattern in a text.
    pub(crate) fn finds_any(&self, text: &[u8]) -> bool {
        let mut state = START;
        text.iter().any(|byte| {
            state = self.next(state, *byte);
            self.nodes[state as usize].longest > 0
        })
    }

    fn child(&self, state: State, byte: u8) -> State {
        if state == START {
            return self.first[usize::from(byte)];
        }
        let mut child = self.nodes[state as usize].child;
        while child != NONE && self.nodes[child as usize].byte != byte {
            child = self.nodes[child as usize].sibling;
        }
        child
    }

    fn grow(&mut self, parent: State, byte: u8) -> State {
        let made = self.nodes.len() as State;
        let depth = self.nodes[parent as usize].depth + 1;
        let sibling = self.nodes[parent as usize].child;
        self.nodes.push(Node { depth, byte, ..Node::default() });
        if parent == START {
            self.first[usize::from(byte)] = made;
        } else {
            self.nodes[made as usize].sibling = sibling;
            self.nodes[parent as usize].child = made;
        }
        made
    }
}
