//! `ci-tool core`: functions of the API as words and flags.

mod cache_volume;
mod container;
mod directory;
mod engine_cache;
mod exec;
mod export;
mod export_disk;
pub(crate) mod export_tree;
mod file;
mod host;
mod host_import;
mod image;
pub(crate) mod image_files;
mod image_logins;
mod mounts;
mod output;
