//! What a process's open files and environment tell of the devices that it uses.

use crate::engines::gpu::is_gpu_device;
use crate::host::error::Error;
use crate::host::process::ProcessDir;
use model::device_use::VARIABLES;

/// More than any sane environment has, bytes.
const ENVIRONMENT: u64 = 1 << 20;

/// Names of its open device files, sorted, each once: `nvidia3`, `renderD128`, `uverbs0`.
///
/// # Errors
/// [`Error::Denied`] for another user's process without CAP_SYS_PTRACE; [`Error::Gone`].
pub(crate) fn open_names(process: &ProcessDir) -> Result<Vec<String>, Error> {
    let mut names: Vec<String> = process
        .open_files()?
        .iter()
        .filter(|path| is_gpu_device(path) || path.starts_with("/dev/infiniband"))
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// The variables that say which devices it may see, as it was started with; nothing else of its environment is kept.
pub(crate) fn visible(process: &ProcessDir) -> Vec<(&'static str, String)> {
    let environment = process.read_start("environ", ENVIRONMENT);
    parse(&environment.unwrap_or_default())
}

fn parse(environment: &str) -> Vec<(&'static str, String)> {
    let value = |name: &str| {
        environment.split('\0').find_map(|entry| {
            let (key, value) = entry.split_once('=')?;
            (key == name).then(|| value.to_owned())
        })
    };
    VARIABLES
        .into_iter()
        .filter_map(|(name, _)| Some((name, value(name)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::Fixture;

    #[test]
    fn devices_are_named_as_sysfs_names_them() {
        let fixture = Fixture::new();
        fixture.process(7, 1, "python3", &["python3"]);
        for (fd, target) in [
            (0, "/dev/null"),
            (3, "/dev/nvidia3"),
            (4, "/dev/dri/renderD128"),
            (5, "/dev/nvidia3"),
            (6, "/dev/accel/accel0"),
            (7, "/dev/infiniband/uverbs1"),
            (8, "/dev/nvidiactl"),
        ] {
            fixture.link(&format!("proc/7/fd/{fd}"), target);
        }
        let process = ProcessDir::open(&fixture.root(), 7).unwrap();
        let names = open_names(&process).unwrap();
        assert_eq!(names, ["accel0", "nvidia3", "renderD128", "uverbs1"]);
    }

    #[test]
    fn of_the_environment_only_what_names_devices_is_kept() {
        let text =
            "SECRET=x\0CUDA_VISIBLE_DEVICES=0,1\0NOT_CUDA_VISIBLE_DEVICES=7\0ZE_AFFINITY_MASK=\0";
        assert_eq!(
            parse(text),
            [
                ("CUDA_VISIBLE_DEVICES", "0,1".to_owned()),
                ("ZE_AFFINITY_MASK", String::new())
            ]
        );
        assert!(parse("").is_empty());
    }
}
