//! The engine behind the commands.

mod folder;
mod greeting;
mod settings;
mod starting;
mod versions;
