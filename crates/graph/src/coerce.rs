//! Lenient coercion: what clients write, turned into what the schema declares.
//!
//! Published clients quote enums, send numbers as strings and give one value for a list; all of that
//! is taken. What is unknown is still an error that names it. Texts of errors never hold the value
//! of a string: it may be sensitive. Ids stay texts here; `execute` finds the calls behind them.

use crate::literal::Literal;
use crate::registry::{ArgDef, Kind, Registry};
use crate::{TypeRef, Value};
use std::collections::HashMap;

/// The variables that have a value, given or by default.
pub(crate) type Variables = HashMap<Box<str>, Literal>;

/// Coerces a literal to a type. The error says what is wrong, not where.
pub(crate) fn coerce(
    registry: &Registry,
    variables: &Variables,
    literal: &Literal,
    wanted: &TypeRef,
) -> Result<Value, String> {
    if let Literal::Variable(name) = literal {
        return match variables.get(name) {
            Some(value) => coerce(registry, variables, value, wanted),
            None if wanted.is_required() => Err(format!("variable `${name}` has no value")),
            None => Ok(Value::Null),
        };
    }
    match wanted {
        TypeRef::NonNull(_) if *literal == Literal::Null => {
            Err(format!("expected `{wanted}`, got null"))
        }
        TypeRef::NonNull(inner) => coerce(registry, variables, literal, inner),
        _ if *literal == Literal::Null => Ok(Value::Null),
        TypeRef::List(inner) => {
            let items = match literal {
                Literal::List(items) => items.as_slice(),
                single => std::slice::from_ref(single),
            };
            let items = items.iter().map(|item| coerce(registry, variables, item, inner));
            items.collect::<Result<_, _>>().map(Value::List)
        }
        TypeRef::Named(name) => named(registry, variables, literal, name),
    }
}

fn named(
    registry: &Registry,
    variables: &Variables,
    literal: &Literal,
    name: &str,
) -> Result<Value, String> {
    let unfit = || format!("expected `{name}`, got {}", literal.sort());
    let Some(found) = registry.get(name) else { return Err(format!("unknown type `{name}`")) };
    match found.kind {
        Kind::Scalar => scalar(registry, literal, name).ok_or_else(unfit),
        Kind::Enum => {
            let (Literal::Enum(given) | Literal::String(given)) = literal else {
                return Err(unfit());
            };
            let member = found.members.iter().find(|member| member.name == *given);
            member
                .map(|member| {
                    Value::Enum(member.stands_for.as_ref().unwrap_or(&member.name).clone())
                })
                .ok_or_else(|| format!("`{given}` is no value of `{name}`"))
        }
        Kind::Input => {
            let Literal::Object(given) = literal else { return Err(unfit()) };
            input_object(registry, variables, given, (name, &found.inputs))
        }
        Kind::Object | Kind::Interface | Kind::Union => {
            Err(format!("`{name}` is not an input type"))
        }
    }
}

fn scalar(registry: &Registry, literal: &Literal, name: &str) -> Option<Value> {
    Some(match (name, literal) {
        ("Int", Literal::Int(number)) => Value::Int(*number),
        ("Int", Literal::String(text)) => Value::Int(text.trim().parse().ok()?),
        ("Float", Literal::Int(number)) => Value::Float(*number as f64),
        ("Float", Literal::Float(number)) => Value::Float(*number),
        ("Float", Literal::String(text)) => {
            Value::Float(text.trim().parse().ok().filter(|number: &f64| number.is_finite())?)
        }
        ("Boolean", Literal::Bool(value)) => Value::Bool(*value),
        ("Boolean", Literal::String(text)) => Value::Bool(text.trim().parse().ok()?),
        ("Int" | "Float" | "Boolean", _) => return None,
        (_, Literal::String(text)) => Value::String(text.clone()),
        (name, Literal::Int(number)) if registry.is_id(name) => {
            Value::String(number.to_string().into())
        }
        _ => return None,
    })
}

/// Fields in the order of the schema, defaults filled in; null counts as not given.
fn input_object(
    registry: &Registry,
    variables: &Variables,
    given: &[(Box<str>, Literal)],
    (name, fields): (&str, &[ArgDef]),
) -> Result<Value, String> {
    for (index, (key, _)) in given.iter().enumerate() {
        if !fields.iter().any(|field| field.name == *key) {
            return Err(format!("`{name}` has no field `{key}`"));
        }
        if given[..index].iter().any(|(earlier, _)| earlier == key) {
            return Err(format!("the field `{key}` of `{name}` is given twice"));
        }
    }
    let mut values = Vec::with_capacity(fields.len());
    for field in fields {
        let literal = given.iter().find(|(key, _)| *key == field.name).map(|(_, value)| value);
        let value = value_or_default(registry, variables, literal, field)
            .map_err(|problem| format!("field `{}`: {problem}", field.name))?;
        if let Some(value) = value {
            values.push((field.name.clone(), value));
        }
    }
    Ok(Value::Object(values))
}

fn value_or_default(
    registry: &Registry,
    variables: &Variables,
    literal: Option<&Literal>,
    field: &ArgDef,
) -> Result<Option<Value>, String> {
    let literal = literal.filter(|literal| !is_absent(variables, literal));
    match literal.or(field.default.as_ref()) {
        Some(literal) => coerce(registry, variables, literal, &field.type_ref).map(Some),
        None if field.type_ref.is_required() => Err(format!("expected `{}`", field.type_ref)),
        None => Ok(None),
    }
}

/// Whether a literal says nothing: null, or a variable without a value or with null.
pub(crate) fn is_absent(variables: &Variables, literal: &Literal) -> bool {
    match literal {
        Literal::Null => true,
        Literal::Variable(name) => {
            variables.get(name).is_none_or(|value| matches!(value, Literal::Null))
        }
        _ => false,
    }
}

/// Whether two coerced values without calls are the same.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::String(a), Value::String(b)) | (Value::Enum(a), Value::Enum(b)) => a == b,
        (Value::List(a), Value::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.0 == b.0 && same(&a.1, &b.1))
        }
        _ => false,
    }
}
