//! From a selected field to a [`Call`]: arguments are coerced, ids become calls, sensitive texts are
//! sealed, and the op's eager checks run. Nothing is evaluated.

use crate::coerce::{Variables, coerce, is_absent, same};
use crate::document::{Field, Given};
use crate::op::Scope;
use crate::registry::{ArgDef, FieldDef, Registry};
use crate::session::Session;
use crate::{Call, Error, Value, ids, reply};
use std::sync::Arc;

/// Name of the number that makes a call one of its own. No argument of the schema has it.
pub(super) const UNIQUE: &str = "";

/// A field about to be called.
pub(super) struct Binding<'a> {
    pub(super) session: &'a Session,
    pub(super) variables: &'a Variables,
    /// Type of the receiver.
    pub(super) owner: &'a str,
    pub(super) definition: &'a FieldDef,
    pub(super) field: &'a Field,
}

impl Binding<'_> {
    /// The call of the field on a receiver; none is the root.
    pub(super) fn call(&self, receiver: Option<Arc<Call>>) -> Result<Arc<Call>, Error> {
        let Some(resolver) = &self.definition.resolver else {
            return Err(reply::not_implemented(self.place()));
        };
        let mut args = self.args()?;
        resolver.check(&args)?;
        if resolver.is_unique(&args) {
            args.push((UNIQUE.into(), Value::Int(self.session.next_number())));
        }
        let base = self.definition.returns.base();
        let returns = resolver.object().unwrap_or(base);
        let scope = (resolver.scope() == Scope::Session).then(|| self.session.id());
        Ok(Call::new(receiver, &self.definition.name, args, returns, scope))
    }

    /// The call behind the argument `id`, whose type must be `expected`.
    pub(super) fn load(&self, expected: Option<&str>) -> Result<Arc<Call>, Error> {
        let value = self.value("id")?.unwrap_or(Value::Null);
        self.object(value, expected).and_then(|value| match value {
            Value::Call(call) => Ok(call),
            _ => Err(Error::user("argument `id`: expected `ID!`, got null")),
        })
    }

    /// An argument after coercion, ids still texts; none when it is not given.
    pub(super) fn value(&self, name: &str) -> Result<Option<Value>, Error> {
        let given = self.field.args.iter().find(|(given, _)| **given == *name);
        let Some(arg) = self.definition.arg(name) else { return Ok(None) };
        match given {
            None => Ok(None),
            Some((_, Given::Constant(value))) => {
                Ok(Some(value.clone()).filter(|value| !value.is_null()))
            }
            Some((_, Given::Dynamic(literal))) => {
                if is_absent(self.variables, literal) {
                    let needed = arg.type_ref.is_required() && arg.default.is_none();
                    return if needed { Err(missing(arg)) } else { Ok(None) };
                }
                let registry = self.registry();
                coerce(registry, self.variables, literal, &arg.type_ref)
                    .map(Some)
                    .map_err(|problem| Error::user(format!("argument `{name}`: {problem}")))
            }
        }
    }

    /// The arguments that say something: given, not null, not the default.
    fn args(&self) -> Result<Vec<(Box<str>, Value)>, Error> {
        let mut args = Vec::with_capacity(self.field.args.len());
        for (name, _) in &self.field.args {
            let Some(arg) = self.definition.arg(name) else { continue };
            let Some(value) = self.value(name)? else { continue };
            let default = self.definition.defaults.iter().find(|(known, _)| known == name);
            if default.is_some_and(|(_, default)| same(default, &value)) {
                continue;
            }
            if !arg.understood {
                let place = self.place();
                return Err(reply::not_implemented(format!("argument `{name}` of {place}")));
            }
            args.push((name.clone(), self.resolved(arg, value)?));
        }
        Ok(args)
    }

    /// A value with ids as calls and sensitive texts sealed.
    fn resolved(&self, arg: &ArgDef, value: Value) -> Result<Value, Error> {
        if arg.sensitive {
            return match value {
                Value::String(text) => {
                    Ok(self.session.vault().seal(self.session.graph().key(), text))
                }
                _ => Err(Error::internal(format!("argument `{}` cannot be sealed", arg.name))),
            };
        }
        if !self.registry().is_id(arg.type_ref.base()) {
            return Ok(value);
        }
        self.object(value, arg.expected.as_deref()).map_err(|mut error| {
            error.message = format!("argument `{}`: {}", arg.name, error.message);
            error
        })
    }

    fn object(&self, value: Value, expected: Option<&str>) -> Result<Value, Error> {
        match value {
            Value::List(items) => {
                let items = items.into_iter().map(|item| self.object(item, expected));
                items.collect::<Result<_, _>>().map(Value::List)
            }
            Value::String(text) => {
                let call = ids::load(self.session, &text)?;
                let made = call.returns();
                match expected.filter(|expected| !self.registry().is(made, expected)) {
                    Some(expected) => Err(Error::user(format!(
                        "expected the id of a `{expected}`, got a `{made}`"
                    ))),
                    None => Ok(Value::Call(call)),
                }
            }
            other => Ok(other),
        }
    }

    fn registry(&self) -> &Registry {
        self.session.graph().registry()
    }

    fn place(&self) -> String {
        format!("`{}.{}`", self.owner, self.definition.name)
    }
}

fn missing(arg: &ArgDef) -> Error {
    Error::user(format!("argument `{}`: expected `{}`, got null", arg.name, arg.type_ref))
}
