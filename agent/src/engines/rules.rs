//! Recognises an inference engine's process, by its command line, its title or its libraries.

use crate::engines::command::{Command, Program, base_name};
use crate::engines::table::{self, LIBRARIES, PROGRAMS, Rule, TITLES};
use crate::engines::{model_name, title};

/// What is known of an engine's process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Detected {
    /// `vllm`, `sglang`, `llama.cpp`, `ollama`, `tgi`, `triton`, `tensorrt-llm`, `ktransformers`.
    pub(crate) engine: String,
    /// `api-server`, `engine-core`, `worker`, `server`, `runner`, `router`, `launcher`,
    /// `coordinator`, `detokenizer`, `cli`, `bench`, `batch`, or `embedded` in a program of the
    /// user's own.
    pub(crate) role: String,
    /// Its tensor-parallel rank, else that in the group that its title names.
    pub(crate) rank: Option<u32>,
    /// The model that its own command line names.
    pub(crate) model: Option<String>,
}

/// Where the kernel cuts a process's short name, bytes.
const COMM_LENGTH: usize = 15;

/// Recognises a process by its arguments and its short name (`comm`).
pub(crate) fn detect(argv: &[String], comm: &str) -> Option<Detected> {
    // A title is one argument; where the old arguments left it no room, only `comm` has it.
    argv.first()
        .and_then(|first| by_title(first))
        .or_else(|| by_program(&Command::parse(argv)?))
        .or_else(|| by_title(comm))
}

/// Whether a process is a Python program, whose libraries are worth a look ([`detect_library`]).
pub(crate) fn is_python(argv: &[String]) -> bool {
    Command::parse(argv).is_some_and(|command| command.python)
}

/// Recognises a Python program that has an engine embedded, by its `/proc/PID/maps`.
pub(crate) fn detect_library(argv: &[String], maps: &str) -> Option<Detected> {
    let command = Command::parse(argv)?;
    let library = LIBRARIES.iter().find(|library| {
        maps.lines()
            .any(|line| line.contains('/') && line.contains(library.path))
    })?;
    let role = if command.is_python_child() {
        "worker"
    } else {
        "embedded"
    };
    Some(Detected {
        engine: library.engine.to_owned(),
        role: role.to_owned(),
        rank: None,
        model: model_name::find(
            command.arguments,
            model_name::ModelFrom::Options(&["--model", "-m", "--model-path", "--model-id"]),
        ),
    })
}

fn by_title(text: &str) -> Option<Detected> {
    TITLES.iter().find_map(|rule| {
        let title = title::parse(text, rule.prefix)?;
        let is_it = match rule.prefix {
            // Names behind it are those of classes and methods: RayWorkerWrapper.execute_method.
            "ray::" => title.what.starts_with(rule.what),
            _ if text.len() == COMM_LENGTH && !title.what.is_empty() => {
                rule.what.starts_with(title.what) || rule.what.is_empty()
            }
            _ => rule.what.is_empty() || title.what == rule.what,
        };
        // Older vLLM appended the worker's ranks to the title of the process that forked it.
        let role = if rule.role == "engine-core" && title.has_model_rank {
            "worker"
        } else {
            rule.role
        };
        is_it.then(|| Detected {
            engine: rule.engine.to_owned(),
            role: role.to_owned(),
            rank: title.rank,
            model: None,
        })
    })
}

fn by_program(command: &Command) -> Option<Detected> {
    let rule = PROGRAMS.iter().find(|rule| matches(rule, command))?;
    let arguments = command.arguments.get(rule.words.len()..)?;
    let mut detected = Detected {
        engine: rule.engine.to_owned(),
        role: rule.role.to_owned(),
        rank: None,
        model: model_name::find(arguments, rule.model),
    };
    // Newer ollama runs llama.cpp's own server, from a folder of its own.
    if let Program::Executable(path) = command.program
        && detected.engine == "llama.cpp"
        && path.contains("/ollama/")
    {
        "ollama".clone_into(&mut detected.engine);
        "runner".clone_into(&mut detected.role);
    }
    Some(detected)
}

fn matches(rule: &Rule, command: &Command) -> bool {
    let program = match rule.program {
        table::Program::Name(name) => command.file_name() == Some(name),
        table::Program::Module(name) => is_module(name, command.program),
    };
    program
        && rule.words.len() <= command.arguments.len()
        && rule
            .words
            .iter()
            .zip(command.arguments)
            .all(|(a, b)| a == b)
}

/// Whether a program is a module, or the module's file started as a script.
fn is_module(name: &str, program: Program) -> bool {
    match program {
        Program::Module(module) => match name.strip_suffix('.') {
            Some(package) => module == package || module.starts_with(name),
            None => module == name || module.strip_suffix(".__main__") == Some(name),
        },
        Program::Script(path) => {
            let file = name.replace('.', "/");
            base_name(path) != path
                && path
                    .strip_suffix(".py")
                    .is_some_and(|path| path == file || path.ends_with(&format!("/{file}")))
        }
        Program::Executable(_) | Program::Code(_) => false,
    }
}
