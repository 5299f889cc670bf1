//! `Terminal`: what programs of old were given when they opened one. Nothing makes one any more: `terminal` gives
//! the object that it was opened in, which is what later programs ask for.

use graph::{Args, Builder, Context, Object, Op, OwnId};
use protocol::Error;

pub(crate) fn install(builder: &mut Builder) {
    builder.install::<Sync>();
}

/// A terminal that was opened.
struct Terminal;

impl Object for Terminal {
    const TYPE: &'static str = "Terminal";
}

/// Gives its id: a terminal that there is has been opened.
#[derive(Args)]
struct Sync {}

impl Op for Sync {
    type Parent = Terminal;
    type Output = OwnId;
    const NAME: &'static str = "sync";

    async fn run(&self, _: &Terminal, _: &Context) -> Result<OwnId, Error> {
        Ok(OwnId)
    }
}
