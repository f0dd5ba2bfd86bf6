//! Finds the end of a command's output in a stream that goes on.

/// Splits a byte stream at a token, however its pieces arrive.
pub(crate) struct Splitter {
    token: Vec<u8>,
    pending: Vec<u8>,
}

/// What a piece of the stream brought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Output of the command.
    pub(crate) data: Vec<u8>,
    /// Whether the token followed it.
    pub(crate) ended: bool,
}

impl Splitter {
    /// A splitter at `token`.
    pub(crate) fn new(token: &str) -> Self {
        Self {
            token: token.as_bytes().to_vec(),
            pending: Vec::new(),
        }
    }

    /// Takes the next bytes; gives all that is certainly output. Only what may be the start of the
    /// token is held back, so that a prompt or half a line is seen at once.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Piece> {
        self.pending.extend_from_slice(bytes);
        let mut pieces = Vec::new();
        while let Some(at) = self
            .pending
            .windows(self.token.len())
            .position(|window| window == self.token)
        {
            let rest = self.pending.split_off(at + self.token.len());
            self.pending.truncate(at);
            pieces.push(Piece {
                data: std::mem::replace(&mut self.pending, rest),
                ended: true,
            });
        }
        let held = (1..self.token.len().min(self.pending.len() + 1))
            .rev()
            .find(|length| self.pending.ends_with(&self.token[..*length]))
            .unwrap_or(0);
        let rest = self.pending.split_off(self.pending.len() - held);
        let data = std::mem::replace(&mut self.pending, rest);
        if !data.is_empty() {
            pieces.push(Piece { data, ended: false });
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(pieces: &[&str]) -> (String, usize) {
        let mut splitter = Splitter::new("<end>");
        let (mut text, mut ends) = (String::new(), 0);
        for piece in pieces
            .iter()
            .flat_map(|piece| splitter.push(piece.as_bytes()))
        {
            text += &String::from_utf8(piece.data).unwrap();
            if piece.ended {
                text.push('|');
                ends += 1;
            }
        }
        (text, ends)
    }

    #[test]
    fn the_token_is_found_however_it_is_cut() {
        assert_eq!(feed(&["a\nb<end>"]), ("a\nb|".into(), 1));
        assert_eq!(feed(&["a<", "en", "d>b<end>"]), ("a|b|".into(), 2));
        assert_eq!(feed(&["<end>"]), ("|".into(), 1));
    }

    #[test]
    fn what_only_looks_like_the_token_is_output() {
        assert_eq!(feed(&["<en", "<end>", "<e"]), ("<en|".into(), 1));
        assert_eq!(feed(&["<e", "x"]), ("<ex".into(), 0));
    }
}
