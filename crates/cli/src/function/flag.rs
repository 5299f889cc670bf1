//! [`FlagType`]: how an argument of the API is given on the command line, if it can be.

use protocol::schema::{Argument, Field, Schema, Type, TypeKind, TypeRef};

/// How an argument is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlagType {
    /// One value.
    pub(crate) kind: ValueKind,
    /// Whether several may be given.
    pub(crate) list: bool,
}

/// How one value is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    /// Text as it is; custom scalars too.
    Text,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// `true` or `false`; the flag alone means true.
    Bool,
    /// One of these names.
    Enum(Vec<String>),
    /// `os/arch[/variant]` or `current`.
    Platform,
    /// `NAME=value`.
    BuildArg,
    /// `frontend:backend`.
    PortForward,
    /// An object that is looked up first.
    Object(ObjectKind),
    /// An object of a type that can be given one day.
    Later(String),
}

/// Objects that can be named by a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    /// An image.
    Container,
    /// A directory of the host.
    Directory,
    /// A file of the host.
    File,
    /// The address of a secret.
    Secret,
    /// The name of a cache.
    CacheVolume,
    /// A unix socket of the host.
    Socket,
    /// A port of the host.
    Service,
    /// The address of a git repository, or a directory of the host that is one.
    GitRepository,
    /// The same with a branch, tag or commit after a `#`.
    GitRef,
    /// A file of the host with variables.
    EnvFile,
    /// The address of a volume.
    Volume,
}

/// How this argument is given, if it can be.
pub(crate) fn flag_type(schema: &Schema, argument: &Argument) -> Option<FlagType> {
    let list = argument.type_ref.is_list();
    if list && is_list_of_lists(&argument.type_ref) {
        return None;
    }
    let kind = value_kind(schema, argument)?;
    let only_lists = matches!(kind, ValueKind::BuildArg | ValueKind::PortForward);
    if only_lists && !list {
        return None;
    }
    Some(FlagType { kind, list })
}

/// Arguments that must be given and cannot be.
pub(crate) fn impossible_arguments<'a>(schema: &Schema, field: &'a Field) -> Vec<&'a str> {
    field
        .args
        .iter()
        .filter(|argument| is_required(argument) && flag_type(schema, argument).is_none())
        .map(|argument| argument.name.as_str())
        .collect()
}

/// Whether the argument must be given.
pub(crate) fn is_required(argument: &Argument) -> bool {
    argument.type_ref.is_required() && argument.default.is_none()
}

impl FlagType {
    /// What help calls the value; none where the flag stands alone.
    pub(crate) fn label(&self) -> Option<String> {
        let plural = if self.list { "s" } else { "" };
        Some(match &self.kind {
            ValueKind::Bool if !self.list => return None,
            ValueKind::Text => format!("string{plural}"),
            ValueKind::Int => format!("int{plural}"),
            ValueKind::Float => format!("float{plural}"),
            ValueKind::Bool => format!("bool{plural}"),
            ValueKind::Enum(members) => members.join(","),
            ValueKind::Platform => format!("Platform{plural}"),
            ValueKind::BuildArg => "NAME=value".into(),
            ValueKind::PortForward => "frontend:backend".into(),
            ValueKind::Object(kind) => format!("{kind:?}{plural}"),
            ValueKind::Later(name) => format!("{name}{plural}"),
        })
    }
}

fn value_kind(schema: &Schema, argument: &Argument) -> Option<ValueKind> {
    let base = argument.type_ref.base();
    Some(match base {
        "String" => ValueKind::Text,
        "Int" => ValueKind::Int,
        "Float" => ValueKind::Float,
        "Boolean" => ValueKind::Bool,
        "Platform" => ValueKind::Platform,
        "BuildArg" => ValueKind::BuildArg,
        "PortForward" => ValueKind::PortForward,
        "ID" if argument.name == "id" => return None,
        "ID" => object_kind(argument.expected.as_deref()?)?,
        _ => match schema.types.get(base)?.kind {
            TypeKind::Enum => ValueKind::Enum(members(schema.types.get(base)?)),
            TypeKind::Scalar => ValueKind::Text,
            TypeKind::Object | TypeKind::Interface | TypeKind::Input => return None,
        },
    })
}

fn members(kind: &Type) -> Vec<String> {
    kind.members.iter().map(|member| member.name.clone()).collect()
}

fn object_kind(expected: &str) -> Option<ValueKind> {
    Some(match expected {
        "Container" => ValueKind::Object(ObjectKind::Container),
        "Directory" => ValueKind::Object(ObjectKind::Directory),
        "File" => ValueKind::Object(ObjectKind::File),
        "Secret" => ValueKind::Object(ObjectKind::Secret),
        "CacheVolume" => ValueKind::Object(ObjectKind::CacheVolume),
        "Socket" => ValueKind::Object(ObjectKind::Socket),
        "Service" => ValueKind::Object(ObjectKind::Service),
        "GitRepository" => ValueKind::Object(ObjectKind::GitRepository),
        "GitRef" => ValueKind::Object(ObjectKind::GitRef),
        "EnvFile" => ValueKind::Object(ObjectKind::EnvFile),
        "Volume" => ValueKind::Object(ObjectKind::Volume),
        "Module" | "ModuleSource" => ValueKind::Later(expected.to_owned()),
        _ => return None,
    })
}

fn is_list_of_lists(type_ref: &TypeRef) -> bool {
    match type_ref {
        TypeRef::Named(_) => false,
        TypeRef::NonNull(inner) => is_list_of_lists(inner),
        TypeRef::List(inner) => inner.is_list(),
    }
}
