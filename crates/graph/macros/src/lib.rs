//! The derive macros of `graph`: they read the shape of an op from the struct that is the op.
//!
//! Names, types, defaults and documentation of arguments are written once, on the fields of the op.
//! The macros only spell that out as data; every rule about it lives in `graph` itself.

mod attributes;
mod enumeration;
mod fields;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a struct the arguments of an op.
///
/// The doc comment of the struct is the description of the field, the doc comments of its fields
/// those of the arguments. `snake_case` becomes `camelCase`. On a field:
/// `#[arg(name = "type", default = "SUCCESS", sensitive)]`, all optional; the default is a GraphQL
/// literal, and a sensitive argument never enters a call in plain text. `#[arg(group)]` is a field whose type
/// derives `Args` itself: its arguments are the op's, for what several ops take alike.
#[proc_macro_derive(Args, attributes(arg))]
pub fn derive_args(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    fields::expand_args(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a struct an input object: an argument type with fields.
///
/// Fields are written as for `Args`. The GraphQL name is the name of the struct, or
/// `#[graph(name = "PortForward")]`.
#[proc_macro_derive(Input, attributes(arg, graph))]
pub fn derive_input(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    fields::expand_input(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes an enum without data a GraphQL enum, for arguments and results.
///
/// Members are `SCREAMING_SNAKE_CASE` unless `#[value(name = "Gzip", alias = "GZIP")]` says
/// otherwise; aliases are accepted and never answered. The GraphQL name is the name of the enum, or
/// `#[graph(name = "ImageLayerCompression")]`.
#[proc_macro_derive(Enum, attributes(value, graph))]
pub fn derive_enum(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    enumeration::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
