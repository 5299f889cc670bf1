//! Reads a [`Registry`] from the parser's view of an SDL text.

use super::meta::{META_PREFIX, META_SDL};
use super::{ArgDef, Behaviour, DirectiveDef, FieldDef, Kind, MemberDef, QUERY, Registry, TypeDef};
use crate::TypeRef;
use crate::document::ast::{self, OwnedSchema, Schema};
use crate::literal::Literal;
use bluejay_core::definition::{
    DirectiveDefinition as _, EnumTypeDefinition as _, EnumValueDefinition as _,
    FieldDefinition as _, HasDirectives, InputObjectTypeDefinition as _, InputType as _,
    InputValueDefinition as _, InterfaceImplementation as _, InterfaceTypeDefinition as _,
    ObjectTypeDefinition as _, OutputType as _, ScalarTypeDefinition as _, SchemaDefinition as _,
    ShallowInputTypeReference, ShallowOutputTypeReference, TypeDefinitionReference,
    UnionMemberType as _, UnionTypeDefinition as _,
};
use bluejay_core::{AsIter as _, Directive as _};
use bluejay_parser::ast::definition as parsed;
use bluejay_parser::ast::definition::DefaultContext;
use std::collections::HashMap;
use std::sync::Arc;

/// Our own directive on arguments, which a schema may use without declaring it.
const EXPECTED_TYPE: &str = "expectedType";
const EXPECTED_TYPE_SDL: &str = "\n\"The type of object that an id stands for.\"\n\
     directive @expectedType(name: String!) on \
     ARGUMENT_DEFINITION | FIELD_DEFINITION | INPUT_FIELD_DEFINITION\n";

/// The SDL with the declaration of our directive, if it lacks one.
pub(crate) fn complete_sdl(sdl: &str) -> String {
    let declared = sdl.contains("directive @expectedType");
    format!("{sdl}{}", if declared { "" } else { EXPECTED_TYPE_SDL })
}

/// The registry of a parsed schema, with the types of introspection.
pub(crate) fn read(schema: &Schema<'_>) -> Result<Registry, String> {
    let mut types: Vec<TypeDef> =
        schema.type_definitions().filter(is_ours).map(read_type).collect();
    let directives = schema.directive_definitions().map(read_directive).collect();
    let meta = OwnedSchema::parse(META_SDL.to_owned())?;
    for mut found in meta.get().type_definitions().filter(is_ours).map(read_type) {
        unprefix(&mut found);
        match types.iter_mut().find(|known| known.name == found.name) {
            Some(query) if *found.name == *QUERY => query.fields.extend(found.fields),
            Some(_) => {}
            None => types.push(found),
        }
    }
    Ok(finish(types, directives))
}

/// Leaves out the parser's own meta types.
fn is_ours(found: &TypeDefinitionReference<'_, Schema<'_>>) -> bool {
    !found.name().starts_with("__")
}

/// Sorts and indexes, adds `__typename`, fills in what interfaces may be.
fn finish(mut types: Vec<TypeDef>, directives: Vec<DirectiveDef>) -> Registry {
    types.sort_by(|a, b| a.name.cmp(&b.name));
    let mut possible: HashMap<Box<str>, Vec<Arc<str>>> = HashMap::new();
    for found in types.iter().filter(|found| found.kind == Kind::Object) {
        for interface in &found.interfaces {
            possible.entry(interface.clone()).or_default().push(found.name.clone());
        }
    }
    for found in &mut types {
        if let Some(objects) = possible.remove(&*found.name) {
            found.possible = objects;
        }
        if found.is_composite() {
            found.fields.push(typename());
        }
        let names = found.fields.iter().enumerate();
        found.fields_by_name = names.map(|(index, field)| (field.name.clone(), index)).collect();
    }
    let by_name = types.iter().enumerate().map(|(index, found)| (found.name.clone(), index));
    let by_name = by_name.collect();
    Registry { types, by_name, directives, answers_for: vec![] }
}

fn typename() -> FieldDef {
    FieldDef {
        name: "__typename".into(),
        description: String::new(),
        args: vec![],
        returns: TypeRef::NonNull(Box::new(TypeRef::Named("String".into()))),
        deprecated: None,
        behaviour: Behaviour::Typename,
        resolver: None,
        defaults: vec![],
    }
}

fn read_type(found: TypeDefinitionReference<'_, Schema<'_>>) -> TypeDef {
    let mut made = TypeDef {
        name: found.name().into(),
        kind: Kind::Scalar,
        description: found.description().unwrap_or_default().to_owned(),
        fields: vec![],
        fields_by_name: HashMap::new(),
        inputs: vec![],
        members: vec![],
        interfaces: vec![],
        possible: vec![],
        specified_by: None,
    };
    match found {
        TypeDefinitionReference::BuiltinScalar(_) => {}
        TypeDefinitionReference::CustomScalar(scalar) => {
            made.specified_by = directive_text(scalar, "specifiedBy", "url");
            debug_assert_eq!(scalar.name(), &*made.name);
        }
        TypeDefinitionReference::Object(object) => {
            made.kind = Kind::Object;
            made.fields = object.fields_definition().iter().filter_map(read_field).collect();
            let interfaces = object.interface_implementations().into_iter();
            made.interfaces =
                interfaces.flat_map(|all| all.iter()).map(|one| one.name().into()).collect();
        }
        TypeDefinitionReference::Interface(interface) => {
            made.kind = Kind::Interface;
            made.fields = interface.fields_definition().iter().filter_map(read_field).collect();
            let interfaces = interface.interface_implementations().into_iter();
            made.interfaces =
                interfaces.flat_map(|all| all.iter()).map(|one| one.name().into()).collect();
        }
        TypeDefinitionReference::Union(union) => {
            made.kind = Kind::Union;
            made.possible =
                union.union_member_types().iter().map(|member| member.name().into()).collect();
        }
        TypeDefinitionReference::Enum(found) => {
            made.kind = Kind::Enum;
            made.members = found.enum_value_definitions().iter().map(read_member).collect();
        }
        TypeDefinitionReference::InputObject(input) => {
            made.kind = Kind::Input;
            made.inputs = input.input_field_definitions().iter().map(read_arg).collect();
        }
    }
    made
}

/// A field; none for those that the parser adds itself.
fn read_field(field: &parsed::FieldDefinition<'_, DefaultContext>) -> Option<FieldDef> {
    if field.is_builtin() {
        return None;
    }
    let introspection = field.name().starts_with("__");
    Some(FieldDef {
        name: field.name().into(),
        description: field.description().unwrap_or_default().to_owned(),
        args: read_args(field.arguments_definition()),
        returns: output_type(field.r#type()),
        deprecated: deprecation(field),
        behaviour: if introspection { Behaviour::Introspection } else { Behaviour::Leaf },
        resolver: None,
        defaults: vec![],
    })
}

fn read_args(args: Option<&parsed::ArgumentsDefinition<'_, DefaultContext>>) -> Vec<ArgDef> {
    args.map(|args| args.iter().map(read_arg).collect()).unwrap_or_default()
}

fn read_arg(arg: &parsed::InputValueDefinition<'_, DefaultContext>) -> ArgDef {
    ArgDef {
        name: arg.name().into(),
        description: arg.description().unwrap_or_default().to_owned(),
        type_ref: input_type(arg.r#type()),
        default: arg.default_value().map(ast::literal),
        expected: directive_text(arg, EXPECTED_TYPE, "name").map(Into::into),
        deprecated: deprecation(arg),
        sensitive: false,
        understood: false,
    }
}

fn read_member(member: &parsed::EnumValueDefinition<'_, DefaultContext>) -> MemberDef {
    MemberDef {
        name: member.name().into(),
        stands_for: None,
        description: member.description().unwrap_or_default().to_owned(),
        deprecated: deprecation(member),
    }
}

fn read_directive(found: &parsed::DirectiveDefinition<'_, DefaultContext>) -> DirectiveDef {
    DirectiveDef {
        name: bluejay_core::definition::DirectiveDefinition::name(found).into(),
        description: found.description().unwrap_or_default().to_owned(),
        locations: found.locations().iter().map(ToString::to_string).collect(),
        args: read_args(found.arguments_definition()),
        repeatable: found.is_repeatable(),
    }
}

fn output_type(found: &parsed::OutputType<'_, DefaultContext>) -> TypeRef {
    match found.as_shallow_ref() {
        ShallowOutputTypeReference::Base(name, required) => named(name, required),
        ShallowOutputTypeReference::List(inner, required) => list(output_type(inner), required),
    }
}

fn input_type(found: &parsed::InputType<'_, DefaultContext>) -> TypeRef {
    match found.as_shallow_ref() {
        ShallowInputTypeReference::Base(name, required) => named(name, required),
        ShallowInputTypeReference::List(inner, required) => list(input_type(inner), required),
    }
}

fn named(name: &str, required: bool) -> TypeRef {
    mark(TypeRef::Named(name.into()), required)
}

fn list(inner: TypeRef, required: bool) -> TypeRef {
    mark(TypeRef::List(Box::new(inner)), required)
}

fn mark(found: TypeRef, required: bool) -> TypeRef {
    if required { TypeRef::NonNull(Box::new(found)) } else { found }
}

/// Why something should not be used any more.
fn deprecation<'a>(
    found: &impl HasDirectives<Directives = parsed::Directives<'a, DefaultContext>>,
) -> Option<String> {
    let named = found.directives()?.iter().any(|directive| directive.name() == "deprecated");
    named.then(|| {
        directive_text(found, "deprecated", "reason")
            .unwrap_or_else(|| "No longer supported".to_owned())
    })
}

/// The text that a directive on something gives to one of its arguments.
fn directive_text<'a>(
    found: &impl HasDirectives<Directives = parsed::Directives<'a, DefaultContext>>,
    directive: &str,
    argument: &str,
) -> Option<String> {
    let directive = found.directives()?.iter().find(|found| found.name() == directive)?;
    let argument = directive.arguments()?.iter().find(|found| {
        let name: &str = bluejay_core::Argument::name(*found);
        name == argument
    })?;
    match ast::literal(bluejay_core::Argument::value(argument)) {
        Literal::String(text) => Some(text.to_string()),
        _ => None,
    }
}

/// Takes the prefix off the names in a meta type.
fn unprefix(found: &mut TypeDef) {
    fn rename(type_ref: &mut TypeRef) {
        match type_ref {
            TypeRef::Named(name) => {
                if let Some(rest) = name.strip_prefix(META_PREFIX) {
                    *name = rest.to_owned();
                }
            }
            TypeRef::List(inner) | TypeRef::NonNull(inner) => rename(inner),
        }
    }
    if let Some(rest) = found.name.strip_prefix(META_PREFIX) {
        found.name = rest.into();
    }
    for field in &mut found.fields {
        field.behaviour = Behaviour::Introspection;
        rename(&mut field.returns);
    }
}
