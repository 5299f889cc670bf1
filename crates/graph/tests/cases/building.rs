//! Ops and schema must say the same.

use crate::fixture::memo::MemoryMemo;
use crate::fixture::objects::{Container, Mode};
use crate::fixture::{KEY, SDL};
use graph::{Args, Context, Error, Graph, Op, Root};
use std::sync::Arc;

fn failure(sdl: &str, install: impl FnOnce(&mut graph::Builder)) -> String {
    let mut builder = Graph::builder(sdl).unwrap();
    install(&mut builder);
    match builder.build(Arc::new(MemoryMemo::default()), KEY) {
        Ok(_) => panic!("it was built"),
        Err(error) => error.message,
    }
}

macro_rules! op {
    ($op:ident on $parent:ty, $name:literal -> $output:ty) => {
        impl Op for $op {
            type Parent = $parent;
            type Output = $output;
            const NAME: &'static str = $name;

            async fn run(&self, _: &$parent, _: &Context) -> Result<$output, Error> {
                Err(Error::user("never run"))
            }
        }
    };
}

#[derive(Args)]
struct Unknown;
op!(Unknown on Container, "nope" -> String);

#[derive(Args)]
#[expect(dead_code, reason = "never run")]
struct WrongGroup {
    #[arg(default = "FAILURE")]
    expect: Mode,
    other: bool,
}

#[derive(Args)]
#[expect(dead_code, reason = "never run")]
struct WrongExec {
    args: Option<Vec<String>>,
    #[arg(group)]
    group: WrongGroup,
}
op!(WrongExec on Container, "withExec" -> Vec<Container>);

#[derive(Args)]
struct WrongOutput;
op!(WrongOutput on Root, "version" -> Option<String>);

#[derive(Args)]
struct NestedLists;
op!(NestedLists on Container, "env" -> Vec<Vec<Container>>);

#[test]
fn every_mismatch_is_listed_at_once() {
    let problems = failure(SDL, |builder| {
        builder
            .install::<Unknown>()
            .install::<WrongExec>()
            .install::<WrongOutput>()
            .install::<NestedLists>()
            .install::<WrongOutput>();
    });
    for expect in [
        "`Container.nope` is not in the schema",
        "`Container.withExec` returns `Container!` in the schema, `[Container!]!` in the op",
        "argument `args` of `Container.withExec` is `[String!]!` in the schema, `[String!]` in the op",
        "default of `expect` of `Container.withExec` is `SUCCESS` in the schema, `FAILURE` in the op",
        "`Container.withExec` has no argument `other` in the schema",
        "`Query.version` returns `String!` in the schema, `String` in the op",
        "`Container.env` returns `[EnvVariable!]!` in the schema, `[[Container!]!]!` in the op",
        "`Query.version` is installed twice",
    ] {
        assert!(problems.contains(expect), "{expect} not in\n{problems}");
    }
}

#[test]
fn enums_must_be_in_the_schema() {
    let sdl = "type Query { container: Container! } \
        type Container { withExec(args: [String!], expect: Mode = FAILURE): Container! } \
        enum Mode { SUCCESS FAILURE }";
    let problems = failure(sdl, |builder| {
        builder.install::<WrongExec>();
    });
    assert!(problems.contains("`Mode` has no member `ANY`"), "{problems}");
}

#[test]
fn a_broken_schema_is_an_error() {
    for (sdl, expect) in [
        ("type Query {", "invalid schema"),
        ("type Query { a: Nope }", "invalid schema"),
        ("type Other { a: Int }", "invalid schema"),
        ("type Query { a(b: Int @nope): Int }", "invalid schema"),
    ] {
        let error = Graph::builder(sdl).err().expect("an error").message;
        assert!(error.contains(expect), "{sdl}: {error}");
    }
}

#[test]
fn defaults_of_the_schema_must_fit_their_types() {
    let problems = failure("type Query { a(b: Int = \"x\"): Int }", |_| {});
    assert!(problems.contains("`Query.a`: default of `b`: expected `Int`"), "{problems}");
}

#[test]
fn a_schema_may_declare_our_directive_itself() {
    let sdl = "directive @expectedType(name: String!) on ARGUMENT_DEFINITION | FIELD_DEFINITION\n\
        type Query { a(b: ID @expectedType(name: \"Query\")): Int }";
    let graph = Graph::builder(sdl).unwrap().build(Arc::new(MemoryMemo::default()), KEY).unwrap();
    let arg = &graph.schema().types["Query"].fields[0].args[0];
    assert_eq!(arg.expected.as_deref(), Some("Query"));
}
