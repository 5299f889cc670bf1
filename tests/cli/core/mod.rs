//! `ci-tool core`: functions of the API as words and flags.

mod container;
mod directory;
mod exec;
mod file;
mod host;
mod mounts;
mod output;
