//! Fields of `File` that read it as something else: JSON, variables.

use super::File;
use super::read::text;
use crate::env_file::EnvFile;
use crate::json_value::JsonValue;
use crate::services::Services;
use graph::{Args, Builder, Context, Op};
use protocol::Error;

pub(super) fn install(builder: &mut Builder) {
    builder.install::<AsJson>().install::<AsEnvFile>();
}

/// The file as JSON.
#[derive(Args)]
struct AsJson {}

impl Op for AsJson {
    type Parent = File;
    type Output = JsonValue;
    const NAME: &'static str = "asJSON";

    async fn run(&self, file: &File, cx: &Context) -> Result<JsonValue, Error> {
        let text = text(file, cx.get::<Services>()?).await?;
        JsonValue::parse(&text).map_err(|error| in_file(file, error))
    }
}

/// The file as variables in the language of `.env` files.
#[derive(Args)]
struct AsEnvFile {
    /// Replace `$NAME` and `${NAME}` in values by other variables; only `false` turns that off.
    expand: Option<bool>,
}

impl Op for AsEnvFile {
    type Parent = File;
    type Output = EnvFile;
    const NAME: &'static str = "asEnvFile";

    async fn run(&self, file: &File, cx: &Context) -> Result<EnvFile, Error> {
        let text = text(file, cx.get::<Services>()?).await?;
        EnvFile::parse(&text, self.expand).map_err(|error| in_file(file, error))
    }
}

fn in_file(file: &File, mut error: Error) -> Error {
    error.message = format!("file `{}`: {}", file.name(), error.message);
    error
}
