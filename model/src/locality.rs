//! How far a touch or a move went: within a node, within a socket, or across sockets.

use serde::{Deserialize, Serialize};

/// The distance class of an ordered pair of nodes. *Remote* means not [`Locality::Local`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Locality {
    /// The same node.
    Local,
    /// Another node in the same package.
    SameSocket,
    /// A node in another package, or one whose package is unknown.
    CrossSocket,
}

impl Locality {
    /// All classes, nearest first.
    pub const ALL: [Self; 3] = [Self::Local, Self::SameSocket, Self::CrossSocket];

    /// The word that metrics and screens use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::SameSocket => "same-socket",
            Self::CrossSocket => "cross-socket",
        }
    }
}
