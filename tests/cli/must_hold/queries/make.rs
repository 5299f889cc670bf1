//! Makes queries from a schema: chains of what works, with the arguments of `values`, whole or damaged.

use super::values::Literal;
use protocol::schema::{Field, Schema, TypeKind};
use serde_json::{Map, Value as Json, json};
use testkit::Random;

/// Fields that wait for a person or for the end of the session.
const WAITING: &[&str] = &["terminal", "up", "exportImage", "containerImage"];
/// Longest chain.
const LONGEST: u64 = 7;

/// A request.
pub(super) struct Query {
    document: String,
    /// Declarations of the variables.
    declared: String,
    variables: Map<String, Json>,
    operation: Option<&'static str>,
    /// Bytes that stand in for all of it.
    bytes: Option<Vec<u8>>,
}

impl Query {
    fn of(document: String) -> Self {
        Self {
            document,
            declared: String::new(),
            variables: Map::new(),
            operation: None,
            bytes: None,
        }
    }

    /// The body of the request.
    pub(super) fn body(&self) -> Vec<u8> {
        if let Some(bytes) = &self.bytes {
            return bytes.clone();
        }
        let mut body = json!({ "query": self.document, "variables": self.variables });
        if let Some(name) = self.operation {
            body["operationName"] = name.into();
        }
        body.to_string().into_bytes()
    }
}

impl std::fmt::Debug for Query {
    /// Enough of it to send it again; bombs are long and look alike.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let body = self.body();
        write!(f, "{}", String::from_utf8_lossy(&body[..body.len().min(2000)]))
    }
}

/// Makes queries.
pub(super) struct Maker<'a> {
    pub(super) schema: &'a Schema,
    pub(super) random: &'a mut Random,
    /// Ids of objects that exist, by type.
    pub(super) objects: Vec<(&'static str, String)>,
}

impl<'a> Maker<'a> {
    pub(super) fn new(
        schema: &'a Schema,
        random: &'a mut Random,
        objects: Vec<(&'static str, String)>,
    ) -> Self {
        Self { schema, random, objects }
    }

    /// The next query.
    pub(super) fn query(&mut self) -> Query {
        match self.random.below(100) {
            0..70 => self.chain(),
            70..75 => self.siblings(),
            75..80 => self.strange_operation(),
            80..84 => self.unknown_names(),
            84..86 => self.bomb(),
            86..95 => self.damaged_text(),
            _ => self.damaged_bytes(),
        }
    }

    /// A chain from the root or from an object that exists, to a leaf.
    fn chain(&mut self) -> Query {
        let mut query = Query::of("{ ".to_owned());
        let mut closing = " }".to_owned();
        let mut owner = "Query".to_owned();
        if self.random.below(2) == 0 {
            let objects = self.objects.clone();
            let (kind, _) = self.random.pick(&objects);
            let id = Json::from(self.id(Some(kind)));
            owner = (*kind).to_owned();
            if self.random.below(2) == 0 {
                query.document += &format!("node(id: {id}) {{ ... on {kind} {{ ");
                closing += "} }";
            } else {
                query.document += &format!("load{kind}FromID(id: {id}) {{ x: __typename ");
                closing.push('}');
            }
        }
        for _ in 0..=self.random.below(LONGEST) {
            let Some(field) = self.object_field(&owner) else { break };
            self.call(&owner, field, &mut query);
            query.document += " { ";
            closing.push('}');
            field.returns.base().clone_into(&mut owner);
        }
        match self.leaf_field(&owner) {
            Some(field) => self.call(&owner, field, &mut query),
            None => query.document += "__typename",
        }
        query.document += &closing;
        if !query.declared.is_empty() {
            query.document = format!("query({}) {}", query.declared, query.document);
        }
        query
    }

    /// A field with its arguments.
    fn call(&mut self, owner: &str, field: &Field, query: &mut Query) {
        query.document += &field.name;
        let mut arguments = String::new();
        for argument in &field.args {
            let required = argument.type_ref.is_required() && argument.default.is_none();
            let left_out = if required { 80 } else { 2 };
            if self.random.below(left_out) == 0 {
                continue;
            }
            let value = self.argument(owner, &field.name, argument);
            arguments += &format!("{}: ", argument.name);
            if self.random.below(6) == 0 {
                let name = format!("v{}", query.variables.len());
                arguments += &format!("${name} ");
                query.declared += &format!("${name}: {} ", argument.type_ref);
                query.variables.insert(name, value.json());
            } else {
                value.write(&mut arguments);
                arguments.push(' ');
            }
        }
        if !arguments.is_empty() {
            query.document += &format!("({arguments})");
        }
    }

    /// A field that gives an object and works.
    fn object_field(&mut self, owner: &str) -> Option<&'a Field> {
        self.field(owner, |kind| matches!(kind, TypeKind::Object | TypeKind::Interface))
    }

    fn leaf_field(&mut self, owner: &str) -> Option<&'a Field> {
        self.field(owner, |kind| matches!(kind, TypeKind::Scalar | TypeKind::Enum))
    }

    fn field(&mut self, owner: &str, wanted: impl Fn(TypeKind) -> bool) -> Option<&'a Field> {
        let schema = self.schema;
        let kind = |field: &&Field| schema.types.get(field.returns.base()).map(|found| found.kind);
        let fields = schema.types.get(owner)?.fields.iter();
        let fields = fields.filter(|field| !WAITING.contains(&field.name.as_str()));
        // Chains begin with ids of objects that exist; there is no need to guess others.
        let fields = fields.filter(|field| field.args.iter().all(|argument| argument.name != "id"));
        let fields = fields.filter(|field| kind(field).is_some_and(&wanted));
        // What does not work yet is asked now and then: it must say so.
        let rarely = self.random.below(50) == 0;
        let fields: Vec<&Field> = fields.filter(|field| field.implemented || rarely).collect();
        (!fields.is_empty()).then(|| *self.random.pick(&fields))
    }

    /// Several chains side by side under names of their own.
    fn siblings(&mut self) -> Query {
        let mut whole = Query::of("{ ".to_owned());
        for index in 0..=self.random.below(5) {
            let one = self.chain();
            if one.variables.is_empty() {
                let inner = one.document.trim_start_matches("{ ");
                let inner = inner.strip_suffix('}').unwrap_or(inner);
                whole.document += &format!("a{index}: {inner} ");
            }
        }
        whole.document += "version }";
        whole
    }

    /// Operations, directives and names that do not fit together.
    fn strange_operation(&mut self) -> Query {
        let chain = self.chain();
        let body = chain.document;
        let mut query = Query::of(match self.random.below(12) {
            0 => format!("mutation {body}"),
            1 => format!("subscription {body}"),
            2 => format!("query A {body} query A {body}"),
            3 => format!("query A {body} query B {body}"),
            4 => body.replacen('{', "{ version @skip(if: \"x\") @include ", 1),
            5 => format!("query($a: Nothing, $a: [Int!]! = {{}}) {body}"),
            6 => format!("{body} fragment unused on Query {{ version }}"),
            7 => format!("{body} fragment f on String {{ a }}"),
            8 => format!("{{ ...missing }} {body}"),
            9 => "{ __schema { types { fields { type { ofType { ofType { fields { args { type { kind } } } } } } } } } }".into(),
            10 => "# only a comment".into(),
            _ => format!("query($v: String = \"\\uD800\") {body}"),
        });
        query.variables = chain.variables;
        query.operation = self.random.pick(&[None, Some("A"), Some("nobody"), Some("")]).to_owned();
        query
    }

    /// Fields, arguments and types that do not exist.
    fn unknown_names(&mut self) -> Query {
        let mut query = self.chain();
        let from =
            *self.random.pick(&["id", "path", "with", "name", "container", "directory", "on "]);
        let to =
            *self.random.pick(&["", "nothing", "__schema", "\u{e9}", "9", "x y", "__typename"]);
        query.document = query.document.replacen(from, to, 2);
        query
    }

    /// Documents that are small to write and large to work off.
    fn bomb(&mut self) -> Query {
        let count = 1 + self.random.below(3000) as usize;
        let mut query = Query::of(String::new());
        query.document = match self.random.below(9) {
            0 => format!(
                "{{ directory {}entries{} }}",
                "{ directory(path: \".\") ".repeat(count),
                "}".repeat(count)
            ),
            1 => "{".repeat(count),
            2 => format!(
                "{{ {} }}",
                (0..count).map(|n| format!("a{n}: version ")).collect::<String>()
            ),
            3 => format!(
                "{{ file(name: \"a\", contents: {}{}) {{ contents }} }}",
                "[".repeat(count),
                "]".repeat(count)
            ),
            4 => fragments(count.min(60)),
            5 => {
                query.variables.insert("v".into(), Json::from("v".repeat(count * 500)));
                "query($v: String!) { file(name: \"a\", contents: $v) { size digest: name } }"
                    .into()
            }
            6 => {
                let deep = (0..count.min(100)).fold(json!(1), |inner, _| json!([inner]));
                query.variables.insert("v".into(), deep);
                "query($v: JSON) { file(name: \"a\", contents: $v) { size } }".into()
            }
            7 => format!(
                "{{ container {}id{} }}",
                "{ withEnvVariable(name: \"A\", value: \"${A}${A}\", expand: true) "
                    .repeat(count.min(60)),
                "}".repeat(count.min(60))
            ),
            _ => format!("{{ version {} }}", "@skip(if: false) ".repeat(count)),
        };
        query
    }

    fn damaged_text(&mut self) -> Query {
        let mut query = self.chain();
        let mut bytes = query.document.into_bytes();
        self.random.damage(&mut bytes);
        query.document = String::from_utf8_lossy(&bytes).into_owned();
        query
    }

    /// Damage to the body itself: no JSON, no UTF-8, cut off.
    fn damaged_bytes(&mut self) -> Query {
        let mut query = self.chain();
        let mut bytes = query.body();
        self.random.damage(&mut bytes);
        query.bytes = Some(bytes);
        query
    }
}

/// Fragments that each name the next one twice.
fn fragments(count: usize) -> String {
    let mut text = "{ ...f0 }".to_owned();
    for index in 0..count {
        let next = index + 1;
        text += &format!(" fragment f{index} on Query {{ ...f{next} ...f{next} }}");
    }
    text + &format!(" fragment f{count} on Query {{ version }}")
}

/// Kept here so that a literal is always written the same way.
#[cfg(test)]
#[test]
fn literals_are_written_as_graphql() {
    use super::values::{raw, text};
    let mut written = String::new();
    let list = Literal::List(vec![
        text("a\n"),
        raw("NAME"),
        Literal::Object(vec![("x".into(), raw("1"))]),
    ]);
    list.write(&mut written);
    assert_eq!(written, "[\"a\\n\" NAME {x: 1 } ]");
    assert_eq!(list.json(), json!(["a\n", "NAME", { "x": 1 }]));
}
