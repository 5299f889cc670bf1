//! A small schema for tests, in the form the engine sends.

use protocol::schema::{Argument, Field, Member, Schema, Type, TypeKind, TypeRef};

/// Reads `String`, `[String!]!` and the like.
fn type_ref(text: &str) -> TypeRef {
    if let Some(inner) = text.strip_suffix('!') {
        return TypeRef::NonNull(Box::new(type_ref(inner)));
    }
    match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        Some(inner) => TypeRef::List(Box::new(type_ref(inner))),
        None => TypeRef::Named(text.to_owned()),
    }
}

/// Reads `name: Type`, `name: Type = default`, `name: ID! @Container`.
fn argument(text: &str) -> Argument {
    let (name, rest) = text.split_once(": ").unwrap();
    let (rest, default) = rest.split_once(" = ").map_or((rest, None), |(a, b)| (a, Some(b)));
    let (rest, expected) = rest.split_once(" @").map_or((rest, None), |(a, b)| (a, Some(b)));
    Argument {
        name: name.into(),
        description: format!("The {name} to use."),
        type_ref: type_ref(rest),
        default: default.map(str::to_owned),
        expected: expected.map(str::to_owned),
    }
}

fn field(name: &str, returns: &str, args: &[&str]) -> Field {
    Field {
        name: name.into(),
        description: format!("Does {name}.\n\nAt length."),
        args: args.iter().map(|text| argument(text)).collect(),
        returns: type_ref(returns),
        implemented: true,
        deprecated: false,
    }
}

fn object(fields: Vec<Field>) -> Type {
    let (inputs, members) = (vec![], vec![]);
    Type { kind: TypeKind::Object, description: String::new(), fields, inputs, members }
}

fn later(field: Field) -> Field {
    Field { implemented: false, ..field }
}

/// The schema.
pub(crate) fn schema() -> Schema {
    let scalar = || Type { kind: TypeKind::Scalar, ..object(vec![]) };
    let member =
        |name: &str| Member { name: name.into(), description: String::new(), stands_for: None };
    let members = ["SUCCESS", "FAILURE", "ANY"].map(member).into();
    let modes = Type { kind: TypeKind::Enum, members, ..object(vec![]) };
    let input = Type { kind: TypeKind::Input, ..object(vec![]) };
    let types = [
        ("Query", object(query())),
        ("Container", object(container())),
        ("Directory", object(directory())),
        ("File", object(file())),
        ("EnvVariable", object(vec![field("id", "ID!", &[]), field("name", "String!", &[])])),
        ("Label", object(vec![field("name", "String!", &[])])),
        ("ReturnType", modes),
        ("PortForward", input.clone()),
        ("BuildArg", input.clone()),
        ("Settings", input),
        ("String", scalar()),
        ("Int", scalar()),
        ("Float", scalar()),
        ("Boolean", scalar()),
        ("ID", scalar()),
        ("Platform", scalar()),
        ("JSON", scalar()),
        ("Void", scalar()),
    ];
    Schema { types: types.into_iter().map(|(name, found)| (name.to_owned(), found)).collect() }
}

fn query() -> Vec<Field> {
    vec![
        field("container", "Container!", &["platform: Platform"]),
        field("directory", "Directory!", &[]),
        field("cacheVolume", "Container!", &["key: String!"]),
        field("loadContainerFromID", "Container!", &["id: ID! @Container"]),
        field("version", "String!", &[]),
        field("nothing", "Container", &[]),
        later(field("git", "Directory!", &["url: String!"])),
        Field { deprecated: true, ..field("pipeline", "Container!", &[]) },
    ]
}

fn container() -> Vec<Field> {
    vec![
        field("id", "ID!", &[]),
        field("sync", "ID!", &[]),
        field("from", "Container!", &["address: String!"]),
        field(
            "withExec",
            "Container!",
            &[
                "args: [String!]!",
                "stdin: String = \"\"",
                "expect: ReturnType = SUCCESS",
                "noInit: Boolean = false",
                "settings: Settings",
            ],
        ),
        field(
            "withMountedDirectory",
            "Container!",
            &["path: String!", "source: ID! @Directory", "owner: String = \"root\""],
        ),
        field("withSecretVariable", "Container!", &["name: String!", "secret: ID! @Secret"]),
        field("withServiceBinding", "Container!", &["alias: String!", "ref: ID! @Module"]),
        field("withOdd", "Container!", &["settings: Settings!"]),
        field("withOutput", "Container!", &["output: String", "json: Boolean"]),
        field("up", "Void", &["ports: [PortForward!] = []"]),
        field("envVariables", "[EnvVariable!]!", &[]),
        field("labels", "[Label!]!", &[]),
        field("entrypoint", "[String!]!", &[]),
        field("envVariable", "String", &["name: String!"]),
        field("exitCode", "Int!", &[]),
        field("stdout", "String!", &[]),
        field("file", "File!", &["path: String!"]),
        field("rootfs", "Directory!", &[]),
        later(field("publish", "String!", &["address: String!"])),
    ]
}

fn directory() -> Vec<Field> {
    vec![
        field("id", "ID!", &[]),
        field("sync", "ID!", &[]),
        field("entries", "[String!]!", &["path: String"]),
        field("export", "String!", &["path: String!", "wipe: Boolean = false"]),
    ]
}

fn file() -> Vec<Field> {
    vec![
        field("id", "ID!", &[]),
        field("contents", "String!", &[]),
        field("export", "String!", &["allowParentDirPath: Boolean = false", "path: String!"]),
    ]
}
