//! Enums without data: `Enum`.

use crate::attributes::{documentation, member, screaming_snake_case, type_name};
use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned as _;
use syn::{Data, DeriveInput, Fields};

/// The implementations of `FromValue` and `Output`.
pub(crate) fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let Data::Enum(data) = &input.data else {
        return Err(syn::Error::new(input.span(), "expected an enum"));
    };
    let mut docs = vec![];
    let mut also = vec![];
    let mut from_name = vec![];
    let mut to_name = vec![];
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(syn::Error::new(variant.span(), "members hold no data"));
        }
        let ident = &variant.ident;
        let member = member(&variant.attrs)?;
        let name = member.name.unwrap_or_else(|| screaming_snake_case(ident));
        let aliases = member.aliases;
        let description = documentation(&variant.attrs);
        docs.push(quote!((#name, #description)));
        also.extend(aliases.iter().map(|alias| quote!((#alias, #name))));
        from_name.push(quote!(#name #(| #aliases)* => ::std::option::Option::Some(Self::#ident)));
        to_name.push(quote!(Self::#ident => #name));
    }
    let ident = &input.ident;
    let name = type_name(ident, &input.attrs)?;
    let description = documentation(&input.attrs);
    Ok(quote! {
        impl ::graph::EnumValue for #ident {
            const TYPE: &'static str = #name;
            const DESCRIPTION: &'static str = #description;
            const MEMBERS: &'static [(&'static str, &'static str)] = &[#(#docs),*];
            const ALIASES: &'static [(&'static str, &'static str)] = &[#(#also),*];

            fn from_name(name: &str) -> ::std::option::Option<Self> {
                match name {
                    #(#from_name,)*
                    _ => ::std::option::Option::None,
                }
            }

            fn name(&self) -> &'static str {
                match self {
                    #(#to_name),*
                }
            }
        }

        impl ::graph::FromValue for #ident {
            fn type_ref() -> ::graph::TypeRef {
                ::graph::enum_type_ref::<Self>()
            }

            fn type_doc() -> ::std::option::Option<::graph::TypeDoc> {
                ::std::option::Option::Some(::graph::enum_type_doc::<Self>())
            }

            fn from_value(
                value: &::graph::Value,
                _values: &::graph::ArgValues<'_>,
            ) -> ::std::result::Result<Self, ::graph::Error> {
                ::graph::enum_from_value(value)
            }
        }

        impl ::graph::Output for #ident {
            fn type_ref() -> ::graph::TypeRef {
                ::graph::enum_type_ref::<Self>()
            }

            fn type_doc() -> ::std::option::Option<::graph::TypeDoc> {
                ::std::option::Option::Some(::graph::enum_type_doc::<Self>())
            }

            fn into_outcome(self) -> ::graph::Outcome {
                ::graph::Outcome::text(::graph::EnumValue::name(&self))
            }
        }
    })
}
