//! Relations between packages: `a (>= 1) | b:any, c`.

use crate::version;
use std::cmp::Ordering;

/// One alternative of a dependency, or one package of a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relation<'a> {
    /// The package or virtual package.
    pub name: &'a str,
    /// What follows a colon: `any`, `native` or an architecture.
    pub qualifier: Option<&'a str>,
    /// Which versions.
    pub constraint: Option<(Operator, &'a str)>,
}

/// How a version must compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `<<`
    Earlier,
    /// `<=`
    EarlierOrEqual,
    /// `=`
    Equal,
    /// `>=`
    LaterOrEqual,
    /// `>>`
    Later,
}

/// The groups of a field: all must hold.
pub fn groups(field: &str) -> impl Iterator<Item = &str> {
    field.split(',').map(str::trim).filter(|group| !group.is_empty())
}

/// The alternatives of a group: one must hold.
pub fn alternatives(group: &str) -> impl Iterator<Item = Relation<'_>> {
    group.split('|').map(Relation::parse)
}

/// Every relation of a field without alternatives, such as `Conflicts` or `Provides`.
pub fn relations(field: &str) -> impl Iterator<Item = Relation<'_>> {
    groups(field).map(Relation::parse)
}

impl<'a> Relation<'a> {
    /// Reads one relation. A constraint that makes no sense is one that no version meets.
    pub fn parse(text: &'a str) -> Self {
        let text = text.trim();
        let end = text.find([' ', '(', '\t', '\n', '[', '<']).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let (name, qualifier) = match name.split_once(':') {
            Some((name, qualifier)) => (name, Some(qualifier)),
            None => (name, None),
        };
        let inner = rest.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
        Self { name, qualifier, constraint: inner.map(|(inner, _)| constraint(inner.trim())) }
    }

    /// Whether a version is one of those wanted.
    pub fn admits(&self, version: &str) -> bool {
        let Some((operator, wanted)) = self.constraint else { return true };
        let order = version::compare(version, wanted);
        match operator {
            Operator::Earlier => order == Ordering::Less,
            Operator::EarlierOrEqual => order != Ordering::Greater,
            Operator::Equal => order == Ordering::Equal,
            Operator::LaterOrEqual => order != Ordering::Less,
            Operator::Later => order == Ordering::Greater,
        }
    }

    /// Whether a provided name satisfies this relation: a plain `Provides` has no version and
    /// meets only a relation without one.
    pub fn admits_provided(&self, provided: &Relation<'_>) -> bool {
        match (self.constraint, provided.constraint) {
            (None, _) => true,
            (Some(_), Some((_, version))) => self.admits(version),
            (Some(_), None) => false,
        }
    }
}

/// `<` and `>` are the old spellings of `<=` and `>=`.
fn constraint(inner: &str) -> (Operator, &str) {
    let table = [
        ("<<", Operator::Earlier),
        ("<=", Operator::EarlierOrEqual),
        (">=", Operator::LaterOrEqual),
        (">>", Operator::Later),
        ("=", Operator::Equal),
        ("<", Operator::EarlierOrEqual),
        (">", Operator::LaterOrEqual),
    ];
    for (sign, operator) in table {
        if let Some(version) = inner.strip_prefix(sign) {
            return (operator, version.trim());
        }
    }
    (Operator::Equal, inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_groups_of_alternatives() {
        let field = "libc6 (>= 2.34), default-mta | mail-transport-agent ,\n python3:any (<< 4),";
        let all: Vec<Vec<_>> = groups(field).map(|group| alternatives(group).collect()).collect();
        assert_eq!(all.len(), 3);
        assert_eq!(all[0][0].constraint, Some((Operator::LaterOrEqual, "2.34")));
        assert_eq!(all[1][1].name, "mail-transport-agent");
        assert_eq!((all[2][0].name, all[2][0].qualifier), ("python3", Some("any")));
    }

    #[test]
    fn constraints() {
        let table = [
            ("a", "1", true),
            ("a (= 1)", "1", true),
            ("a (<< 1)", "1", false),
            ("a (<= 1)", "1", true),
            ("a (>> 1)", "1", false),
            ("a (>= 1)", "1", true),
            ("a(>=1)", "0.9", false),
            ("a (< 1)", "1", true),
            ("a (> 1)", "1", true),
        ];
        for (relation, version, expect) in table {
            assert_eq!(Relation::parse(relation).admits(version), expect, "{relation} {version}");
        }
    }

    #[test]
    fn only_a_versioned_provide_meets_a_versioned_relation() {
        let wanted = Relation::parse("a (>= 2)");
        for (provided, expect) in [("a", false), ("a (= 1)", false), ("a (= 2)", true)] {
            assert_eq!(wanted.admits_provided(&Relation::parse(provided)), expect, "{provided}");
        }
        assert!(Relation::parse("a").admits_provided(&Relation::parse("a")));
    }
}
