//! The types of introspection, in the modern form that published clients ask for.
//!
//! The parser brings meta types of its own, older than these, and takes no second definition of a
//! name. So they are written under a prefix here, which `read` takes off.

/// Prefix of the names in [`META_SDL`].
pub(super) const META_PREFIX: &str = "Meta";

/// The types of introspection.
pub(super) const META_SDL: &str = r#"
type Query {
  "The schema."
  __schema: Meta__Schema!
  "A type of the schema by name."
  __type(name: String!): Meta__Type
  "Version of the API that this schema is."
  __schemaVersion: String!
}
"What the API consists of."
type Meta__Schema {
  description: String
  types: [Meta__Type!]!
  queryType: Meta__Type!
  mutationType: Meta__Type
  subscriptionType: Meta__Type
  directives: [Meta__Directive!]!
}
"A type, or a list of a type, or a type that is never null."
type Meta__Type {
  kind: Meta__TypeKind!
  name: String
  description: String
  specifiedByURL: String
  fields(includeDeprecated: Boolean = false): [Meta__Field!]
  interfaces: [Meta__Type!]
  possibleTypes: [Meta__Type!]
  enumValues(includeDeprecated: Boolean = false): [Meta__EnumValue!]
  inputFields(includeDeprecated: Boolean = false): [Meta__InputValue!]
  ofType: Meta__Type
  isOneOf: Boolean
}
"A field of an object type or interface."
type Meta__Field {
  name: String!
  description: String
  args(includeDeprecated: Boolean = false): [Meta__InputValue!]!
  type: Meta__Type!
  isDeprecated: Boolean!
  deprecationReason: String
}
"An argument, or a field of an input object."
type Meta__InputValue {
  name: String!
  description: String
  type: Meta__Type!
  defaultValue: String
  isDeprecated: Boolean!
  deprecationReason: String
}
"A member of an enum."
type Meta__EnumValue {
  name: String!
  description: String
  isDeprecated: Boolean!
  deprecationReason: String
}
"A directive."
type Meta__Directive {
  name: String!
  description: String
  isRepeatable: Boolean!
  locations: [Meta__DirectiveLocation!]!
  args(includeDeprecated: Boolean = false): [Meta__InputValue!]!
}
"Sorts of types."
enum Meta__TypeKind { SCALAR OBJECT INTERFACE UNION ENUM INPUT_OBJECT LIST NON_NULL }
"Where a directive may stand."
enum Meta__DirectiveLocation {
  QUERY MUTATION SUBSCRIPTION FIELD FRAGMENT_DEFINITION FRAGMENT_SPREAD INLINE_FRAGMENT
  VARIABLE_DEFINITION SCHEMA SCALAR OBJECT FIELD_DEFINITION ARGUMENT_DEFINITION INTERFACE UNION ENUM
  ENUM_VALUE INPUT_OBJECT INPUT_FIELD_DEFINITION
}
"#;

/// Fields above that the parser's own meta types lack: the validator must not refuse them.
pub(crate) const META_FIELDS: &[(&str, &str)] = &[
    ("Query", "__schemaVersion"),
    ("__InputValue", "isDeprecated"),
    ("__InputValue", "deprecationReason"),
    ("__Type", "isOneOf"),
];
