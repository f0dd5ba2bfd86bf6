//! The model that a command line names, short enough for a table's cell.

/// Where a program's command line names its model.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ModelFrom {
    /// It doesn't.
    Nowhere,
    /// One of these options, the first that is there; `_` and `-` are the same.
    Options(&'static [&'static str]),
    /// The first argument that is no option, else one of these options.
    Positional(&'static [&'static str]),
    /// The first argument is a model's script, `/models/NAME/1/model.py`.
    ScriptPath,
}

/// The model's short name.
pub(crate) fn find(arguments: &[String], from: ModelFrom) -> Option<String> {
    let value = match from {
        ModelFrom::Nowhere => None,
        ModelFrom::Options(names) => option(arguments, names),
        ModelFrom::Positional(names) => positional(arguments).or_else(|| option(arguments, names)),
        ModelFrom::ScriptPath => return arguments.first()?.rsplit('/').nth(2).map(str::to_owned),
    };
    value.map(short).filter(|name| !name.is_empty())
}

/// The value of `--name value` or `--name=value`.
fn option<'a>(arguments: &'a [String], names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| {
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            if let Some((key, value)) = word.split_once('=') {
                if is_same(key, name) {
                    return Some(value);
                }
            } else if is_same(word, name) {
                return words.next().map(String::as_str);
            }
        }
        None
    })
}

fn is_same(word: &str, name: &str) -> bool {
    word.len() == name.len()
        && word
            .bytes()
            .zip(name.bytes())
            .all(|(a, b)| a == b || (a == b'_' && b == b'-'))
}

/// The first argument that is neither an option nor, as far as can be told, an option's value:
/// it is the first of all, or stands behind `--name=value` or behind an option known to have none.
fn positional(arguments: &[String]) -> Option<&str> {
    let takes_none = |option: &str| {
        option.contains('=')
            || [
                "--enable-",
                "--disable-",
                "--no-",
                "--trust-remote-code",
                "--trust_remote_code",
            ]
            .iter()
            .any(|start| option.starts_with(start))
            || ["--enforce-eager", "--async-scheduling", "--headless"].contains(&option)
    };
    let first = arguments.first().filter(|word| !word.starts_with('-'));
    let behind = || {
        arguments
            .windows(2)
            .find(|pair| {
                pair[0].starts_with('-') && takes_none(&pair[0]) && !pair[1].starts_with('-')
            })
            .map(|pair| &pair[1])
    };
    first.or_else(behind).map(String::as_str)
}

/// `org/name` stays; a path becomes its last part, a Hugging Face cache its `org/name`, and an
/// ollama blob its first twelve digits.
fn short(value: &str) -> String {
    let value = value.trim_end_matches('/');
    let cached = value
        .split('/')
        .find_map(|part| part.strip_prefix("models--"));
    if let Some(name) = cached {
        return name.replacen("--", "/", 1);
    }
    let is_path = value.starts_with(['/', '.', '~'])
        || value.rsplit('.').next() == Some("gguf")
        || value.contains("://")
        || value.matches('/').count() > 1;
    let name = if is_path {
        value.rsplit('/').next().unwrap_or(value)
    } else {
        value
    };
    match name.strip_prefix("sha256-") {
        Some(digits) => format!("sha256-{}", digits.get(..12).unwrap_or(digits)),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_in(line: &str, from: ModelFrom) -> Option<String> {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        find(&arguments, from)
    }

    #[test]
    fn options_are_found_in_each_form() {
        let from = ModelFrom::Options(&["--model-path", "-m"]);
        for (line, want) in [
            ("--port 1 --model-path org/x", Some("org/x")),
            ("--model_path=org/x --port 1", Some("org/x")),
            ("-m x.gguf", Some("x.gguf")),
            ("--model-path-like org/x", None),
            ("--model-path", None),
        ] {
            assert_eq!(find_in(line, from).as_deref(), want, "{line}");
        }
    }

    #[test]
    fn a_positional_argument_is_not_an_options_value() {
        let from = ModelFrom::Positional(&["--model"]);
        for (line, want) in [
            ("org/x --port 8000", Some("org/x")),
            ("--port 8000 --model org/x", Some("org/x")),
            ("--port=8000 org/x", Some("org/x")),
            ("--trust-remote-code org/x", Some("org/x")),
            ("--enable-prefix-caching org/x", Some("org/x")),
            ("--config serve.yaml", None),
        ] {
            assert_eq!(find_in(line, from).as_deref(), want, "{line}");
        }
    }

    #[test]
    fn names_are_short() {
        for (value, want) in [
            ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
            ("/data/models/Qwen2-7B-Instruct/", "Qwen2-7B-Instruct"),
            ("models/gemma-3.gguf", "gemma-3.gguf"),
            ("org/repo/gemma-3.Q4.gguf", "gemma-3.Q4.gguf"),
            ("unsloth/gemma-GGUF:Q4_K_M", "unsloth/gemma-GGUF:Q4_K_M"),
            (
                "~/.cache/huggingface/hub/models--meta-llama--Llama-3.1-8B/snapshots/0e9e",
                "meta-llama/Llama-3.1-8B",
            ),
            (
                "/root/.ollama/models/blobs/sha256-60e05f2100071479f596",
                "sha256-60e05f210007",
            ),
            ("s3://bucket/weights/m", "m"),
        ] {
            assert_eq!(short(value), want);
        }
    }

    #[test]
    fn a_triton_stub_names_its_model_by_its_script() {
        let found = find_in(
            "/models/post-processing/1/model.py shm 1048576",
            ModelFrom::ScriptPath,
        );
        assert_eq!(found.as_deref(), Some("post-processing"));
    }
}
