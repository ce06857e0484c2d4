//! How much memory this process may use: what the system has left, and what the control groups leave that it is in. A
//! container with less memory than its machine is killed for more.

use std::path::Path;

/// Where Linux shows control groups: those of the second version there, or in a folder, and memory's of the first in another.
const GROUPS: &str = "/sys/fs/cgroup";

/// The folders of each version, and its files for the limit, for what is used and, in its statistics, for what can be given up.
struct Version {
    folder: &'static str,
    limit: &'static str,
    usage: &'static str,
    inactive: &'static str,
}

const VERSIONS: [Version; 3] = [
    Version { folder: "", limit: "memory.max", usage: "memory.current", inactive: "inactive_file" },
    Version { folder: "unified", limit: "memory.max", usage: "memory.current", inactive: "inactive_file" },
    Version {
        folder: "memory",
        limit: "memory.limit_in_bytes",
        usage: "memory.usage_in_bytes",
        inactive: "total_inactive_file",
    },
];

/// Bytes of memory that this process may still use; `None` where the system doesn't say.
pub(crate) fn usable_bytes() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_groups = left_by_groups(&groups, Path::new(GROUPS));
    super::memory_bytes("MemAvailable").into_iter().chain(of_groups).min()
}

/// What the groups leave that `/proc/self/cgroup` names, and those that they are in. A container may see a group under another
/// path than the one that it has outside, so that what isn't there is no error: its own is the root, then.
fn left_by_groups(groups: &str, root: &Path) -> Option<u64> {
    let paths = groups.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let is_memorys = controllers.is_empty() || controllers.split(',').any(|name| name == "memory");
        is_memorys.then(|| path.trim_start_matches('/'))
    });
    let ancestors = paths.flat_map(|path| Path::new(path).ancestors());
    let root_too = ancestors.chain([Path::new("")]);
    root_too.flat_map(|path| VERSIONS.iter().filter_map(move |version| left(version, root, path))).min()
}

/// What one group leaves.
fn left(version: &Version, root: &Path, path: &Path) -> Option<u64> {
    let group = root.join(version.folder).join(path);
    let read = |file: &str| std::fs::read_to_string(group.join(file)).ok();
    // The second version says `max` where there is no limit, the first a number near the greatest.
    let limit: u64 = read(version.limit)?.trim().parse().ok()?;
    let usage: u64 = read(version.usage)?.trim().parse().ok()?;
    let statistics = read("memory.stat").unwrap_or_default();
    let inactive =
        statistics.lines().find_map(|line| line.strip_prefix(version.inactive)?.trim().parse().ok());
    Some(limit.saturating_sub(usage.saturating_sub(inactive.unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with files, which goes with this.
    struct Groups(std::path::PathBuf);

    impl Groups {
        fn new(name: &str, files: &[(&str, &str)]) -> Groups {
            let root = std::env::temp_dir().join(format!("tile-groups-{}-{name}", std::process::id()));
            for (file, text) in files {
                let file = root.join(file);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, text).unwrap();
            }
            Groups(root)
        }

        fn left(&self, groups: &str) -> Option<u64> {
            left_by_groups(groups, &self.0)
        }
    }

    impl Drop for Groups {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_least_of_a_group_and_those_around_it_counts() {
        let second = Groups::new(
            "second",
            &[
                ("a/memory.max", "1000\n"),
                ("a/memory.current", "300\n"),
                ("a/memory.stat", "anon 100\ninactive_file 200\nfile 250\n"),
                ("a/b/memory.max", "max\n"),
                ("a/b/memory.current", "300\n"),
                ("c/memory.max", "100\n"),
                ("c/memory.current", "400\n"),
            ],
        );
        assert_eq!(second.left("0::/a/b\n"), Some(900));
        assert_eq!(second.left("0::/c\n"), Some(0));
        assert_eq!((second.left("0::/\n"), second.left("")), (None, None));
        let first = Groups::new(
            "first",
            &[
                ("memory/docker/x/memory.limit_in_bytes", "500"),
                ("memory/docker/x/memory.usage_in_bytes", "200"),
                ("memory/docker/x/memory.stat", "inactive_file 7\ntotal_inactive_file 50\n"),
                ("memory/memory.limit_in_bytes", "9223372036854771712"),
                ("memory/memory.usage_in_bytes", "1000"),
            ],
        );
        assert_eq!(first.left("3:cpu:/docker/y\n4:cpuset,memory:/docker/x\n0::/\n"), Some(350));
    }

    /// The group's path is the one that it has outside of the container.
    #[test]
    fn a_container_sees_its_group_at_the_root() {
        let files = [("memory/memory.limit_in_bytes", "500"), ("memory/memory.usage_in_bytes", "200")];
        assert_eq!(Groups::new("container", &files).left("4:memory:/docker/x\n"), Some(300));
    }

    #[test]
    fn no_more_is_usable_than_the_system_has() {
        let available = super::super::memory_bytes("MemTotal");
        assert!(usable_bytes().zip(available).is_none_or(|(usable, all)| usable <= all));
    }
}
