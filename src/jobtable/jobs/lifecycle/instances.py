"""A worker as an instance: what it runs on, and that it is alive."""

from __future__ import annotations

import os
import platform
import socket
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from jobtable.clock import Clock
from jobtable.errors import NotFoundError
from jobtable.jobs.stored.entities import Instance
from jobtable.jobs.stored.fields import Health, InstanceStatus
from jobtable.store import Store

if TYPE_CHECKING:
    from jobtable.jobs.engine import Jobs

_KEPT = timedelta(days=90)
_NVIDIA = Path("/proc/driver/nvidia/gpus")
_SOMEWHERE = ("192.0.2.1", 9)
"""An address that belongs to nobody. Connecting a datagram socket to it sends nothing, but tells our own address."""


def seen_until(clock: Clock) -> int:
    """Until when a worker can be seen that has ended now: a worker leaves a record each time it is started."""
    return int(clock.seconds() + _KEPT.total_seconds())


@dataclass(frozen=True)
class InstanceInfo:
    """The machine that a worker runs on."""

    instance_type: str
    gpu_count: int = 0
    ip_address: str | None = None
    availability_zone: str | None = None
    is_spot: bool = False

    @staticmethod
    def of_this_machine() -> InstanceInfo:
        """What the machine can say of itself; its zone, and whether it is a spot instance, it does not know."""
        return InstanceInfo(
            instance_type=f"{platform.system().lower()}-{platform.machine()}-{os.cpu_count() or 1}cpu",
            gpu_count=len(list(_NVIDIA.iterdir())) if _NVIDIA.is_dir() else 0,
            ip_address=_own_address(),
        )


class Instances:
    """The Instance items of workers."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def register(self, instance: Instance) -> None:
        """Say that a worker is there."""
        self._store.put(instance)

    def beat(self, instance: Instance) -> None:
        """Say that it lives; also where others had taken it for dead, or its item is gone."""
        try:
            self._store.update(
                Instance.key(instance_id=instance.instance_id),
                Instance.heartbeat.add(1),
                Instance.status.set(InstanceStatus.RUNNING),
                Instance.health_status.set(Health.HEALTHY),
                Instance.time_to_live.set(None),
            )
        except NotFoundError:
            self.register(instance)

    def stop(self, instance: Instance) -> None:
        """Say that it has ended in good order."""
        stopped = {"status": InstanceStatus.STOPPED, "health_status": Health.UNKNOWN}
        self._store.put(instance.model_copy(update={**stopped, "time_to_live": seen_until(self._store.clock)}))


class Registration:
    """One worker as an instance, from its start to its end."""

    def __init__(
        self, jobs: Jobs, info: InstanceInfo, *, queues: Sequence[str], slots: int, lease_seconds: float
    ) -> None:
        self._instances = jobs.instances
        self.instance = Instance(
            instance_id=f"{platform.node() or 'worker'}-{os.getpid()}-{uuid.uuid4().hex[:8]}",
            instance_type=info.instance_type,
            gpu_count=info.gpu_count,
            status=InstanceStatus.RUNNING,
            launched_at=jobs.clock.now(),
            ip_address=info.ip_address,
            availability_zone=info.availability_zone,
            is_spot=info.is_spot,
            health_status=Health.HEALTHY,
            queues=list(queues),
            slots=slots,
            lease_seconds=lease_seconds,
        )

    def register(self) -> None:
        """Say that the worker is there."""
        self._instances.register(self.instance)

    def beat(self) -> None:
        """Say that it lives."""
        self._instances.beat(self.instance)

    def stop(self) -> None:
        """Say that it has ended in good order."""
        self._instances.stop(self.instance)


def _own_address() -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_SOMEWHERE)
        except OSError:
            return None  # this machine is on no network
        address: str = probe.getsockname()[0]
        return address
