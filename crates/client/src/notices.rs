//! [`Notices`]: where words for the user go while an engine is reached. Nothing here prints.

use std::fmt;
use std::sync::Arc;

/// Takes words for the user. The default drops them.
#[derive(Clone, Default)]
pub struct Notices(Option<Arc<Teller>>);

type Teller = dyn Fn(&str) + Send + Sync;

impl Notices {
    /// Gives every notice, one sentence without a full stop, to this function.
    pub fn to(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    pub(crate) fn tell(&self, notice: &str) {
        if let Some(tell) = &self.0 {
            tell(notice);
        }
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Notices(told)" } else { "Notices(dropped)" })
    }
}
