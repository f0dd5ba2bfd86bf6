//! Which devices a process uses, from what NVML, its open files and its environment tell.

use crate::devices::{Device, DeviceKind, DeviceUse, DeviceUseSource};

/// Variables that say which devices a process may see, and whose devices they count.
pub const VARIABLES: [(&str, &str); 4] = [
    ("CUDA_VISIBLE_DEVICES", "NVIDIA"),
    ("HIP_VISIBLE_DEVICES", "AMD"),
    ("ROCR_VISIBLE_DEVICES", "AMD"),
    ("ZE_AFFINITY_MASK", "Intel"),
];

/// What is known of a process.
#[derive(Clone, Debug, Default)]
pub struct Told<'a> {
    /// Addresses of the devices on which NVML lists it; `None` where NVML lists nobody.
    pub nvml: Option<Vec<&'a str>>,
    /// Names of its open device files, as in [`Device::files`].
    pub files: Vec<String>,
    /// Values of [`VARIABLES`] that it has.
    pub environment: Vec<(&'a str, String)>,
}

/// The devices, by label, each by the surest that told.
///
/// CUDA opens every GPU that it may see; where NVML lists the process, a file of a GPU on which it isn't listed counts
/// for nothing. The environment is asked only where nothing else told, and of a machine's own order: CUDA may have
/// numbered the devices otherwise.
#[must_use]
pub fn uses(devices: &[Device], told: &Told<'_>) -> Vec<DeviceUse> {
    let listed = |d: &Device| {
        let nvml = told.nvml.as_ref();
        nvml.is_some_and(|addresses| addresses.contains(&d.address.as_str()))
    };
    let open = |d: &Device| d.files.iter().any(|f| told.files.contains(f));
    let anywhere = devices.iter().any(listed);
    let sure = |d: &Device| {
        if listed(d) {
            Some(DeviceUseSource::Nvml)
        } else if open(d) && !(anywhere && d.kind == DeviceKind::Gpu && d.vendor == "NVIDIA") {
            Some(DeviceUseSource::OpenFiles)
        } else {
            None
        }
    };
    let found: Vec<DeviceUse> = devices
        .iter()
        .filter_map(|d| Some(used(d, sure(d)?)))
        .collect();
    if found.iter().any(|u| u.kind.computes()) {
        return found;
    }
    let hinted = hinted(devices, &told.environment);
    let hinted = hinted
        .into_iter()
        .map(|d| used(d, DeviceUseSource::Environment));
    hinted.chain(found).collect()
}

fn used(device: &Device, source: DeviceUseSource) -> DeviceUse {
    DeviceUse {
        address: device.address.clone(),
        kind: device.kind,
        label: device.label.clone(),
        node: device.node,
        source,
    }
}

/// The devices that the variables number; names of other kinds (`GPU-…`, `MIG-…`) tell nothing.
fn hinted<'a>(devices: &'a [Device], environment: &[(&str, String)]) -> Vec<&'a Device> {
    let mut found: Vec<&Device> = Vec::new();
    for (name, value) in environment {
        let Some((_, vendor)) = VARIABLES.iter().find(|(variable, _)| variable == name) else {
            continue;
        };
        let counted: Vec<&Device> = devices
            .iter()
            .filter(|d| d.kind.computes() && d.vendor == *vendor)
            .collect();
        for part in value.split(',') {
            // Level Zero adds a tile: `1.0`. CUDA stops at the first that it can't read.
            let whole = part.trim().split('.').next().unwrap_or_default();
            let number = whole.parse::<usize>().ok();
            let Some(device) = number.and_then(|n| counted.get(n)) else {
                break;
            };
            if !found.iter().any(|d| d.address == device.address) {
                found.push(device);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::label;
    use crate::devices::tests::device;

    /// Two GPUs of NVIDIA, one of AMD, and a NIC.
    fn machine() -> Vec<Device> {
        let with = |address: &str, vendor: &str, kind, node, file: &str| Device {
            vendor: vendor.to_owned(),
            kind,
            node,
            files: vec![file.to_owned()],
            ..device(address)
        };
        let mut devices = vec![
            with(
                "0000:3b:00.0",
                "NVIDIA",
                DeviceKind::Gpu,
                Some(0),
                "nvidia1",
            ),
            with(
                "0000:86:00.0",
                "NVIDIA",
                DeviceKind::Gpu,
                Some(1),
                "nvidia0",
            ),
            with("0000:c1:00.0", "AMD", DeviceKind::Gpu, None, "renderD130"),
            with(
                "0000:c2:00.0",
                "Mellanox",
                DeviceKind::Nic,
                Some(1),
                "uverbs0",
            ),
        ];
        label(&mut devices);
        devices
    }

    #[test]
    fn the_surest_tells() {
        use DeviceUseSource::{Environment, Nvml, OpenFiles};
        type Case<'a> = (
            &'a str,
            Option<&'a [&'a str]>,
            &'a [&'a str],
            &'a [(&'a str, &'a str)],
            &'a [(&'a str, DeviceUseSource)],
        );
        let cases: &[Case<'_>] = &[
            ("nothing", None, &[], &[], &[]),
            (
                "a minor is no label",
                None,
                &["nvidia0"],
                &[],
                &[("GPU1", OpenFiles)],
            ),
            (
                "an open file beats the environment",
                None,
                &["nvidia0"],
                &[("CUDA_VISIBLE_DEVICES", "0")],
                &[("GPU1", OpenFiles)],
            ),
            (
                "NVML says which of the open ones",
                Some(&["0000:86:00.0"]),
                &["nvidia0", "nvidia1", "renderD130"],
                &[],
                &[("GPU1", Nvml), ("GPU2", OpenFiles)],
            ),
            (
                "NVML doesn't know it yet",
                Some(&[]),
                &["nvidia1"],
                &[],
                &[("GPU0", OpenFiles)],
            ),
            (
                "a hint",
                None,
                &["nvidia-uvm"],
                &[("CUDA_VISIBLE_DEVICES", "1,0")],
                &[("GPU1", Environment), ("GPU0", Environment)],
            ),
            (
                "numbers count within a vendor",
                None,
                &["kfd"],
                &[("HIP_VISIBLE_DEVICES", "0"), ("ROCR_VISIBLE_DEVICES", "0")],
                &[("GPU2", Environment)],
            ),
            (
                "names and what isn't there tell nothing",
                None,
                &[],
                &[
                    ("CUDA_VISIBLE_DEVICES", "GPU-5ebe9f43"),
                    ("ZE_AFFINITY_MASK", "0.1"),
                ],
                &[],
            ),
            (
                "CUDA stops at what it can't read",
                None,
                &[],
                &[("CUDA_VISIBLE_DEVICES", "0,-1,1")],
                &[("GPU0", Environment)],
            ),
            (
                "a NIC says nothing of GPUs",
                None,
                &["uverbs0"],
                &[("CUDA_VISIBLE_DEVICES", "0")],
                &[("GPU0", Environment), ("NIC0", OpenFiles)],
            ),
        ];
        let devices = machine();
        for (what, nvml, files, environment, want) in cases {
            let told = Told {
                nvml: nvml.map(<[&str]>::to_vec),
                files: files.iter().map(|f| (*f).to_owned()).collect(),
                environment: environment
                    .iter()
                    .map(|(n, v)| (*n, (*v).to_owned()))
                    .collect(),
            };
            let found = uses(&devices, &told);
            let found: Vec<_> = found.iter().map(|u| (u.label.as_str(), u.source)).collect();
            assert_eq!(found, *want, "{what}");
        }
    }

    #[test]
    fn an_unknown_node_stays_unknown() {
        let told = Told {
            files: vec!["renderD130".to_owned()],
            ..Told::default()
        };
        assert_eq!(uses(&machine(), &told)[0].node, None);
    }
}
