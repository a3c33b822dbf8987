"""Workers as instances: the machines they run on, and signs that they are alive."""

from __future__ import annotations

import os
import platform
import socket
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from jobtable.clock import Clock
from jobtable.errors import NotFoundError
from jobtable.jobs.stored.entities import Instance
from jobtable.jobs.stored.field_types import Health, InstanceStatus
from jobtable.jobs.verbs import InstanceVerbs
from jobtable.store import Store

_KEPT = timedelta(days=90)
_NVIDIA = Path("/proc/driver/nvidia/gpus")
_SOMEWHERE = ("192.0.2.1", 9)
"""An address reserved for documentation: connecting a datagram socket to it sends nothing but reveals our own."""


def seen_until(clock: Clock) -> int:
    """Return until when a worker that ends now stays listed: every start of a worker leaves a record."""
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
        """Return what the machine knows of itself, which is not its zone, nor whether it is a spot instance."""
        return InstanceInfo(
            instance_type=f"{platform.system().lower()}-{platform.machine()}-{os.cpu_count() or 1}cpu",
            gpu_count=len(list(_NVIDIA.iterdir())) if _NVIDIA.is_dir() else 0,
            ip_address=_own_address(),
        )


class Instances(InstanceVerbs):
    """The Instance items of workers."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def register(self, instance: Instance) -> None:
        self._store.put(instance)

    def beat(self, instance: Instance) -> None:
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
        stopped = {"status": InstanceStatus.STOPPED, "health_status": Health.UNKNOWN}
        self._store.put(instance.model_copy(update={**stopped, "time_to_live": seen_until(self._store.clock)}))


def new_instance(
    clock: Clock, info: InstanceInfo, *, queues: Sequence[str], slots: int, lease_seconds: float
) -> Instance:
    """Return a worker of this process, which starts now, as an instance."""
    return Instance(
        instance_id=f"{platform.node() or 'worker'}-{os.getpid()}-{uuid.uuid4().hex[:8]}",
        **vars(info),
        status=InstanceStatus.RUNNING,
        launched_at=clock.now(),
        health_status=Health.HEALTHY,
        queues=list(queues),
        slots=slots,
        lease_seconds=lease_seconds,
    )


def _own_address() -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_SOMEWHERE)
        except OSError:
            return None  # without a network
        address: str = probe.getsockname()[0]
        return address
