//! `ci-tool core`: functions of the API as words and flags.

mod alter;
mod cache_volume;
mod container;
mod directory;
mod engine_cache;
mod env_file;
mod exec;
mod export;
mod export_disk;
pub(crate) mod export_tree;
mod file;
mod host;
mod host_import;
mod host_store;
mod http;
mod image;
pub(crate) mod image_files;
mod image_logins;
mod json_value;
mod look;
mod mounts;
mod output;
mod platform;
mod search;
mod variables;
mod volume;
