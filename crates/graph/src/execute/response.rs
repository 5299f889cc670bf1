//! [`Response`]: the reply while it grows, as a flat table.
//!
//! A node knows its parent, so that the path of an error needs no bookkeeping; children are listed
//! in the order of the document, so that the order in which answers arrive does not matter.

use crate::Error;
use crate::output::Outcome;
use protocol::PathSegment;
use serde_json::Value as Json;
use std::sync::Arc;

/// A place in the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeId(usize);

/// What stands at a place.
pub(super) enum Content {
    Null,
    Leaf(Json),
    /// A leaf that the session remembers too.
    Shared(Arc<Outcome>),
    Object(Vec<NodeId>),
    List(Vec<NodeId>),
}

struct Node {
    parent: Option<NodeId>,
    segment: Segment,
    content: Content,
}

enum Segment {
    Key(Arc<str>),
    Index(usize),
}

/// The reply while it grows.
pub(super) struct Response(Vec<Node>);

impl Response {
    pub(super) const ROOT: NodeId = NodeId(0);

    pub(super) fn new() -> Self {
        let segment = Segment::Index(0);
        Self(vec![Node { parent: None, segment, content: Content::Null }])
    }

    pub(super) fn set(&mut self, node: NodeId, content: Content) {
        self.0[node.0].content = content;
    }

    /// Makes a node an object with these keys; gives a place for each.
    pub(super) fn set_object<'a>(
        &mut self,
        node: NodeId,
        keys: impl Iterator<Item = &'a Arc<str>>,
    ) -> Vec<NodeId> {
        let children: Vec<_> = keys.map(|key| self.add(node, Segment::Key(key.clone()))).collect();
        self.set(node, Content::Object(children.clone()));
        children
    }

    /// Makes a node a list of this length; gives a place for each element.
    pub(super) fn set_list(&mut self, node: NodeId, length: usize) -> Vec<NodeId> {
        let children: Vec<_> =
            (0..length).map(|index| self.add(node, Segment::Index(index))).collect();
        self.set(node, Content::List(children.clone()));
        children
    }

    fn add(&mut self, parent: NodeId, segment: Segment) -> NodeId {
        self.0.push(Node { parent: Some(parent), segment, content: Content::Null });
        NodeId(self.0.len() - 1)
    }

    /// The error with the path of the place where it happened.
    pub(super) fn locate(&self, node: NodeId, mut error: Error) -> Error {
        let mut path = vec![];
        let mut at = node;
        while let Some(parent) = self.0[at.0].parent {
            path.push(match &self.0[at.0].segment {
                Segment::Key(key) => PathSegment::Key(key.to_string()),
                Segment::Index(index) => PathSegment::Index(*index),
            });
            at = parent;
        }
        path.reverse();
        error.path = path;
        error
    }

    /// The bytes of a reply that succeeded.
    pub(super) fn into_reply(self) -> Vec<u8> {
        let mut bytes = b"{\"data\":".to_vec();
        let mut stack = vec![Step::Value(Self::ROOT)];
        while let Some(step) = stack.pop() {
            match step {
                Step::Text(text) => bytes.extend_from_slice(text.as_bytes()),
                Step::Value(id) => self.write(id, &mut bytes, &mut stack),
                Step::Entry(id, first) => {
                    if !first {
                        bytes.push(b',');
                    }
                    if let Segment::Key(key) = &self.0[id.0].segment {
                        bytes.push(b'"');
                        bytes.extend_from_slice(key.as_bytes());
                        bytes.extend_from_slice(b"\":");
                    }
                    stack.push(Step::Value(id));
                }
            }
        }
        bytes.push(b'}');
        bytes
    }

    fn write(&self, id: NodeId, bytes: &mut Vec<u8>, stack: &mut Vec<Step>) {
        match &self.0[id.0].content {
            Content::Null => bytes.extend_from_slice(b"null"),
            Content::Leaf(json) => write_json(bytes, json),
            Content::Shared(outcome) => match &**outcome {
                Outcome::Leaf(json) => write_json(bytes, json),
                _ => bytes.extend_from_slice(b"null"),
            },
            Content::Object(children) => {
                bytes.push(b'{');
                stack.push(Step::Text("}"));
                push_entries(children, stack);
            }
            Content::List(children) => {
                bytes.push(b'[');
                stack.push(Step::Text("]"));
                push_entries(children, stack);
            }
        }
    }
}

/// What is left to write.
enum Step {
    Text(&'static str),
    Value(NodeId),
    /// A value with what comes before it, and whether it is the first.
    Entry(NodeId, bool),
}

fn push_entries(children: &[NodeId], stack: &mut Vec<Step>) {
    let entries = children.iter().enumerate().rev();
    stack.extend(entries.map(|(index, child)| Step::Entry(*child, index == 0)));
}

fn write_json(bytes: &mut Vec<u8>, json: &Json) {
    serde_json::to_writer(bytes, json).expect("a JSON value can be written into memory");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Arc<str> {
        name.into()
    }

    #[test]
    fn writes_in_the_order_of_the_document() {
        let mut response = Response::new();
        let keys = [key("a"), key("b"), key("c")];
        let children = response.set_object(Response::ROOT, keys.iter());
        response.set(children[2], Content::Leaf(Json::from("x\"y")));
        let items = response.set_list(children[1], 2);
        response.set(items[1], Content::Leaf(Json::from(3)));
        response.set_object(children[0], std::iter::empty());
        let text = String::from_utf8(response.into_reply()).unwrap();
        assert_eq!(text, r#"{"data":{"a":{},"b":[null,3],"c":"x\"y"}}"#);
    }

    #[test]
    fn an_error_has_the_path_of_its_place() {
        let mut response = Response::new();
        let children = response.set_object(Response::ROOT, [key("a")].iter());
        let items = response.set_list(children[0], 2);
        let error = response.locate(items[1], Error::user("no"));
        assert_eq!(error.path, [PathSegment::Key("a".into()), PathSegment::Index(1)]);
    }

    #[test]
    fn a_deep_reply_is_written_without_recursion() {
        let mut response = Response::new();
        let mut at = Response::ROOT;
        for _ in 0..100_000 {
            at = response.set_object(at, [key("a")].iter())[0];
        }
        let length = response.into_reply().len();
        assert_eq!(length, 100_000 * "{\"a\":}".len() + "{\"data\":null}".len());
    }
}
