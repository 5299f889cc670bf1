//! Puts ops behind fields and tells where the two disagree.
//!
//! The SDL is the promise to clients, the op is the truth of the code; `build` fails until they say
//! the same. Descriptions of ops replace those of the SDL.

use super::{ArgDef, Behaviour, FieldDef, Kind, QUERY, Registry};
use crate::coerce::{Variables, coerce};
use crate::literal::Literal;
use crate::op::{ArgDoc, Erased, Op, TypeDoc, TypeDocKind};
use crate::{Object, Output, TypeRef};
use std::sync::Arc;

impl Registry {
    /// Puts an op behind its field; gives the mismatches.
    pub(crate) fn install<O: Op>(&mut self) -> Vec<String> {
        let (parent, field) = (O::Parent::TYPE, O::NAME);
        let place = format!("`{parent}.{field}`");
        let doc = O::describe();
        let mut problems = vec![];
        for type_doc in doc.args.iter().filter_map(|arg| arg.type_doc.as_ref()) {
            self.install_type(type_doc, &mut problems);
        }
        if let Some(type_doc) = O::Output::type_doc() {
            self.install_type(&type_doc, &mut problems);
        }
        self.describe_object(parent, O::Parent::DESCRIPTION);
        if let Some(object) = O::Output::OBJECT {
            self.describe_object(object, O::Output::object_description());
        }
        let Some(found) = self.get(parent).and_then(|found| found.field(field)) else {
            problems.push(format!("{place} is not in the schema"));
            return problems;
        };
        if !self.output_fits(&O::Output::type_ref(), &found.returns, O::Output::OBJECT) {
            let (op, schema) = (O::Output::type_ref(), &found.returns);
            problems.push(format!("{place} returns `{schema}` in the schema, `{op}` in the op"));
        }
        if found.resolver.is_some() {
            problems.push(format!("{place} is installed twice"));
        }
        let Some(found) = self.get_mut(parent).and_then(|found| found.field_mut(field)) else {
            return problems;
        };
        found.resolver = Some(Arc::new(Erased::<O>::default()));
        take_description(&mut found.description, doc.description);
        install_args(&mut found.args, &doc.args, &place, &mut problems);
        problems
    }

    fn describe_object(&mut self, name: &str, description: &str) {
        if let Some(found) = self.get_mut(name) {
            take_description(&mut found.description, description);
        }
    }

    fn install_type(&mut self, doc: &TypeDoc, problems: &mut Vec<String>) {
        let place = format!("`{}`", doc.name);
        let Some(found) = self.get_mut(doc.name) else {
            problems.push(format!("{place} is not in the schema"));
            return;
        };
        take_description(&mut found.description, doc.description);
        match (&doc.kind, found.kind) {
            (TypeDocKind::Enum { members, aliases }, Kind::Enum) => {
                for (name, description) in *members {
                    match found.members.iter_mut().find(|member| *member.name == **name) {
                        Some(member) => take_description(&mut member.description, description),
                        None => problems.push(format!("{place} has no member `{name}`")),
                    }
                }
                for (alias, base) in *aliases {
                    match found.members.iter_mut().find(|member| *member.name == **alias) {
                        Some(member) => member.stands_for = Some((*base).into()),
                        None => problems.push(format!("{place} has no member `{alias}`")),
                    }
                }
            }
            (TypeDocKind::Input(fields), Kind::Input) => {
                install_args(&mut found.inputs, fields, &place, problems);
                let nested: Vec<_> =
                    fields.iter().filter_map(|field| field.type_doc.clone()).collect();
                nested.iter().for_each(|doc| self.install_type(doc, problems));
            }
            _ => problems.push(format!("{place} is another sort of type in the schema")),
        }
    }

    /// Whether an op may answer `made` where the schema promises `promised`.
    fn output_fits(&self, made: &TypeRef, promised: &TypeRef, object: Option<&str>) -> bool {
        match (made, promised) {
            (TypeRef::NonNull(made), TypeRef::NonNull(promised)) => {
                self.output_fits(made, promised, object)
            }
            (TypeRef::NonNull(made), promised) => self.output_fits(made, promised, object),
            (TypeRef::Named(made), TypeRef::NonNull(promised)) => {
                made == "Void" && promised.base() == "Void"
            }
            (TypeRef::List(made), TypeRef::List(promised)) => {
                let nested = object.is_some() && made.is_list();
                !nested && self.output_fits(made, promised, object)
            }
            (TypeRef::Named(made), TypeRef::Named(promised)) => {
                let id_of_object = object.is_some() && self.is_id(promised);
                made == promised
                    || id_of_object
                    || self.is(made, promised)
                    || (self.is_id(made) && self.is_id(promised))
            }
            _ => false,
        }
    }

    /// Decides how each field is answered and coerces the defaults, once all ops are in.
    pub(crate) fn settle(&mut self) -> Vec<String> {
        let mut problems = vec![];
        let reading = self.clone();
        for found in &mut self.types {
            let owner = found.name.clone();
            for field in &mut found.fields {
                if matches!(field.behaviour, Behaviour::Typename | Behaviour::Introspection) {
                    continue;
                }
                field.behaviour = reading.behaviour(&owner, field);
                describe_generic(field);
                if let Err(problem) = reading.settle_defaults(field) {
                    problems.push(format!("`{owner}.{}`: {problem}", field.name));
                }
            }
        }
        problems
    }

    fn behaviour(&self, owner: &str, field: &FieldDef) -> Behaviour {
        let base = field.returns.base();
        if *field.name == *"id" && self.is_id(base) && field.args.is_empty() {
            return Behaviour::Id;
        }
        if owner == QUERY && field.resolver.is_none() && field.arg("id").is_some() {
            if *field.name == *"node" {
                return Behaviour::Node;
            }
            let loaded =
                field.name.strip_prefix("load").and_then(|rest| rest.strip_suffix("FromID"));
            if let Some(loaded) = loaded.filter(|loaded| *loaded == base) {
                return Behaviour::Load(loaded.into());
            }
        }
        let composite = self.get(base).is_some_and(super::TypeDef::is_composite);
        match &field.resolver {
            Some(resolver) if !composite && resolver.object().is_some() => Behaviour::ObjectAsId,
            _ if !composite => Behaviour::Leaf,
            _ if field.returns.is_list() => Behaviour::Objects,
            Some(resolver) if resolver.is_eager() => Behaviour::EvaluatedObject,
            _ if field.returns.is_required() => Behaviour::Object,
            _ => Behaviour::EvaluatedObject,
        }
    }

    fn settle_defaults(&self, field: &mut FieldDef) -> Result<(), String> {
        for arg in &field.args {
            if let Some(default) = &arg.default {
                let value = coerce(self, &Variables::new(), default, &arg.type_ref)
                    .map_err(|problem| format!("default of `{}`: {problem}", arg.name))?;
                field.defaults.push((arg.name.clone(), value));
            }
        }
        Ok(())
    }
}

/// Describes a field that every type has alike, unless the schema does.
fn describe_generic(field: &mut FieldDef) {
    let description = match &field.behaviour {
        Behaviour::Id => {
            "A name of this object, of which `node` makes the object again.".to_owned()
        }
        Behaviour::Node => "The object with an id, of whatever type.".to_owned(),
        Behaviour::Load(name) => format!("The `{name}` with an id."),
        _ => return,
    };
    if field.description.is_empty() {
        field.description = description;
    }
    for arg in field.args.iter_mut().filter(|arg| arg.description.is_empty()) {
        "The id, as the field `id` gave it.".clone_into(&mut arg.description);
    }
}

fn take_description(into: &mut String, from: &str) {
    if !from.is_empty() {
        from.clone_into(into);
    }
}

fn install_args(known: &mut [ArgDef], docs: &[ArgDoc], place: &str, problems: &mut Vec<String>) {
    for doc in docs {
        let name = doc.name;
        let Some(arg) = known.iter_mut().find(|arg| *arg.name == *name) else {
            problems.push(format!("{place} has no argument `{name}` in the schema"));
            continue;
        };
        if !same_input_type(&doc.type_ref, &arg.type_ref) {
            let (op, schema) = (&doc.type_ref, &arg.type_ref);
            problems.push(format!(
                "argument `{name}` of {place} is `{schema}` in the schema, `{op}` in the op"
            ));
        }
        let default = doc.default.and_then(Literal::parse);
        if doc.default.is_some() && default.is_none() {
            problems.push(format!("the default of `{name}` of {place} is no GraphQL literal"));
        } else if default != arg.default {
            let show = |value: &Option<Literal>| {
                value.as_ref().map_or_else(|| "none".to_owned(), |value| format!("`{value}`"))
            };
            let (op, schema) = (show(&default), show(&arg.default));
            problems.push(format!(
                "default of `{name}` of {place} is {schema} in the schema, {op} in the op"
            ));
        }
        match (&arg.expected, doc.expected) {
            (Some(schema), Some(op)) if **schema != *op => problems.push(format!(
                "argument `{name}` of {place} expects a `{schema}` in the schema, a `{op}` in the op"
            )),
            (None, Some(op)) => arg.expected = Some(op.into()),
            _ => {}
        }
        take_description(&mut arg.description, doc.description);
        arg.sensitive = doc.sensitive;
        arg.understood = true;
    }
}

/// Whether two argument types are the same; every scalar called `*ID` is an `ID`.
fn same_input_type(a: &TypeRef, b: &TypeRef) -> bool {
    match (a, b) {
        (TypeRef::NonNull(a), TypeRef::NonNull(b)) | (TypeRef::List(a), TypeRef::List(b)) => {
            same_input_type(a, b)
        }
        (TypeRef::Named(a), TypeRef::Named(b)) => a == b || (a == "ID" && b.ends_with("ID")),
        _ => false,
    }
}
