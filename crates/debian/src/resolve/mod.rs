//! Which packages make an image: what apt would install, without recommendations.
//!
//! The rules are apt's, read off its behaviour: named packages are taken first, then their
//! dependencies depth first; a group of alternatives that is already met is left alone, else the
//! first alternative that can be installed is taken. What failed once is not tried again, so the
//! search is linear. It never removes anything: a conflict with what is already chosen is an error.

mod archives;
mod order;
mod search;
#[cfg(test)]
mod tests;

pub use archives::{Archives, PackageId};

use search::Search;

/// Packages to install, each after what it depends on, where there is no cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The packages.
    pub packages: Vec<Chosen>,
    /// How many of them, from the first on, are essential or needed by such. Others may rely on them
    /// without saying so, so they are to be configured before the rest.
    pub essential: usize,
}

/// A package of a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Which.
    pub id: PackageId,
    /// Whether it is there only because another one needs it.
    pub automatic: bool,
}

/// Why there is no selection.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// No archive has it.
    #[error("there is no package `{name}`")]
    Unknown {
        /// As it was asked for.
        name: String,
        /// Names that resemble it.
        near: Vec<String>,
    },
    /// Only a virtual name, and several packages provide it.
    #[error("`{name}` is a virtual package provided by {}", list(.providers))]
    Virtual {
        /// As it was asked for.
        name: String,
        /// Who provides it.
        providers: Vec<String>,
    },
    /// A dependency that no package of the archives meets.
    #[error("`{dependency}` cannot be installed, but {} depends on it", joined(.chain))]
    Unsatisfiable {
        /// The dependency, as it is written.
        dependency: String,
        /// From the package asked for to the one with the dependency.
        chain: Vec<String>,
    },
    /// Two packages that exclude each other.
    #[error("`{package}` conflicts with `{other}`; {} needs it", joined(.chain))]
    Conflict {
        /// The package that cannot be added.
        package: String,
        /// The one already chosen.
        other: String,
        /// From the package asked for to the one that cannot be added.
        chain: Vec<String>,
    },
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn joined(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" -> ")
}

/// The base of every image: essential and required packages, and apt.
pub fn base(archives: &Archives) -> Result<Selection, Error> {
    let mut search = Search::new(archives);
    let mut named = archives.required();
    let apt = archives.candidate("apt");
    let unknown = || Error::Unknown { name: "apt".to_owned(), near: vec![] };
    named.push(apt.ok_or_else(unknown)?);
    search.install(&named)?;
    Ok(order::sort(&search, 0))
}

/// What named packages add to a base. Packages that the base has already are not listed again.
pub fn extend(archives: &Archives, base: &Selection, names: &[&str]) -> Result<Selection, Error> {
    let mut search = Search::new(archives);
    for chosen in &base.packages {
        search.assume(chosen.id);
    }
    let named: Result<Vec<_>, Error> = names.iter().map(|name| find(archives, name)).collect();
    search.install(&named?)?;
    Ok(order::sort(&search, base.packages.len()))
}

/// The package that a user means by a name.
fn find(archives: &Archives, name: &str) -> Result<PackageId, Error> {
    if let Some(id) = archives.candidate(name) {
        return Ok(id);
    }
    let providers = archives.providers(name);
    match providers[..] {
        [] => Err(Error::Unknown { name: name.to_owned(), near: archives.near(name) }),
        [id] => Ok(id),
        _ => {
            let names = providers.iter().map(|id| archives.package(*id).name().to_owned());
            Err(Error::Virtual { name: name.to_owned(), providers: names.collect() })
        }
    }
}
