//! What we take from the parser's tree besides selections: schemas and values.

use crate::literal::Literal;
use bluejay_core::{AsIter as _, Value as _, ValueReference};
use bluejay_parser::ast::definition::{DefaultContext, DefinitionDocument, SchemaDefinition};
use bluejay_parser::ast::{ConstValue, Parse, Value};

/// The parser's view of a schema.
pub(crate) type Schema<'a> = SchemaDefinition<'a, DefaultContext>;

/// Parses a schema and lends it to `use_schema`; it borrows from the text and from itself.
pub(crate) fn with_schema<R>(
    sdl: &str,
    use_schema: impl FnOnce(&Schema<'_>) -> R,
) -> Result<R, String> {
    let document: DefinitionDocument<'_, DefaultContext> =
        DefinitionDocument::parse(sdl).result.map_err(|errors| {
            let found = bluejay_parser::Error::into_graphql_errors(sdl, errors);
            let found: Vec<String> = found
                .iter()
                .map(|error| match error.locations.first() {
                    Some(at) => format!("{} at {}:{}", error.message, at.line, at.col),
                    None => error.message.to_string(),
                })
                .collect();
            found.join("; ")
        })?;
    let schema = Schema::try_from(&document).map_err(|errors| {
        let errors = bluejay_parser::Error::into_graphql_errors(sdl, errors);
        let errors: Vec<String> = errors.iter().map(|error| error.message.to_string()).collect();
        errors.join("; ")
    })?;
    Ok(use_schema(&schema))
}

/// A constant in GraphQL syntax.
pub(crate) fn constant(text: &str) -> Option<Literal> {
    ConstValue::parse(text).result.ok().as_ref().map(literal)
}

/// Our own form of a value. Recursion is bounded by the nesting that documents may have.
pub(crate) fn literal<const CONST: bool>(value: &Value<'_, CONST>) -> Literal {
    match value.as_ref() {
        ValueReference::Null => Literal::Null,
        ValueReference::Boolean(value) => Literal::Bool(value),
        ValueReference::Integer(number) => match number.as_i64() {
            Some(number) => Literal::Int(number),
            None => Literal::Float(number.as_f64().unwrap_or(f64::INFINITY)),
        },
        ValueReference::Float(number) => Literal::Float(number),
        ValueReference::String(text) => Literal::String(text.into()),
        ValueReference::Enum(name) => Literal::Enum(name.into()),
        ValueReference::Variable(name) => Literal::Variable(name.name().into()),
        ValueReference::List(items) => Literal::List(items.iter().map(literal).collect()),
        ValueReference::Object(object) => {
            let fields = bluejay_core::ObjectValue::iter(object);
            Literal::Object(
                fields.map(|(name, value)| (name.as_str().into(), literal(value))).collect(),
            )
        }
    }
}
