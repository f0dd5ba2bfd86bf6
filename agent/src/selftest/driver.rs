//! Pages that a device's driver allocates for the self-test: buffers on a virtual machine's own GPU.
//!
//! Other drivers are left alone: a real GPU may be in the middle of somebody's work, wake up for this, or reset on a
//! request that it doesn't expect; vgem and vkms allocate nothing within a call, but at the page faults that follow.

use super::sys::PAGE;
use crate::host::root::Root;
use std::fs::{self, File};
use std::io::{Error, Result};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

/// Drivers that a request for a buffer can't harm, as sysfs calls them: virtio-gpu's, and since Linux 5.19 that of its
/// PCI device, which is no other's in this class.
const HARMLESS: [&str; 2] = ["virtio_gpu", "virtio-pci"];

/// The file of a device whose driver may be asked.
///
/// # Errors
/// Why there is none.
pub(super) fn render_node(root: &Root) -> std::result::Result<PathBuf, String> {
    let class = root.sys("class/drm");
    let mut nodes: Vec<String> = fs::read_dir(&class)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with("renderD"))
        .collect();
    nodes.sort_unstable();
    let driver = |node: &str| driver_of(&class.join(node)).unwrap_or_else(|| "unknown".to_owned());
    if let Some(node) = nodes
        .iter()
        .find(|n| HARMLESS.contains(&driver(n).as_str()))
    {
        return Ok(Path::new("/dev/dri").join(node));
    }
    let found: Vec<String> = nodes
        .iter()
        .map(|node| format!("{node} has driver {}", driver(node)))
        .collect();
    let found = if found.is_empty() {
        "this host has no DRM render node".to_owned()
    } else {
        found.join(", ")
    };
    Err(format!(
        "only virtio-gpu is asked for a buffer, real devices are left alone; {found}"
    ))
}

fn driver_of(node: &Path) -> Option<String> {
    let driver = fs::read_link(node.join("device/driver")).ok()?;
    Some(driver.file_name()?.to_str()?.to_owned())
}

/// `struct drm_virtgpu_resource_create` of the kernel's uapi.
#[repr(C)]
#[derive(Default)]
struct ResourceCreate {
    target: u32,
    format: u32,
    bind: u32,
    width: u32,
    height: u32,
    depth: u32,
    array_size: u32,
    last_level: u32,
    samples: u32,
    flags: u32,
    handle: u32,
    resource: u32,
    size: u32,
    stride: u32,
}

/// `DRM_IOWR(DRM_COMMAND_BASE + DRM_VIRTGPU_RESOURCE_CREATE, …)`: read and write, its size, `d`, its number.
const RESOURCE_CREATE: u64 =
    3 << 30 | (size_of::<ResourceCreate>() as u64) << 16 | (b'd' as u64) << 8 | 0x44;

/// A plain picture of two dimensions, which every host of virtual machines knows.
const TEXTURE_2D: u32 = 2;
const BGRA_8888: u32 = 1;
const RENDER_TARGET: u32 = 2;
const BYTES_OF_A_PIXEL: usize = 4;

/// The open device; its buffers go with it.
pub(super) struct Device(File);

impl Device {
    pub(super) fn open(node: &Path) -> Result<Self> {
        File::options().read(true).write(true).open(node).map(Self)
    }

    /// Has the driver allocate a buffer of so many pages; where, the caller's memory policy says.
    pub(super) fn allocate(&self, pages: usize) -> Result<()> {
        let number = |n: usize| u32::try_from(n).map_err(Error::other);
        let mut request = ResourceCreate {
            target: TEXTURE_2D,
            format: BGRA_8888,
            bind: RENDER_TARGET,
            width: number(PAGE / BYTES_OF_A_PIXEL)?,
            height: number(pages)?,
            depth: 1,
            array_size: 1,
            size: number(pages * PAGE)?,
            ..ResourceCreate::default()
        };
        // SAFETY: the kernel reads and writes one such structure.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), RESOURCE_CREATE, &raw mut request) };
        if done != 0 {
            return Err(Error::last_os_error());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fixture::Fixture;

    fn found(nodes: &[(&str, &str)]) -> std::result::Result<PathBuf, String> {
        let fixture = Fixture::new();
        for (node, driver) in nodes {
            let link = format!("sys/class/drm/{node}/device/driver");
            fixture.link(&link, &format!("../../bus/drivers/{driver}"));
        }
        render_node(&fixture.root())
    }

    #[test]
    fn a_virtual_machines_gpu_is_asked_and_no_other() {
        let node = |name: &str| Ok(Path::new("/dev/dri").join(name));
        for nodes in [
            &[("renderD128", "virtio_gpu")][..],
            &[("renderD128", "virtio-pci"), ("card0", "virtio-pci")],
        ] {
            assert_eq!(found(nodes), node("renderD128"));
        }
        let both = [("renderD128", "amdgpu"), ("renderD129", "virtio_gpu")];
        assert_eq!(found(&both), node("renderD129"));
    }

    #[test]
    fn who_is_left_alone_is_named() {
        let word = "only virtio-gpu is asked for a buffer, real devices are left alone; ";
        for (nodes, found_there) in [
            (&[][..], "this host has no DRM render node"),
            (
                &[("card0", "virtio-pci")],
                "this host has no DRM render node",
            ),
            (
                &[("renderD128", "i915"), ("renderD129", "nvidia")],
                "renderD128 has driver i915, renderD129 has driver nvidia",
            ),
        ] {
            assert_eq!(found(nodes), Err(format!("{word}{found_there}")));
        }
    }
}
