//! What the attributes and doc comments of a derive say, and how names are turned.

use proc_macro2::Ident;
use syn::ext::IdentExt as _;
use syn::{Attribute, Expr, ExprLit, Lit, LitStr, Meta};

/// What `#[arg(..)]` says of a field.
#[derive(Default)]
pub(crate) struct Arg {
    pub(crate) name: Option<String>,
    pub(crate) default: Option<String>,
    pub(crate) sensitive: bool,
    pub(crate) group: bool,
}

/// What `#[value(..)]` says of a member.
#[derive(Default)]
pub(crate) struct Member {
    pub(crate) name: Option<String>,
    pub(crate) aliases: Vec<String>,
}

/// Reads every `#[arg(..)]`.
pub(crate) fn arg(attributes: &[Attribute]) -> syn::Result<Arg> {
    let mut arg = Arg::default();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("arg")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("name") {
                arg.name = Some(meta.value()?.parse::<LitStr>()?.value());
            } else if meta.path.is_ident("default") {
                arg.default = Some(meta.value()?.parse::<LitStr>()?.value());
            } else if meta.path.is_ident("sensitive") {
                arg.sensitive = true;
            } else if meta.path.is_ident("group") {
                arg.group = true;
            } else {
                return Err(meta.error("expected `name`, `default`, `sensitive` or `group`"));
            }
            Ok(())
        })?;
    }
    Ok(arg)
}

/// Reads every `#[value(..)]`.
pub(crate) fn member(attributes: &[Attribute]) -> syn::Result<Member> {
    let mut member = Member::default();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("value")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("name") {
                member.name = Some(meta.value()?.parse::<LitStr>()?.value());
            } else if meta.path.is_ident("alias") {
                member.aliases.push(meta.value()?.parse::<LitStr>()?.value());
            } else {
                return Err(meta.error("expected `name` or `alias`"));
            }
            Ok(())
        })?;
    }
    Ok(member)
}

/// The GraphQL name of a type: `#[graph(name = "..")]` or its own name.
pub(crate) fn type_name(ident: &Ident, attributes: &[Attribute]) -> syn::Result<String> {
    let mut name = ident.unraw().to_string();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("graph")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("name") {
                return Err(meta.error("expected `name`"));
            }
            name = meta.value()?.parse::<LitStr>()?.value();
            Ok(())
        })?;
    }
    Ok(name)
}

/// The text of the doc comments, one leading space a line taken off.
pub(crate) fn documentation(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter(|attribute| attribute.path().is_ident("doc"));
    let lines = lines.filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    let lines: Vec<String> =
        lines.map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned()).collect();
    lines.join("\n").trim().to_owned()
}

/// `redirect_stdout` as `redirectStdout`.
pub(crate) fn camel_case(ident: &Ident) -> String {
    let mut name = String::new();
    for (index, word) in ident.unraw().to_string().split('_').enumerate() {
        let mut letters = word.chars();
        match letters.next() {
            Some(first) if index > 0 => name.extend(first.to_uppercase()),
            Some(first) => name.push(first),
            None => {}
        }
        name.extend(letters);
    }
    name
}

/// `FailEarly` as `FAIL_EARLY`.
pub(crate) fn screaming_snake_case(ident: &Ident) -> String {
    let mut name = String::new();
    for (index, letter) in ident.unraw().to_string().chars().enumerate() {
        if index > 0 && letter.is_uppercase() {
            name.push('_');
        }
        name.extend(letter.to_uppercase());
    }
    name
}
