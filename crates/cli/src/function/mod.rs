//! Functions of the API as commands: words and flags become one GraphQL document.
//!
//! The way of a command line through here: [`chain::parse`] finds the functions and the flags of
//! each in the schema, [`plan::Plan::new`] turns flag values into literals and lists what has to be
//! looked up first, [`plan::Plan::document`] writes the document, and [`answer`] turns the reply into
//! what is printed. All of it is pure; talking to the engine is the commands' business.

pub(crate) mod answer;
pub(crate) mod chain;
pub(crate) mod flag;
pub(crate) mod hint;
pub(crate) mod literal;
pub(crate) mod name;
pub(crate) mod page;
pub(crate) mod plan;
pub(crate) mod table;
pub(crate) mod value;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
