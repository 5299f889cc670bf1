//! The engine behind the commands.

mod greeting;
mod settings;
mod starting;
