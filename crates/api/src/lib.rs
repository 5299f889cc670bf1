//! The core types a user sees, a folder each: `Container`, `Directory`, `File`, `Host` and so on.
//!
//! Every field is an [`graph::Op`] in the file of its family; [`install`] lists them all. What an
//! operation works with (store, sandbox, Debian assembly) comes from [`Services`], what it may ask
//! of the caller's machine from [`host::Host`]. This crate opens no host path and reads no
//! environment: both reach it through those two.

mod address;
mod alteration;
mod cache_volume;
mod changeset;
mod compat;
mod container;
mod content_digest;
pub mod debian;
mod directory;
mod docker_build;
mod edit;
mod engine;
mod entries;
mod env_file;
mod error_value;
mod expand;
mod export;
mod file;
pub mod git;
pub mod host;
mod http;
pub mod image;
mod json_value;
mod lock;
mod looks;
mod modes;
pub mod nest;
mod owner;
mod paths;
mod platform;
mod query;
mod relay;
mod replacement;
mod scalars;
mod schema_tool;
mod search;
mod secret;
mod service;
mod services;
mod socket;
mod stat;
mod stop;
mod surroundings;
mod terminal;
mod times;
mod tree;
mod volume;

pub use cache_volume::Turns;
pub use container::Container;
pub use directory::Directory;
pub use engine::Connected;
pub use file::File;
pub use http::{Downloads, Web};
pub use service::RunningServices;
pub use services::{Observable, Services, Slots};
pub use surroundings::{BUNDLE, Certificates, Surroundings};

/// The whole schema: every field that published clients know, built or not. It is authoritative for
/// types and defaults until each op has replaced its field; installing an op checks it against this.
pub const SCHEMA: &str = include_str!("schema.graphql");

/// Adds every operation of this crate to a graph.
pub fn install(builder: &mut graph::Builder) {
    query::install(builder);
    container::install(builder);
    directory::install(builder);
    docker_build::install(builder);
    file::install(builder);
    stat::install(builder);
    search::install(builder);
    changeset::install(builder);
    host::install(builder);
    cache_volume::install(builder);
    secret::install(builder);
    service::install(builder);
    socket::install(builder);
    address::install(builder);
    engine::install(builder);
    entries::install(builder);
    env_file::install(builder);
    error_value::install(builder);
    http::install(builder);
    json_value::install(builder);
    schema_tool::install(builder);
    volume::install(builder);
    terminal::install(builder);
    git::install(builder);
    // `GitRepository.commit` made a reference before it made a commit; clients of both times ask.
    builder.answer_for("GitRef", "GitCommit");
}

#[cfg(test)]
mod tests {
    use graph::{Graph, NoMemo};
    use protocol::schema::{Member, Type, TypeKind};
    use std::sync::Arc;

    fn graph() -> Arc<Graph> {
        let mut builder = Graph::builder(crate::SCHEMA).expect("the schema parses");
        crate::install(&mut builder);
        builder.build(Arc::new(NoMemo), [7; 32]).expect("every op fits the schema")
    }

    #[test]
    fn every_op_has_the_arguments_and_types_of_the_schema() {
        graph();
    }

    /// Types that come with modules, workspaces, checks and generators, models and the cloud, with all of their fields.
    /// A star stands for the rest of a name.
    const TYPES_TO_COME: [&str; 17] = [
        "*TypeDef",
        "Agent*",
        "Binding",
        "Check*",
        "Cloud",
        "CurrentModule*",
        "Env",
        "Function*",
        "GeneratedCode",
        "Generator*",
        "LLM*",
        "Module*",
        "SDKConfig",
        "SourceMap",
        "Up",
        "UpGroup",
        "Workspace*",
    ];
    /// What leads to them from types that are there.
    const FIELDS_TO_COME: [&str; 19] = [
        "Directory.asModule",
        "Directory.asModuleSource",
        "Directory.asWorkspace",
        "GitRef.asWorkspace",
        "GitRepository.asWorkspace",
        "Query.cloud",
        "Query.currentEnv",
        "Query.currentFunctionCall",
        "Query.currentModule",
        "Query.currentTypeDefs",
        "Query.currentWorkspace",
        "Query.env",
        "Query.function",
        "Query.generatedCode",
        "Query.llm",
        "Query.module",
        "Query.moduleSource",
        "Query.sourceMap",
        "Query.typeDef",
    ];

    fn is_to_come(name: &str) -> bool {
        let fits = |pattern: &&str| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
            (Some(end), _) => name.ends_with(end),
            (_, Some(start)) => name.starts_with(start),
            _ => name == *pattern,
        };
        TYPES_TO_COME.iter().any(fits)
    }

    #[test]
    fn every_field_is_built_but_those_of_what_is_to_come() {
        let graph = graph();
        let mut left = vec![];
        for (name, type_) in graph.schema().types.iter().filter(|(name, _)| !is_to_come(name)) {
            // What an interface has, the types have that it stands for.
            if type_.kind == TypeKind::Object {
                let missing = type_.fields.iter().filter(|field| !field.implemented);
                left.extend(missing.map(|field| format!("{name}.{}", field.name)));
            }
        }
        left.retain(|field| !FIELDS_TO_COME.contains(&field.as_str()));
        assert!(left.is_empty(), "these fields answer \"not implemented yet\": {left:?}");
    }

    /// What of a type that built fields give or take has no description.
    fn undescribed(name: &str, kind: &Type) -> Vec<String> {
        let standard = ["Boolean", "Float", "ID", "Int", "String"].contains(&name);
        let mut missing = vec![];
        if kind.description.is_empty() && !standard {
            missing.push(name.to_owned());
        }
        let inputs = kind.inputs.iter().filter(|input| input.description.is_empty());
        missing.extend(inputs.map(|input| format!("{name}.{}", input.name)));
        let bare = |member: &&Member| member.description.is_empty() && member.stands_for.is_none();
        let members = kind.members.iter().filter(bare);
        missing.extend(members.map(|member| format!("{name}.{}", member.name)));
        missing
    }

    #[test]
    fn every_built_field_and_argument_is_described() {
        let graph = graph();
        let mut missing = vec![];
        let mut uses = std::collections::BTreeSet::new();
        let objects = graph.schema().types.iter();
        for (name, type_) in objects.filter(|(_, type_)| type_.kind == TypeKind::Object) {
            for field in type_.fields.iter().filter(|field| field.implemented) {
                if field.description.is_empty() {
                    missing.push(format!("{name}.{}", field.name));
                }
                // Loading exists for types of which nothing else works yet.
                if field.name != format!("load{}FromID", field.returns.base()) {
                    uses.insert(field.returns.base());
                }
                for arg in &field.args {
                    uses.insert(arg.type_ref.base());
                    if arg.description.is_empty() {
                        missing.push(format!("{name}.{}({})", field.name, arg.name));
                    }
                }
            }
        }
        for name in uses {
            missing.extend(undescribed(name, &graph.schema().types[name]));
        }
        assert!(missing.is_empty(), "without a description: {missing:?}");
    }
}
