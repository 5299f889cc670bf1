//! `Schema`: the answer to an introspection query as a value, to which the types of a module can be
//! added. For programs that generate code: they see the module as they would once it is served.

use crate::json_value;
use crate::scalars::Json;
use graph::{Args, Builder, Context, Object, Op, Root};
use protocol::Error;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Names the module that a type comes from.
const STAMP: &str = "sourceModuleName";

pub(crate) fn install(builder: &mut Builder) {
    builder.install::<MakeSchema>().install::<Contents>().install::<Merge>();
}

/// A schema, as introspection shows it.
pub(crate) struct Schema(Arc<Value>);

impl Object for Schema {
    const TYPE: &'static str = "Schema";
}

/// A schema read from the answer to an introspection query.
#[derive(Args)]
struct MakeSchema {
    /// The answer: an object with `__schema`.
    json: Json,
}

impl Op for MakeSchema {
    type Parent = Root;
    type Output = Schema;
    const NAME: &'static str = "schema";

    async fn run(&self, _: &Root, _: &Context) -> Result<Schema, Error> {
        let mut schema = json_value::parse(&self.json.0)?;
        types(&mut schema)?;
        Ok(Schema(Arc::new(schema)))
    }
}

/// The schema as the answer to an introspection query.
#[derive(Args)]
struct Contents {}

impl Op for Contents {
    type Parent = Schema;
    type Output = Json;
    const NAME: &'static str = "contents";

    async fn run(&self, schema: &Schema, _: &Context) -> Result<Json, Error> {
        Ok(Json(schema.0.to_string()))
    }
}

/// Adds the types of a module, and the field of `Query` that makes its main object. A module that was
/// added before changes nothing; a type that is there already is an error.
#[derive(Args)]
struct Merge {
    /// What the module declares: `objects`, `interfaces` and `enums`.
    module_types: Json,
    /// What the module is called.
    module_name: String,
}

impl Op for Merge {
    type Parent = Schema;
    type Output = Schema;
    const NAME: &'static str = "merge";

    async fn run(&self, schema: &Schema, _: &Context) -> Result<Schema, Error> {
        let module: Module = serde_json::from_str(&self.module_types.0)
            .map_err(|error| Error::user(format!("the module's types make no sense: {error}")))?;
        let mut merged = (*schema.0).clone();
        merge(&mut merged, module, &self.module_name)?;
        Ok(Schema(Arc::new(merged)))
    }
}

/// What a module declares.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Module {
    #[serde(default, rename = "name")]
    _name: String,
    #[serde(default, rename = "description")]
    _description: String,
    #[serde(default)]
    objects: Vec<ObjectType>,
    #[serde(default)]
    interfaces: Vec<InterfaceType>,
    #[serde(default)]
    enums: Vec<EnumType>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ObjectType {
    name: String,
    #[serde(default)]
    description: String,
    constructor: Option<Function>,
    #[serde(default)]
    functions: Vec<Function>,
    #[serde(default)]
    fields: Vec<Field>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InterfaceType {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    functions: Vec<Function>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EnumType {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    values: Vec<Member>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Member {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default, rename = "value")]
    _value: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Field {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(rename = "type")]
    type_ref: TypeReference,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Function {
    #[serde(default)]
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    args: Vec<Argument>,
    return_type: Option<TypeReference>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Argument {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(rename = "type")]
    type_ref: TypeReference,
    default_value: Option<String>,
}

/// A type by its name, or one that wraps another.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TypeReference {
    kind: String,
    name: Option<String>,
    of_type: Option<Box<TypeReference>>,
}

/// The types of a schema.
fn types(schema: &mut Value) -> Result<&mut Vec<Value>, Error> {
    let types = schema.pointer_mut("/__schema/types").and_then(Value::as_array_mut);
    types.ok_or_else(|| {
        Error::user("that is no schema: `__schema.types` is missing")
            .with_hint("give the `data` of an introspection query")
    })
}

fn merge(schema: &mut Value, module: Module, name: &str) -> Result<(), Error> {
    let types = types(schema)?;
    if types.iter().any(|known| is_of_module(known, name)) {
        return Ok(());
    }
    let constructor = module.objects.iter().find(|object| object.name == camel_case(name, true));
    let constructor = constructor.map(|object| constructor_field(object, name));
    let objects = module.objects.iter().map(|object| object_type(object, name));
    let interfaces = module.interfaces.iter().map(|interface| interface_type(interface, name));
    let enums = module.enums.iter().map(|enumeration| enum_type(enumeration, name));
    for made in objects.chain(interfaces).chain(enums) {
        if types.iter().any(|known| known["name"] == made["name"]) {
            let message = format!("type `{}` is in the schema already", text(&made["name"]));
            return Err(Error::user(message));
        }
        types.push(made);
    }
    let Some(constructor) = constructor else { return Ok(()) };
    let query = types.iter_mut().find(|known| known["name"] == "Query");
    let fields = query.and_then(|query| query.get_mut("fields")?.as_array_mut());
    let fields = fields.ok_or_else(|| Error::user("the schema has no type `Query`"))?;
    if fields.iter().any(|known| known["name"] == constructor["name"]) {
        let message = format!("`Query` has a field `{}` already", text(&constructor["name"]));
        return Err(Error::user(message));
    }
    fields.push(constructor);
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Whether a type was added for this module.
fn is_of_module(type_: &Value, module: &str) -> bool {
    let directives = type_["directives"].as_array();
    let stamps = directives.into_iter().flatten().filter(|applied| applied["name"] == STAMP);
    let mut args = stamps.filter_map(|applied| applied["args"].as_array()).flatten();
    args.any(|arg| arg["name"] == "name" && arg["value"] == quoted(module))
}

/// Values of directives are JSON in a text.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn stamps(module: &str) -> Value {
    json!([
        { "name": STAMP, "args": [{ "name": "name", "value": quoted(module) }] },
        { "name": "sourceMap", "args": [{ "name": "module", "value": quoted(module) }] },
    ])
}

fn object_type(object: &ObjectType, module: &str) -> Value {
    let plain = object.fields.iter().map(|field| {
        described(&field.name, &field.description, json!({ "type": reference(&field.type_ref) }))
    });
    let fields: Vec<Value> = object.functions.iter().map(function_field).chain(plain).collect();
    json!({
        "kind": "OBJECT", "name": object.name, "description": object.description,
        "fields": fields, "interfaces": [], "directives": stamps(module),
    })
}

fn interface_type(interface: &InterfaceType, module: &str) -> Value {
    let fields: Vec<Value> = interface.functions.iter().map(function_field).collect();
    json!({
        "kind": "INTERFACE", "name": interface.name, "description": interface.description,
        "fields": fields, "interfaces": [], "possibleTypes": [], "directives": stamps(module),
    })
}

fn enum_type(enumeration: &EnumType, module: &str) -> Value {
    let member = |member: &Member| {
        json!({
            "name": member.name, "description": member.description,
            "isDeprecated": false, "directives": [],
        })
    };
    let members: Vec<Value> = enumeration.values.iter().map(member).collect();
    json!({
        "kind": "ENUM", "name": enumeration.name, "description": enumeration.description,
        "enumValues": members, "interfaces": [], "directives": stamps(module),
    })
}

/// A field with what all of them have; `rest` has its type and may replace anything else.
fn described(name: &str, description: &str, rest: Value) -> Value {
    let mut field = json!({
        "name": name, "description": description,
        "args": [], "isDeprecated": false, "directives": [],
    });
    if let (Value::Object(field), Value::Object(rest)) = (&mut field, rest) {
        field.extend(rest);
    }
    field
}

fn function_field(function: &Function) -> Value {
    let type_ref = function.return_type.as_ref().map(reference);
    let rest = json!({ "args": arguments(&function.args), "type": type_ref });
    described(&function.name, &function.description, rest)
}

fn constructor_field(object: &ObjectType, module: &str) -> Value {
    let args = object.constructor.as_ref().map(|constructor| arguments(&constructor.args));
    let made = json!({ "kind": "OBJECT", "name": object.name, "ofType": null });
    let rest = json!({
        "args": args.unwrap_or_default(),
        "type": { "kind": "NON_NULL", "name": null, "ofType": made },
        "directives": stamps(module),
    });
    described(&camel_case(module, false), &object.description, rest)
}

fn arguments(args: &[Argument]) -> Vec<Value> {
    let argument = |arg: &Argument| {
        json!({
            "name": arg.name, "description": arg.description, "type": reference(&arg.type_ref),
            "defaultValue": arg.default_value, "directives": [],
        })
    };
    args.iter().map(argument).collect()
}

/// A type as introspection names it. It recurses as deep as the JSON nests, which is bounded.
fn reference(type_ref: &TypeReference) -> Value {
    let inner = type_ref.of_type.as_deref().map(reference);
    json!({ "kind": type_ref.kind, "name": type_ref.name, "ofType": inner })
}

/// `my-module` as `MyModule`, or as `myModule`.
fn camel_case(name: &str, capital: bool) -> String {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut made = String::new();
    for word in words {
        let mut letters = word.chars();
        let first = letters.next().into_iter();
        if made.is_empty() && !capital {
            made.extend(first.flat_map(char::to_lowercase));
        } else {
            made.extend(first.flat_map(char::to_uppercase));
        }
        made.push_str(letters.as_str());
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({ "__schema": { "types": [{ "kind": "OBJECT", "name": "Query", "fields": [] }] } })
    }

    fn module() -> Module {
        let string =
            json!({ "kind": "NON_NULL", "ofType": { "kind": "SCALAR", "name": "String" } });
        let say = json!({
            "name": "say", "returnType": string,
            "args": [{ "name": "what", "type": string, "defaultValue": "\"hi\"" }],
        });
        let declared = json!({
            "name": "my-echo",
            "objects": [{
                "name": "MyEcho", "description": "Echoes.", "functions": [say],
                "fields": [{ "name": "loud", "type": { "kind": "SCALAR", "name": "Boolean" } }],
                "constructor": { "args": [{ "name": "times", "type": { "kind": "SCALAR", "name": "Int" } }] },
            }],
            "interfaces": [{ "name": "MyEchoSpeaker", "functions": [] }],
            "enums": [{ "name": "MyEchoMood", "values": [{ "name": "GLAD", "value": "glad" }] }],
        });
        serde_json::from_value(declared).unwrap()
    }

    #[test]
    fn types_and_the_constructor_are_added_once() {
        let mut merged = schema();
        merge(&mut merged, module(), "my-echo").unwrap();
        let types = merged["__schema"]["types"].as_array().unwrap();
        let names: Vec<&str> = types.iter().map(|type_| text(&type_["name"])).collect();
        assert_eq!(names, ["Query", "MyEcho", "MyEchoSpeaker", "MyEchoMood"]);
        let made = &types[0]["fields"][0];
        assert_eq!((text(&made["name"]), text(&made["description"])), ("myEcho", "Echoes."));
        assert_eq!(made["type"]["ofType"]["name"], "MyEcho");
        assert_eq!(made["args"][0]["name"], "times");
        let fields = types[1]["fields"].as_array().unwrap();
        assert_eq!(fields[0]["args"][0]["defaultValue"], "\"hi\"");
        assert_eq!(fields[1]["name"], "loud");
        assert_eq!(types[3]["enumValues"][0]["name"], "GLAD");
        let before = merged.clone();
        merge(&mut merged, module(), "my-echo").unwrap();
        assert_eq!(before, merged, "a second time changes nothing");
    }

    #[test]
    fn what_is_there_already_is_an_error() {
        let mut merged = schema();
        types(&mut merged).unwrap().push(json!({ "kind": "OBJECT", "name": "MyEcho" }));
        let error = merge(&mut merged, module(), "my-echo").unwrap_err();
        assert_eq!(error.message, "type `MyEcho` is in the schema already");
        let mut merged = schema();
        merged["__schema"]["types"][0]["fields"] = json!([{ "name": "myEcho" }]);
        let error = merge(&mut merged, module(), "my-echo").unwrap_err();
        assert_eq!(error.message, "`Query` has a field `myEcho` already");
        let error = types(&mut json!({ "types": [] })).unwrap_err();
        assert!(error.message.contains("`__schema.types` is missing"), "{error}");
    }

    #[test]
    fn names_in_camels() {
        for (name, capital, small) in
            [("my-echo", "MyEcho", "myEcho"), ("x", "X", "x"), ("a_b.c", "ABC", "aBC")]
        {
            assert_eq!(
                (camel_case(name, true), camel_case(name, false)),
                (capital.into(), small.into())
            );
        }
    }
}
