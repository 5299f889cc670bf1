//! From the validated tree to a [`Document`], with our own lenient rules on the way.
//!
//! The rules that replace stock ones stand here because they need our registry: values are checked by
//! coercing them, variables by [`super::usage`], fragments by what a type answers for, leaves with
//! the one exception that a leaf of type `ID` may be selected from as the object it names.

use super::ast::literal;
use super::usage::{Usage, Uses, misuse};
use super::{
    Condition, Document, Field, Given, Operation, Refusal, Selection, SetId, VariableDefinition,
};
use crate::TypeRef;
use crate::coerce::{Variables, coerce};
use crate::literal::Literal;
use crate::registry::{ArgDef, FieldDef, QUERY, Registry};
use bluejay_core::executable::{
    Field as _, FragmentSpread as _, InlineFragment as _, OperationDefinition as _, Selection as _,
    SelectionReference, VariableTypeReference,
};
use bluejay_core::{AsIter as _, OperationType};
use bluejay_parser::HasSpan;
use bluejay_parser::ast::VariableDirectives;
use bluejay_parser::ast::executable as parsed;
use std::collections::HashMap;

/// Makes our own document. Recursion is bounded by the nesting that `limits` lets through.
pub(super) fn convert(
    text: &str,
    document: &parsed::ExecutableDocument<'_>,
    registry: &Registry,
) -> Result<Document, Refusal> {
    let mut converter = Converter {
        text,
        registry,
        made: Document::default(),
        fragments: HashMap::new(),
        uses: Uses::default(),
    };
    let mut uses: HashMap<Box<str>, Uses> = HashMap::new();
    // Sets of fragments are promised first, because fragments may spread each other in any order.
    for fragment in document.fragment_definitions() {
        let condition = fragment.type_condition().named_type().as_str();
        let set = converter.promise();
        converter.fragments.insert(fragment.name().as_str().into(), (condition.into(), set));
    }
    for fragment in document.fragment_definitions() {
        let (condition, set) = converter.fragments[fragment.name().as_str()].clone();
        converter.fill(set, &condition, fragment.selection_set())?;
        let found = std::mem::take(&mut converter.uses);
        uses.insert(fragment.name().as_str().into(), found);
    }
    for operation in document.operation_definitions() {
        converter.operation(operation, &uses)?;
    }
    Ok(converter.made)
}

struct Converter<'a> {
    text: &'a str,
    registry: &'a Registry,
    made: Document,
    /// Type and set of each fragment.
    fragments: HashMap<Box<str>, (Box<str>, SetId)>,
    /// What the definition at hand uses.
    uses: Uses,
}

impl Converter<'_> {
    fn operation(
        &mut self,
        operation: &parsed::OperationDefinition<'_>,
        fragments: &HashMap<Box<str>, Uses>,
    ) -> Result<(), Refusal> {
        let found = operation.as_ref();
        if found.operation_type() != OperationType::Query {
            let message = format!("{} operations are not supported", found.operation_type());
            return Err(Refusal::new(message));
        }
        let variables = self.variables(operation)?;
        let set = self.promise();
        self.fill(set, QUERY, operation.selection_set())?;
        let own = std::mem::take(&mut self.uses);
        if let Some((usage, declared)) = misuse(self.registry, &variables, &own, fragments) {
            let (name, declared, wanted) = (&usage.variable, &declared.type_ref, &usage.wanted);
            let message = format!("variable `${name}` is `{declared}`, expected `{wanted}`");
            return Err(Refusal::new(message).at(self.text, usage.offset));
        }
        let name = found.name().map(Into::into);
        self.made.operations.push(Operation { name, variables, set });
        Ok(())
    }

    fn variables(
        &self,
        operation: &parsed::OperationDefinition<'_>,
    ) -> Result<Vec<VariableDefinition>, Refusal> {
        let Some(definitions) = operation.as_ref().variable_definitions() else {
            return Ok(vec![]);
        };
        let mut variables = vec![];
        for definition in definitions.iter() {
            let name = definition.variable().as_str();
            let type_ref = variable_type(definition.r#type());
            let default = definition.default_value().map(literal);
            if let Some(default) = &default {
                coerce(self.registry, &Variables::new(), default, &type_ref).map_err(
                    |problem| Refusal::new(format!("default of variable `${name}`: {problem}")),
                )?;
            }
            variables.push(VariableDefinition { name: name.into(), type_ref, default });
        }
        Ok(variables)
    }

    fn promise(&mut self) -> SetId {
        self.made.sets.push(vec![]);
        SetId(self.made.sets.len() - 1)
    }

    fn fill(
        &mut self,
        set: SetId,
        parent: &str,
        from: &parsed::SelectionSet<'_>,
    ) -> Result<(), Refusal> {
        let mut selections = Vec::with_capacity(from.len());
        for selection in from.iter() {
            selections.push(match selection.as_ref() {
                SelectionReference::Field(field) => Selection::Field(self.field(parent, field)?),
                SelectionReference::InlineFragment(fragment) => self.inline(parent, fragment)?,
                SelectionReference::FragmentSpread(spread) => self.spread(parent, spread)?,
            });
        }
        self.made.sets[set.0] = selections;
        Ok(())
    }

    fn inline(
        &mut self,
        parent: &str,
        fragment: &parsed::InlineFragment<'_>,
    ) -> Result<Selection, Refusal> {
        let on = fragment.type_condition().map(|condition| condition.named_type().as_str());
        let offset = fragment.span().byte_range().start;
        self.check_fragment(parent, on.unwrap_or(parent), offset)?;
        let conditions = self.conditions(fragment.directives())?;
        let set = self.promise();
        self.fill(set, on.unwrap_or(parent), fragment.selection_set())?;
        Ok(Selection::Fragment { on: on.map(Into::into), conditions, set })
    }

    fn spread(
        &mut self,
        parent: &str,
        spread: &parsed::FragmentSpread<'_>,
    ) -> Result<Selection, Refusal> {
        let name = spread.name().as_str();
        let offset = spread.name().span().byte_range().start;
        let Some((on, set)) = self.fragments.get(name).cloned() else {
            let refusal = Refusal::new(format!("no fragment defined with name `{name}`"));
            return Err(refusal.at(self.text, offset));
        };
        self.check_fragment(parent, &on, offset)?;
        self.uses.fragments.insert(name.into());
        let conditions = self.conditions(spread.directives())?;
        Ok(Selection::Fragment { on: Some(on), conditions, set })
    }

    /// Our rule about fragments: one that can never apply is an error.
    fn check_fragment(&self, parent: &str, on: &str, offset: usize) -> Result<(), Refusal> {
        if parent == on || self.registry.can_apply(parent, on) {
            return Ok(());
        }
        let message = format!("a fragment on `{on}` can never apply to `{parent}`");
        Err(Refusal::new(message).at(self.text, offset))
    }

    fn field(&mut self, parent: &str, field: &parsed::Field<'_>) -> Result<Field, Refusal> {
        let name = field.name().as_str();
        let offset = field.name().span().byte_range().start;
        let registry = self.registry;
        let Some(definition) = registry.field(parent, name) else {
            let message = format!("field `{name}` does not exist on type `{parent}`");
            return Err(Refusal::new(message).at(self.text, offset));
        };
        let args = self.args(field, definition)?;
        let conditions = self.conditions(field.directives())?;
        let set = match (field.selection_set(), self.selected_from(parent, definition)) {
            (None, None) => None,
            (Some(selected), Some(from)) => {
                let set = self.promise();
                self.fill(set, &from, selected)?;
                Some(set)
            }
            // An id is an answer by itself, selecting from it is what is special.
            (None, Some(_)) if registry.is_id(definition.returns.base()) => None,
            (None, Some(_)) => {
                let message = format!(
                    "field `{name}` of type `{}` needs a selection of its fields",
                    definition.returns
                );
                return Err(Refusal::new(message).at(self.text, offset));
            }
            (Some(_), None) => {
                let message =
                    format!("field `{name}` of type `{}` has no fields", definition.returns);
                return Err(Refusal::new(message).at(self.text, offset));
            }
        };
        Ok(Field { key: field.response_key().into(), name: name.into(), args, conditions, set })
    }

    /// The type whose fields can be selected below a field: our rule about leaves.
    fn selected_from(&self, parent: &str, field: &FieldDef) -> Option<Box<str>> {
        let base = field.returns.base();
        if self.registry.get(base).is_some_and(crate::registry::TypeDef::is_composite) {
            return Some(base.into());
        }
        if !self.registry.is_id(base) || *field.name == *"id" || field.returns.is_list() {
            return None;
        }
        let made = field.resolver.as_ref().and_then(|resolver| resolver.object());
        Some(made.unwrap_or(parent).into())
    }

    fn args(
        &mut self,
        field: &parsed::Field<'_>,
        definition: &FieldDef,
    ) -> Result<Vec<(Box<str>, Given)>, Refusal> {
        let offset = field.name().span().byte_range().start;
        let refuse = |text: &str, message: String| Refusal::new(message).at(text, offset);
        let mut given = vec![];
        for argument in field.arguments().into_iter().flat_map(|arguments| arguments.iter()) {
            let name = argument.name().as_str();
            let Some(arg) = definition.arg(name) else {
                let message = format!("field `{}` has no argument `{name}`", definition.name);
                return Err(refuse(self.text, message));
            };
            self.made.sensitive |= arg.sensitive;
            let offset = argument.span().byte_range().start;
            given.push((name.into(), self.given(arg, literal(argument.value()), offset)?));
        }
        for arg in &definition.args {
            let needed = arg.type_ref.is_required() && arg.default.is_none();
            if needed && !given.iter().any(|(name, _): &(Box<str>, Given)| *name == arg.name) {
                let message =
                    format!("field `{}` needs the argument `{}`", definition.name, arg.name);
                return Err(refuse(self.text, message));
            }
        }
        Ok(given)
    }

    /// Our rule about values: what can be coerced is taken.
    fn given(&mut self, arg: &ArgDef, value: Literal, offset: usize) -> Result<Given, Refusal> {
        if value.has_variables() {
            self.note_usages(&value, &arg.type_ref, (arg.default.is_some(), offset));
            return Ok(Given::Dynamic(value));
        }
        if value == Literal::Null && arg.default.is_some() {
            return Ok(Given::Constant(crate::Value::Null));
        }
        let value = coerce(self.registry, &Variables::new(), &value, &arg.type_ref);
        value.map(Given::Constant).map_err(|problem| {
            Refusal::new(format!("argument `{}`: {problem}", arg.name)).at(self.text, offset)
        })
    }

    fn note_usages(&mut self, value: &Literal, wanted: &TypeRef, place: (bool, usize)) {
        let (has_default, offset) = place;
        let inner = match wanted {
            TypeRef::NonNull(inner) => inner,
            other => other,
        };
        match (value, inner) {
            (Literal::Variable(variable), _) => self.uses.variables.push(Usage {
                variable: variable.clone(),
                wanted: wanted.clone(),
                has_default,
                offset,
            }),
            (Literal::List(items), TypeRef::List(inner)) => {
                items.iter().for_each(|item| self.note_usages(item, inner, (false, offset)));
            }
            (single, TypeRef::List(inner)) => self.note_usages(single, inner, (false, offset)),
            (Literal::Object(fields), TypeRef::Named(name)) => {
                let registry = self.registry;
                let inputs = registry.get(name).map(|found| found.inputs.as_slice());
                for (key, value) in fields {
                    let input = inputs.into_iter().flatten().find(|input| input.name == *key);
                    if let Some(input) = input {
                        let place = (input.default.is_some(), offset);
                        self.note_usages(value, &input.type_ref, place);
                    }
                }
            }
            _ => {}
        }
    }

    fn conditions(
        &mut self,
        directives: Option<&VariableDirectives<'_>>,
    ) -> Result<Vec<Condition>, Refusal> {
        let mut conditions = vec![];
        for directive in directives.into_iter().flat_map(|directives| directives.iter()) {
            let keep = match directive.name().as_str() {
                "include" => true,
                "skip" => false,
                _ => continue,
            };
            let arguments = bluejay_core::Directive::arguments(directive);
            let argument = arguments.and_then(|arguments| arguments.iter().next());
            let Some(argument) = argument else { continue };
            let offset = argument.span().byte_range().start;
            let value = literal(argument.value());
            let boolean = TypeRef::NonNull(Box::new(TypeRef::Named("Boolean".into())));
            if value.has_variables() {
                self.note_usages(&value, &boolean, (false, offset));
            } else if let Err(problem) = coerce(self.registry, &Variables::new(), &value, &boolean)
            {
                let message = format!("`@{}`: {problem}", directive.name().as_str());
                return Err(Refusal::new(message).at(self.text, offset));
            }
            conditions.push(Condition { keep, value });
        }
        Ok(conditions)
    }
}

fn variable_type(found: &parsed::VariableType<'_>) -> TypeRef {
    let (type_ref, required) = match bluejay_core::executable::VariableType::as_ref(found) {
        VariableTypeReference::Named(name, required) => (TypeRef::Named(name.into()), required),
        VariableTypeReference::List(inner, required) => {
            (TypeRef::List(Box::new(variable_type(inner))), required)
        }
    };
    if required { TypeRef::NonNull(Box::new(type_ref)) } else { type_ref }
}
