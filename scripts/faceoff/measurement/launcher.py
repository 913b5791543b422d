"""Starts one process a rank, with the environment that torchrun and TensorFlow's resolvers expect."""

import ctypes
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

CPU_THREADS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
)
SUPERVISOR = "FACEOFF_SUPERVISOR"
CPU_CORE = "FACEOFF_CPU_CORE"


def rank_environments(cores: Sequence[int], gpus: Sequence[str], ports: Sequence[int]) -> list[dict[str, str]]:
    """Return what each rank of one node finds in its environment, beside what it inherits.

    `cores` holds a core a rank where there is no GPU, `gpus` the devices of the layout otherwise, `ports` one free
    port a rank and one more.
    """
    size = len(gpus) or len(cores)
    environments = []
    for rank in range(size):
        environment = {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(size),
            "LOCAL_WORLD_SIZE": str(size),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(ports[size]),
            "FACEOFF_DEVICE": "cuda" if gpus else "cpu",
            "CUDA_VISIBLE_DEVICES": ",".join(gpus),
            SUPERVISOR: str(os.getpid()),
        }
        if not gpus:
            environment |= dict.fromkeys(CPU_THREADS, "1") | {CPU_CORE: str(cores[rank])}
        if size > 1:
            workers = [f"127.0.0.1:{port}" for port in ports[:size]]
            task = {"type": "worker", "index": rank}
            environment["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": task})
        environments.append(environment)
    return environments


def start_ranks(
    command: Sequence[str], environments: Sequence[dict[str, str]], directory: Path
) -> list[subprocess.Popen]:
    """Start the ranks, each in a session of its own. Their output goes where this process's output goes."""
    ranks = []
    for environment in environments:
        inherited = {key: value for key, value in os.environ.items() if key != "TF_CONFIG"}
        launched = {"FACEOFF_LAUNCHED": repr(time.time()), "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONUNBUFFERED": "1"}
        ranks.append(
            subprocess.Popen(
                [*command, "--segment", str(directory)],
                env={**inherited, **launched, **environment},
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        )
    return ranks


def stop_ranks(ranks: Sequence[subprocess.Popen], grace_s: float = 5.0) -> None:
    """End ranks that still run: SIGTERM, then SIGKILL to their whole process group."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        for rank in ranks:
            if rank.poll() is None:
                _signal_group(rank.pid, sign)
        deadline = time.monotonic() + grace_s
        for rank in ranks:
            try:
                rank.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                continue
    for rank in ranks:
        rank.wait()


def enter_rank() -> None:
    """Prepare a rank's process before it imports a framework: die with the supervisor, stay on one core.

    Under torchrun or srun, which look after their own processes, only what they do not set is filled in.
    """
    os.environ.setdefault("FACEOFF_LAUNCHED", repr(time.time()))
    os.environ.setdefault("FACEOFF_DEVICE", "cuda" if Path("/dev/nvidiactl").exists() else "cpu")
    supervisor = os.environ.get(SUPERVISOR)
    if supervisor is None:
        return
    pr_set_pdeathsig = 1
    ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != int(supervisor):
        raise SystemExit("the supervisor is gone")
    if CPU_CORE in os.environ:
        os.sched_setaffinity(0, {int(os.environ[CPU_CORE])})


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback interface that are free at this moment."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in sockets]
    finally:
        for sock in sockets:
            sock.close()


def _signal_group(pid: int, sign: signal.Signals) -> None:
    try:
        os.killpg(pid, sign)
    except ProcessLookupError:
        return
