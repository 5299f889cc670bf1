//! The registry as our own command line sees it.

use super::{ArgDef, FieldDef, Kind, MemberDef, Registry, TypeDef};
use protocol::schema::{Argument, Field, Member, Schema, Type, TypeKind};

impl Registry {
    /// All types but those of introspection, with what works yet.
    pub(crate) fn describe(&self) -> Schema {
        let types = self.types().iter().filter(|found| !found.is_introspection());
        Schema {
            types: types.map(|found| (found.name.to_string(), self.describe_type(found))).collect(),
        }
    }

    fn describe_type(&self, found: &TypeDef) -> Type {
        let fields = found.listed_fields().map(|field| self.describe_field(found, field));
        Type {
            kind: match found.kind {
                Kind::Scalar => TypeKind::Scalar,
                Kind::Object => TypeKind::Object,
                Kind::Interface | Kind::Union => TypeKind::Interface,
                Kind::Enum => TypeKind::Enum,
                Kind::Input => TypeKind::Input,
            },
            description: found.description.clone(),
            fields: fields.collect(),
            inputs: found.inputs.iter().map(describe_argument).collect(),
            members: found.members.iter().map(describe_member).collect(),
        }
    }

    fn describe_field(&self, owner: &TypeDef, field: &FieldDef) -> Field {
        Field {
            name: field.name.to_string(),
            description: field.description.clone(),
            args: field.args.iter().map(describe_argument).collect(),
            returns: field.returns.clone(),
            implemented: self.works(owner, field),
            deprecated: field.deprecated.is_some(),
        }
    }

    /// Whether a field can be answered; one of an interface, when it can on some object.
    fn works(&self, owner: &TypeDef, field: &FieldDef) -> bool {
        let on_object = |object: &std::sync::Arc<str>| {
            self.field(object, &field.name).is_some_and(FieldDef::is_implemented)
        };
        field.is_implemented() || owner.possible.iter().any(on_object)
    }
}

fn describe_member(member: &MemberDef) -> Member {
    Member {
        name: member.name.to_string(),
        description: member.description.clone(),
        stands_for: member.stands_for.as_ref().map(ToString::to_string),
    }
}

fn describe_argument(arg: &ArgDef) -> Argument {
    Argument {
        name: arg.name.to_string(),
        description: arg.description.clone(),
        type_ref: arg.type_ref.clone(),
        default: arg.default.as_ref().map(ToString::to_string),
        expected: arg.expected.as_ref().map(ToString::to_string),
    }
}
