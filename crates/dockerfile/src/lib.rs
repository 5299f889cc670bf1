//! The Dockerfile language: text in, instructions out. No store, no network, no file is opened.
//!
//! [`Dockerfile::parse`] reads a whole file: directives, lines with their continuations and here-documents, instructions,
//! stages. Variables stay as they were written, because what they stand for depends on where a stage
//! begins; who builds calls [`Expander`] with the values of that moment.
//!
//! The syntax is read by hand: what a line means depends on the escape character, on here-documents that end it, on
//! quotes that stay until variables are replaced, and on triggers (`ONBUILD`) that arrive as single lines
//! out of an image. A syntax tree of somebody else would have to be taken apart again for each of these.

mod error;
mod expand;
mod glob;
mod healthcheck;
mod heredoc;
mod ignore;
mod instruction;
mod lines;
mod mount;
mod parse;
mod stage;
mod words;

pub use error::Error;
pub use expand::{Expander, Variables};
pub use glob::{NamePattern, PathPart, PathPattern};
pub use healthcheck::Healthcheck;
pub use heredoc::Heredoc;
pub use ignore::ignored;
pub use instruction::{Action, CommandLine, Copy, Instruction, Run, RunNetwork, Source};
pub use mount::{Mount, MountKind, RawMount, Sharing};
pub use parse::trigger;
pub use stage::{Argument, Dockerfile, Stage, StageRef};
