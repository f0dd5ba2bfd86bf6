//! Many scripts in one boot: length-prefixed requests in, length-prefixed answers out.

use std::io::{self, BufRead, Write};
use std::time::Duration;

use anyhow::{Context, Result};

use super::TIMED_OUT;
use super::session::{Ended, Session, Sink};

/// Serves until `input` ends or a script runs out of time; gives the status to exit with.
pub(crate) fn serve(
    session: &mut Session,
    limit: Duration,
    mut input: impl BufRead,
    mut output: impl Write,
) -> Result<u8> {
    while let Some(script) = request(&mut input)? {
        let mut kept = Kept::default();
        let ended = session.run(&script, limit, &mut kept)?;
        let status = match ended {
            Ended::Status(status) => status,
            Ended::TimedOut => TIMED_OUT,
        };
        answer(&mut output, status, &kept).context("nobody reads the answer")?;
        if ended == Ended::TimedOut {
            return Ok(TIMED_OUT);
        }
    }
    Ok(0)
}

#[derive(Default)]
struct Kept {
    out: Vec<u8>,
    err: Vec<u8>,
}

impl Sink for Kept {
    fn take(&mut self, stderr: bool, bytes: &[u8]) -> io::Result<()> {
        if stderr { &mut self.err } else { &mut self.out }.extend_from_slice(bytes);
        Ok(())
    }
}

/// The next script; none at the end of the input.
fn request(input: &mut impl BufRead) -> Result<Option<Vec<u8>>> {
    let mut line = String::new();
    if input
        .read_line(&mut line)
        .context("cannot read a request")?
        == 0
    {
        return Ok(None);
    }
    let length = line
        .trim()
        .parse()
        .with_context(|| format!("a request starts with a length, not {:?}", line.trim()))?;
    let mut script = vec![0; length];
    input
        .read_exact(&mut script)
        .context("a request is shorter than it says")?;
    Ok(Some(script))
}

fn answer(output: &mut impl Write, status: u8, kept: &Kept) -> io::Result<()> {
    writeln!(output, "{status} {} {}", kept.out.len(), kept.err.len())?;
    output.write_all(&kept.out)?;
    output.write_all(&kept.err)?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_may_hold_newlines() {
        let mut input: &[u8] = b"7\necho a\n4\ntrue";
        assert_eq!(request(&mut input).unwrap().unwrap(), b"echo a\n");
        assert_eq!(request(&mut input).unwrap().unwrap(), b"true");
        assert!(request(&mut input).unwrap().is_none());
        assert!(request(&mut &b"x\n"[..]).is_err());
        assert!(request(&mut &b"9\nshort"[..]).is_err());
    }

    #[test]
    fn an_answer_tells_both_lengths() {
        let mut output = Vec::new();
        answer(
            &mut output,
            3,
            &Kept {
                out: b"ab".to_vec(),
                err: b"c".to_vec(),
            },
        )
        .unwrap();
        assert_eq!(output, b"3 2 1\nabc");
    }
}
