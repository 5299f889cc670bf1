//! Named values that an API answer lists: variables and labels.

use graph::{Args, Builder, Context, Object, Op};
use protocol::Error;

pub(crate) fn install(builder: &mut Builder) {
    builder
        .install::<VariableName>()
        .install::<VariableValue>()
        .install::<LabelName>()
        .install::<LabelValue>();
}

/// An environment variable of a container.
pub(crate) struct EnvVariable {
    name: String,
    value: String,
}

/// A label of an image.
pub(crate) struct Label {
    name: String,
    value: String,
}

/// Declares a named value with its two fields.
macro_rules! named_value {
    ($object:ident, $name_op:ident, $name_doc:literal, $value_op:ident, $value_doc:literal) => {
        impl Object for $object {
            const TYPE: &'static str = stringify!($object);
        }

        impl $object {
            pub(crate) fn new(name: &str, value: &str) -> Self {
                Self { name: name.to_owned(), value: value.to_owned() }
            }
        }

        #[doc = $name_doc]
        #[derive(Args)]
        struct $name_op {}

        impl Op for $name_op {
            type Parent = $object;
            type Output = String;
            const NAME: &'static str = "name";

            async fn run(&self, parent: &$object, _: &Context) -> Result<String, Error> {
                Ok(parent.name.clone())
            }
        }

        #[doc = $value_doc]
        #[derive(Args)]
        struct $value_op {}

        impl Op for $value_op {
            type Parent = $object;
            type Output = String;
            const NAME: &'static str = "value";

            async fn run(&self, parent: &$object, _: &Context) -> Result<String, Error> {
                Ok(parent.value.clone())
            }
        }
    };
}

named_value!(
    EnvVariable,
    VariableName,
    "Name of the variable.",
    VariableValue,
    "Value of the variable."
);
named_value!(Label, LabelName, "Name of the label.", LabelValue, "Value of the label.");
