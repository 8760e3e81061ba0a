"""Where cgroups can be made, in the layouts of both versions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from longshore.sandbox.cgroups import CgroupParents, find_cgroups, process_namespace, read_parents
from longshore.sandbox.launch import Limits


def lay_out(folder: Path, groups: dict[str, str], cgroup: str, mountinfo: str) -> Path:
    """A folder of /proc, and the mounted hierarchies. The names of groups have the controllers of their children."""
    for name, controllers in groups.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "cgroup.subtree_control").write_text(controllers)
        (folder / name / "cgroup.procs").touch()
    (folder / "cgroup").write_text(cgroup)
    (folder / "mountinfo").write_text(mountinfo.replace("TOP", str(folder / "top")))
    return folder


VERSION_2 = "30 20 0:26 / TOP rw,nosuid - cgroup2 cgroup2 rw\n"


def test_version_2_uses_the_nearest_group_whose_children_have_controllers(tmp_path: Path) -> None:
    groups = {
        "top": "cpu memory pids",
        "top/user.slice": "cpu io memory pids",
        "top/user.slice/app.slice": "memory pids",
        "top/user.slice/app.slice/server.scope": "",
    }
    process = lay_out(tmp_path, groups, "0::/user.slice/app.slice/server.scope\n", VERSION_2)
    parents = read_parents(str(process))
    assert parents == CgroupParents(2, ((f"{tmp_path}/top/user.slice/app.slice", ("pids", "memory")),))
    assert parents.controllers == {"memory", "pids"}


def test_version_2_shown_in_part_is_not_left_upwards(tmp_path: Path) -> None:
    """In a container the mount shows the container's own group, under another name."""
    mountinfo = "30 20 0:26 /docker/1 TOP rw - cgroup2 cgroup2 rw\n"
    process = lay_out(tmp_path, {"top": "pids", "top/inner": ""}, "0::/docker/1/inner\n", mountinfo)
    assert read_parents(str(process)) == CgroupParents(2, ((f"{tmp_path}/top", ("pids",)),))
    assert read_parents(str(lay_out(tmp_path, {}, "0::/elsewhere\n", mountinfo))) is None


def test_version_1_is_used_where_version_2_has_no_controllers(tmp_path: Path) -> None:
    mounts = VERSION_2.replace("TOP", "TOP/unified")
    mounts += "".join(f"31 20 0:27 / TOP/{name} rw - cgroup cgroup rw,{name}\n" for name in ("memory", "pids", "blkio"))
    groups = {"top/unified": "hugetlb", "top/memory/own": "", "top/pids": "", "top/blkio": ""}
    cgroup = "8:pids:/\n4:memory:/own\n5:blkio:/\n1:name=systemd:/\n0::/\n"
    parents = read_parents(str(lay_out(tmp_path, groups, cgroup, mounts)))
    top = f"{tmp_path}/top"
    assert parents == CgroupParents(1, ((f"{top}/pids", ("pids",)), (f"{top}/memory/own", ("memory",))))


def test_without_the_controller_of_processes_there_are_none(tmp_path: Path) -> None:
    mounts = "31 20 0:27 / TOP/memory rw - cgroup cgroup rw,memory\n"
    process = lay_out(tmp_path, {"top/memory": ""}, "4:memory:/\n", mounts)
    assert read_parents(str(process)) is None


def test_a_folder_that_is_no_cgroup_is_no_limit(tmp_path: Path) -> None:
    parents = CgroupParents(2, ((str(tmp_path), ("pids",)),))
    with pytest.raises(FileNotFoundError):
        parents.make("x", Limits())
    assert list(tmp_path.iterdir()) == []


def test_groups_of_servers_that_have_ended_are_deleted() -> None:
    parents = find_cgroups()
    assert isinstance(parents, CgroupParents), parents
    folder = Path(parents.folders[0][0])
    namespace = process_namespace()
    gone = folder / f"longshore-4194305-{namespace}-0-x"
    left = [
        folder / f"longshore-{os.getpid()}-{namespace}-test",
        folder / f"longshore-4194305-{namespace + 1}-0-of-another-container",
        folder / "longshore-x",
    ]
    for path in (gone, *left):
        path.mkdir()
    try:
        parents.sweep()
        assert [path.exists() for path in (gone, *left)] == [False, True, True, True]
    finally:
        for path in left:
            path.rmdir()
