use super::*;
use crate::host::fixture::Fixture;

const NODE: &str = "devices/system/node";

fn node(fixture: &Fixture, id: NodeId, cpus: &str, kib: u64, distance: &str) {
    let file = |name: &str, content: &str| {
        fixture.file(&format!("sys/{NODE}/node{id}/{name}"), content);
    };
    file("cpulist", &format!("{cpus}\n"));
    file(
        "meminfo",
        &format!(
            "Node {id} MemTotal:       {kib} kB\nNode {id} MemFree:        {} kB\n",
            kib / 2
        ),
    );
    file("distance", &format!("{distance}\n"));
    file(
        "numastat",
        "numa_hit 5\nnuma_miss 4\nnuma_foreign 3\ninterleave_hit 9\nlocal_node 2\nother_node 1\n",
    );
}

fn package(fixture: &Fixture, cpu: u32, id: i32) {
    fixture.file(
        &format!("sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"),
        &format!("{id}\n"),
    );
}

fn sparse() -> Fixture {
    let fixture = Fixture::with(&[
        ("sys/devices/system/cpu/online", "0-2,4\n"),
        ("sys/devices/system/node/online", "0,2,8\n"),
    ]);
    node(&fixture, 0, "0-1", 1000, "10 21 28");
    node(&fixture, 2, "2-4", 0, "21 10 17");
    node(&fixture, 8, "", 2000, "28 17 10");
    package(&fixture, 0, 0);
    package(&fixture, 2, 1);
    fixture
}

#[test]
fn sparse_ids_keep_their_distances() {
    let topology = read_topology(&sparse().root());
    let ids: Vec<NodeId> = topology.nodes.iter().map(|n| n.id).collect();
    assert_eq!(ids, [0, 2, 8]);
    assert_eq!(topology.distance(0, 8), Some(28));
    assert_eq!(topology.distance(8, 2), Some(17));
}

#[test]
fn a_memory_only_node_has_no_cpus_and_counts_to_the_nearest_socket() {
    let topology = read_topology(&sparse().root());
    let node = topology.node(8).unwrap();
    assert_eq!((node.cpus.as_slice(), node.socket), (&[][..], None));
    assert_eq!(node.memory_total_bytes, Some(2000 * 1024));
    assert_eq!(node.memory_free_bytes, Some(1000 * 1024));
    assert_eq!(topology.socket_of(8), Some(1));
}

#[test]
fn a_cpu_only_node_has_zero_memory() {
    let topology = read_topology(&sparse().root());
    assert_eq!(topology.node(2).unwrap().memory_total_bytes, Some(0));
}

#[test]
fn an_offline_cpu_is_in_no_node() {
    let topology = read_topology(&sparse().root());
    assert_eq!(topology.node(2).unwrap().cpus, [2, 4]);
}

#[test]
fn numastat_has_the_kernels_five_counters() {
    let topology = read_topology(&sparse().root());
    assert_eq!(
        topology.node(0).unwrap().numastat,
        Some(NumaStat {
            hit: 5,
            miss: 4,
            foreign: 3,
            local: 2,
            other: 1
        })
    );
}

#[test]
fn an_unknown_package_is_no_socket() {
    let fixture = sparse();
    package(&fixture, 0, -1);
    package(&fixture, 2, -1);
    let topology = read_topology(&fixture.root());
    assert_eq!(topology.sockets(), None);
}

#[test]
fn a_kernel_without_numa_is_one_node() {
    let fixture = Fixture::with(&[
        ("sys/devices/system/cpu/online", "0-1\n"),
        (
            "proc/meminfo",
            "MemTotal:        4096 kB\nMemFree:         1024 kB\n",
        ),
    ]);
    let topology = read_topology(&fixture.root());
    assert_eq!(topology.nodes.len(), 1);
    let node = &topology.nodes[0];
    assert_eq!((node.id, node.cpus.as_slice()), (0, &[0, 1][..]));
    assert_eq!(node.memory_total_bytes, Some(4096 * 1024));
    assert_eq!(topology.distance(0, 0), Some(LOCAL_DISTANCE));
    assert_eq!(node.numastat, None);
    assert_eq!(topology.nodes_reason, None);
}

#[test]
fn a_host_whose_files_are_masked_says_which() {
    let stat = (
        "proc/stat",
        "cpu  9 9 9 9 9 9 9 9\ncpu0 1 1 1 1\ncpu3 1 1 1 1\nintr 1\n",
    );
    let online = ("sys/devices/system/cpu/online", "0,3\n");
    let entry = ("sys/devices/system/node/possible", "0-1\n");
    let no_nodes = "devices/system/node has no nodes";
    for (what, files, cpus, wants) in [
        (
            "no sysfs",
            &[][..],
            &[][..],
            &["cpu/online", "can't read"][..],
        ),
        ("no nodes", &[online, entry], &[0, 3], &[no_nodes]),
        (
            "no CPUs, no nodes",
            &[stat, entry],
            &[0, 3],
            &["cpu/online", no_nodes],
        ),
    ] {
        let topology = read_topology(&Fixture::with(files).root());
        let [node] = topology.nodes.as_slice() else {
            panic!("{what}: {topology:?}");
        };
        assert_eq!((node.id, node.cpus.as_slice()), (0, cpus), "{what}");
        let why = topology.hides_nodes().unwrap();
        assert!(wants.iter().all(|want| why.contains(want)), "{what}: {why}");
    }
}

#[test]
fn masked_cpus_are_the_nodes_that_proc_stat_has() {
    let fixture = sparse();
    fixture.unreadable("sys/devices/system/cpu/online");
    let cpus = |fixture: &Fixture| {
        let topology = read_topology(&fixture.root());
        let why = topology.nodes_reason.unwrap();
        assert!(why.contains("devices/system/cpu/online"), "{why}");
        assert!(!topology.nodes_hidden);
        topology
            .nodes
            .into_iter()
            .flat_map(|n| n.cpus)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        cpus(&fixture),
        [0, 1, 2, 3, 4],
        "nothing tells which are online"
    );
    fixture.file("proc/stat", "cpu0 1\ncpu1 1\ncpu2 1\ncpu4 1\n");
    assert_eq!(cpus(&fixture), [0, 1, 2, 4]);
}

#[test]
fn an_empty_file_is_masked_and_no_list_without_numbers() {
    let cpus = |fixture: &Fixture, masked: &str| {
        fixture.file(masked, "");
        let topology = read_topology(&fixture.root());
        let why = topology.nodes_reason.unwrap_or_default();
        let path = masked.strip_prefix("sys/").unwrap();
        let want = format!("{path}: is empty: is something mounted over it?");
        assert!(why.contains(&want), "{why}");
        let cpus = |node: Node| (node.id, node.cpus);
        topology.nodes.into_iter().map(cpus).collect::<Vec<_>>()
    };
    let memory_only = (8, vec![]);
    assert_eq!(
        cpus(&sparse(), "sys/devices/system/cpu/online"),
        [(0, vec![0, 1]), (2, vec![2, 3, 4]), memory_only.clone()]
    );
    assert_eq!(
        cpus(&sparse(), "sys/devices/system/node/node0/cpulist"),
        [(2, vec![2, 4]), memory_only.clone()]
    );
    assert_eq!(
        cpus(&sparse(), "sys/devices/system/node/online"),
        [(0, vec![0, 1]), (2, vec![2, 4]), memory_only]
    );
}

#[test]
fn a_nodes_empty_file_is_a_reason_and_the_node_stays() {
    for file in ["meminfo", "distance", "numastat"] {
        let fixture = sparse();
        let path = format!("devices/system/node/node2/{file}");
        fixture.file(&format!("sys/{path}"), "");
        let topology = read_topology(&fixture.root());
        assert_eq!(topology.nodes.len(), 3);
        let why = topology.nodes_reason.unwrap_or_default();
        let want = format!("{path}: is empty: is something mounted over it?");
        assert!(why.contains(&want), "{why}");
    }
}

#[test]
fn nodes_are_their_folders_where_the_list_is_missing() {
    let fixture = sparse();
    fixture.unreadable("sys/devices/system/node/online");
    let topology = read_topology(&fixture.root());
    let ids: Vec<NodeId> = topology.nodes.iter().map(|n| n.id).collect();
    assert_eq!(ids, [0, 2, 8]);
    assert!(topology.nodes_reason.unwrap().contains("node/online"));
}

#[test]
fn the_only_node_that_can_be_read_hides_the_others() {
    let fixture = sparse();
    for (other, hidden) in [(2, false), (8, true)] {
        fixture.unreadable(&format!("sys/devices/system/node/node{other}/cpulist"));
        assert_eq!(read_topology(&fixture.root()).nodes_hidden, hidden);
    }
}
