//! What we take from the parser's tree besides selections: schemas and values.

use crate::literal::Literal;
use bluejay_core::{AsIter as _, Value as _, ValueReference};
use bluejay_parser::ast::definition::{DefaultContext, DefinitionDocument, SchemaDefinition};
use bluejay_parser::ast::{ConstValue, Parse, Value};
use self_cell::self_cell;

/// The parser's view of a schema.
pub(crate) type Schema<'a> = SchemaDefinition<'a, DefaultContext>;

type Definitions<'a> = DefinitionDocument<'a, DefaultContext>;

self_cell!(
    /// A schema's text and its parsed definitions, which borrow from the text.
    struct ParsedText {
        owner: String,
        #[covariant]
        dependent: Definitions,
    }
);

self_cell!(
    /// A schema with everything that it borrows from. Threads may share it.
    pub(crate) struct OwnedSchema {
        owner: ParsedText,
        #[covariant]
        dependent: Schema,
    }
);

impl OwnedSchema {
    /// Parses a schema; the error says what is wrong with it.
    pub(crate) fn parse(sdl: String) -> Result<Self, String> {
        let parsed = ParsedText::try_new(sdl, |sdl| {
            Definitions::parse(sdl).result.map_err(|errors| {
                let found = bluejay_parser::Error::into_graphql_errors(sdl, errors);
                let found: Vec<String> = found
                    .iter()
                    .map(|error| match error.locations.first() {
                        Some(at) => format!("{} at {}:{}", error.message, at.line, at.col),
                        None => error.message.to_string(),
                    })
                    .collect();
                found.join("; ")
            })
        })?;
        Self::try_new(parsed, |parsed| {
            Schema::try_from(parsed.borrow_dependent()).map_err(|errors| {
                let sdl = parsed.borrow_owner();
                let errors = bluejay_parser::Error::into_graphql_errors(sdl, errors);
                let errors: Vec<String> =
                    errors.iter().map(|error| error.message.to_string()).collect();
                errors.join("; ")
            })
        })
    }

    /// The schema.
    pub(crate) fn get(&self) -> &Schema<'_> {
        self.borrow_dependent()
    }
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
