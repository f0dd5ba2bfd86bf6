//! What a command line runs: an executable, a script or a module, seen through its interpreter.

/// The thing that runs, without the interpreter in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program<'a> {
    /// An executable, by its path.
    Executable(&'a str),
    /// A script run by an interpreter, by its path.
    Script(&'a str),
    /// `python -m MODULE`.
    Module(&'a str),
    /// `python -c CODE`.
    Code(&'a str),
}

/// A command line, taken apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command<'a> {
    /// What runs.
    pub(crate) program: Program<'a>,
    /// Whether Python runs it.
    pub(crate) python: bool,
    /// The arguments behind the program.
    pub(crate) arguments: &'a [String],
}

impl<'a> Command<'a> {
    /// Takes a command line apart; `None` for an empty one and for an interpreter that runs no
    /// file: an interactive one, or a shell with `-c`, which only starts what it names.
    pub(crate) fn parse(argv: &'a [String]) -> Option<Self> {
        let (first, rest) = argv.split_first()?;
        let name = base_name(first);
        if is_python(name) {
            return python(rest);
        }
        if ["sh", "bash", "dash"].contains(&name) {
            let (script, arguments) = rest.split_first()?;
            return (!script.starts_with('-')).then_some(Self {
                program: Program::Script(script),
                python: false,
                arguments,
            });
        }
        Some(Self {
            program: Program::Executable(first),
            python: false,
            arguments: rest,
        })
    }

    /// The file name of an executable or a script.
    pub(crate) fn file_name(&self) -> Option<&'a str> {
        match self.program {
            Program::Executable(path) | Program::Script(path) => Some(base_name(path)),
            Program::Module(_) | Program::Code(_) => None,
        }
    }

    /// Whether it is a helper that a Python program started for part of its own work, by
    /// `multiprocessing` or MPI.
    pub(crate) fn is_python_child(&self) -> bool {
        match self.program {
            Program::Code(code) => code.contains("multiprocessing.spawn import spawn_main"),
            Program::Module(module) => module == "mpi4py.futures.server",
            Program::Executable(_) | Program::Script(_) => false,
        }
    }
}

/// The last part of a path.
pub(crate) fn base_name(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// `python`, `python3`, `python3.12`, `pypy3`, …
fn is_python(name: &str) -> bool {
    ["python", "pypy"].iter().any(|stem| {
        name.strip_prefix(stem).is_some_and(|rest| {
            rest.chars()
                .all(|c| c.is_ascii_digit() || c == '.' || c == 't')
        })
    })
}

fn python(mut rest: &[String]) -> Option<Command<'_>> {
    loop {
        let (word, behind) = rest.split_first()?;
        let (program, arguments) = match word.as_str() {
            "-m" => (Program::Module(behind.first()?), behind.get(1..)?),
            "-c" => (Program::Code(behind.first()?), behind.get(1..)?),
            // Options with a value of their own.
            "-W" | "-X" | "--check-hash-based-pycs" => {
                rest = behind.get(1..)?;
                continue;
            }
            option if option.starts_with('-') => {
                rest = behind;
                continue;
            }
            script => (Program::Script(script), behind),
        };
        return Some(Command {
            program,
            python: true,
            arguments,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn what_runs_behind_an_interpreter() {
        for (line, want) in [
            (
                "/usr/bin/llama-server -m x",
                Program::Executable("/usr/bin/llama-server"),
            ),
            (
                "python3 /venv/bin/vllm serve x",
                Program::Script("/venv/bin/vllm"),
            ),
            (
                "/venv/bin/python3.12 -m vllm.x serve",
                Program::Module("vllm.x"),
            ),
            ("python -u -X dev -W ignore -m a.b", Program::Module("a.b")),
            ("pypy3 x.py", Program::Script("x.py")),
            ("python3.13t x.py", Program::Script("x.py")),
            (
                "python -c import_x --multiprocessing-fork",
                Program::Code("import_x"),
            ),
            (
                "/bin/bash /usr/bin/trtllm-llmapi-launch x",
                Program::Script("/usr/bin/trtllm-llmapi-launch"),
            ),
            ("python-config --libs", Program::Executable("python-config")),
        ] {
            let argv = argv(line);
            assert_eq!(Command::parse(&argv).unwrap().program, want, "{line}");
        }
    }

    #[test]
    fn an_interpreter_without_a_file_runs_nothing() {
        for line in [
            "python",
            "python3 -i",
            "bash",
            "-bash",
            "sh -c x",
            "bash -lc x",
        ] {
            let argv = argv(line);
            let program = Command::parse(&argv).map(|c| c.program);
            assert!(
                matches!(program, None | Some(Program::Executable("-bash"))),
                "{line}: {program:?}"
            );
        }
        assert!(Command::parse(&[]).is_none());
    }
}
