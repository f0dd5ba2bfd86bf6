//! Sockets, nodes, root complexes, switches and devices as a tree.

/// A line and what hangs below it.
#[derive(Debug, Default)]
pub(super) struct Branch {
    line: String,
    below: Vec<Branch>,
}

impl Branch {
    /// One without anything below.
    pub(super) fn new(line: impl Into<String>) -> Self {
        Self {
            line: line.into(),
            below: Vec::new(),
        }
    }

    /// The branch below with this line; made where there is none.
    pub(super) fn at(&mut self, line: &str) -> &mut Self {
        let found = self.below.iter().position(|b| b.line == line);
        let at = found.unwrap_or_else(|| {
            self.below.push(Self::new(line));
            self.below.len() - 1
        });
        &mut self.below[at]
    }

    /// Hangs one below.
    pub(super) fn push(&mut self, branch: Self) {
        self.below.push(branch);
    }

    /// Its line and all below, drawn.
    pub(super) fn draw(&self, text: &mut String) {
        text.push_str(&self.line);
        text.push('\n');
        self.draw_below("", text);
    }

    fn draw_below(&self, indent: &str, text: &mut String) {
        for (at, branch) in self.below.iter().enumerate() {
            let last = at + 1 == self.below.len();
            let (knot, line) = if last {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            text.push_str(indent);
            text.push_str(knot);
            text.push_str(&branch.line);
            text.push('\n');
            branch.draw_below(&format!("{indent}{line}"), text);
        }
    }
}
