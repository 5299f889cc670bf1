//! Structs with named fields: `Args` and `Input`.

use crate::attributes::{arg, camel_case, documentation, type_name};
use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned as _;
use syn::{Data, DeriveInput, Fields, Ident, Type};

/// One field of the struct, as data and as code.
struct Field<'a> {
    ident: &'a Ident,
    ty: &'a Type,
    name: String,
    description: String,
    default: Option<String>,
    sensitive: bool,
    /// Whether it stands for several arguments.
    group: bool,
}

/// The implementation of `Args`.
pub(crate) fn expand_args(input: &DeriveInput) -> syn::Result<TokenStream> {
    let fields = read(input)?;
    let ident = &input.ident;
    let description = documentation(&input.attrs);
    let docs = fields.iter().map(|field| match (field.group, field.ty, doc(field)) {
        (true, ty, _) => quote!(<#ty as ::graph::Args>::describe().args),
        (false, _, doc) => quote!(::std::vec![#doc]),
    });
    let values =
        fields.iter().map(|field| match (field.group, field.ident, field.ty, &field.name) {
            (true, ident, ty, _) => quote!(#ident: <#ty as ::graph::Args>::parse(values)?),
            (false, ident, _, name) => quote!(#ident: values.get(#name)?),
        });
    Ok(quote! {
        impl ::graph::Args for #ident {
            fn describe() -> ::graph::OpDoc {
                let args: ::std::vec::Vec<::std::vec::Vec<::graph::ArgDoc>> = ::std::vec![#(#docs),*];
                ::graph::OpDoc { description: #description, args: args.concat() }
            }

            fn parse(
                values: &::graph::ArgValues<'_>,
            ) -> ::std::result::Result<Self, ::graph::Error> {
                let _ = values;
                ::std::result::Result::Ok(Self { #(#values),* })
            }
        }
    })
}

/// The implementation of `FromValue` for an input object.
pub(crate) fn expand_input(input: &DeriveInput) -> syn::Result<TokenStream> {
    let fields = read(input)?;
    if let Some(field) = fields.iter().find(|field| field.group) {
        return Err(syn::Error::new(field.ident.span(), "an input object has no groups"));
    }
    let ident = &input.ident;
    let name = type_name(ident, &input.attrs)?;
    let description = documentation(&input.attrs);
    let docs = fields.iter().map(doc);
    let values = fields.iter().map(|field| {
        let (ident, name) = (field.ident, &field.name);
        quote!(#ident: values.field(value, #name)?)
    });
    Ok(quote! {
        impl ::graph::FromValue for #ident {
            fn type_ref() -> ::graph::TypeRef {
                ::graph::TypeRef::NonNull(::std::boxed::Box::new(::graph::TypeRef::Named(
                    #name.into(),
                )))
            }

            fn type_doc() -> ::std::option::Option<::graph::TypeDoc> {
                ::std::option::Option::Some(::graph::TypeDoc {
                    name: #name,
                    description: #description,
                    kind: ::graph::TypeDocKind::Input(::std::vec![#(#docs),*]),
                })
            }

            fn from_value(
                value: &::graph::Value,
                values: &::graph::ArgValues<'_>,
            ) -> ::std::result::Result<Self, ::graph::Error> {
                ::std::result::Result::Ok(Self { #(#values),* })
            }
        }
    })
}

/// The expression that makes the `ArgDoc` of one field.
fn doc(field: &Field<'_>) -> TokenStream {
    let Field { ty, name, description, .. } = field;
    let default = field.default.iter().map(|literal| quote!(.with_default(#literal)));
    let sensitive = field.sensitive.then(|| quote!(.sensitive()));
    quote!(::graph::ArgDoc::of::<#ty>(#name, #description) #(#default)* #sensitive)
}

fn read(input: &DeriveInput) -> syn::Result<Vec<Field<'_>>> {
    let Data::Struct(data) = &input.data else {
        return Err(syn::Error::new(input.span(), "expected a struct"));
    };
    match &data.fields {
        Fields::Named(fields) => fields.named.iter().map(read_field).collect(),
        Fields::Unit => Ok(vec![]),
        Fields::Unnamed(fields) => Err(syn::Error::new(fields.span(), "fields need names")),
    }
}

fn read_field(field: &syn::Field) -> syn::Result<Field<'_>> {
    let Some(ident) = &field.ident else {
        return Err(syn::Error::new(field.span(), "fields need names"));
    };
    let arg = arg(&field.attrs)?;
    Ok(Field {
        ident,
        ty: &field.ty,
        name: arg.name.unwrap_or_else(|| camel_case(ident)),
        description: documentation(&field.attrs),
        default: arg.default,
        sensitive: arg.sensitive,
        group: arg.group,
    })
}
