"""Optuna's samplers, used so that proposals depend only on the records of a sweep.

Each generation makes a study in memory, adds every earlier trial in the order of the numbers, with the notes of the
sampler, and then asks for the generation. Optuna's samplers keep what they learn in the study, and only their random
state in the process. That state is seeded for each generation, so any process makes the same proposals.
"""

from __future__ import annotations

import hashlib
import inspect
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from jobtable.errors import TaskError
from jobtable.systems.sweeps.parameters import Choice, FloatRange, IntRange, Value
from jobtable.systems.sweeps.samplers import EndedTrial, Proposal, TrialRequest
from jobtable.systems.sweeps.space import Space

try:
    import optuna
    from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
    from optuna.trial import FrozenTrial, TrialState
except ModuleNotFoundError as missing:
    raise TaskError("Optuna's samplers need the extra 'sweeps': pip install 'jobtable[sweeps]'") from missing

_CLASSES = {"tpe": "TPE", "cmaes": "CmaEs", "gp": "GP", "qmc": "QMC", "nsgaii": "NSGAII"}
_ONE_SEQUENCE = frozenset({"qmc"})
"""Samplers whose trials are points of one sequence with one seed."""
_OWN_OPTIONS: dict[str, dict[str, Any]] = {
    "cmaes": {"warn_independent_sampling": False},
    "gp": {"warn_independent_sampling": False},
    "qmc": {"warn_independent_sampling": False, "warn_asynchronous_seeding": False},
}
"""Not worth a warning: a parameter with a condition is sampled by itself, and every generation is seeded."""
_TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "dict[str, Any]": (dict,),
    "None": (type(None),),
}
"""The annotations that JSON can express, and their Python types."""
_STATES = {"completed": TrialState.COMPLETE, "stopped": TrialState.PRUNED, "failed": TrialState.FAIL}


def propose(name: str, options: Mapping[str, Any], request: TrialRequest) -> list[Proposal]:
    """Return the proposals of one of Optuna's samplers for the next generation."""
    with _quiet():
        storage = optuna.storages.InMemoryStorage()
        direction = optuna.study.StudyDirection[request.direction.upper()]
        study_id = storage.create_new_study([direction], "sweep")
        noted_last = request.ended[-1].memory.get("study", {}) if request.ended else {}
        for key, noted in noted_last.items():
            storage.set_study_system_attr(study_id, key, noted)
        sampler = _sampler(name, options, request)
        study = optuna.load_study(study_name="sweep", storage=storage, sampler=sampler)
        study.add_trials([_as_frozen(ended, request.space) for ended in request.ended])
        for given in request.given:
            study.enqueue_trial({name: _internal(request.space.root[name], value) for name, value in given.items()})
        return [_asked(study, storage, study_id, request.space) for _ in range(request.count)]


def _asked(study: optuna.Study, storage: optuna.storages.BaseStorage, study_id: int, space: Space) -> Proposal:
    trial = study.ask()
    params = space.assemble(lambda name, parameter: _suggested(trial, name, parameter))
    noted = {
        "trial": dict(storage.get_trial(trial._trial_id).system_attrs),
        "study": dict(storage.get_study_system_attrs(study_id)),
    }
    return Proposal(params, {key: value for key, value in noted.items() if value})


def _sampler(name: str, options: Mapping[str, Any], request: TrialRequest) -> optuna.samplers.BaseSampler:
    if (problem := find_problem(name, options)) is not None:
        raise TaskError(problem)
    part = "all" if name in _ONE_SEQUENCE else request.first_number
    digest = hashlib.sha256(f"{request.seed}/{part}".encode()).digest()
    return _made(name, options, int.from_bytes(digest[:4]))


def _made(name: str, options: Mapping[str, Any], seed: int) -> optuna.samplers.BaseSampler:
    sampler: optuna.samplers.BaseSampler = _class(name)(**{**_OWN_OPTIONS.get(name, {}), **options}, seed=seed)
    return sampler


def _class(name: str) -> Any:
    return getattr(optuna.samplers, f"{_CLASSES[name]}Sampler")


def find_problem(name: str, options: Mapping[str, Any]) -> str | None:
    """Return why one of Optuna's samplers rejects these options, in one line, or None."""
    taken = _options_of(name)
    for option, value in options.items():
        if option not in taken:
            return f"sampler {name} has no option {option}; it has {', '.join(sorted(taken))}"
        if not any(_is_of(value, kind) for kind in taken[option]):
            return f"option {option} of sampler {name} must be {' or '.join(taken[option])}, not {value!r:.100}"
    try:
        with _quiet():
            _made(name, options, 0)
    except ValueError as error:
        return f"sampler {name} rejects {dict(options)}: {' '.join(str(error).split())}"
    return None


def _options_of(name: str) -> dict[str, list[str]]:
    """Return the arguments of a sampler and their types, except those that JSON cannot express, such as functions."""
    arguments = inspect.signature(_class(name)).parameters.values()
    types = {argument.name: str(argument.annotation).split(" | ") for argument in arguments if argument.name != "seed"}
    return {option: kinds for option, kinds in types.items() if all(kind in _TYPES for kind in kinds)}


def _is_of(value: Any, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "bool" or not isinstance(value, bool))


def _as_frozen(ended: EndedTrial, space: Space) -> FrozenTrial:
    parameters = {name: space.root[name] for name in ended.params}
    last = ended.reports[max(ended.reports)] if ended.reports else None
    return optuna.create_trial(
        state=_STATES[ended.ending],
        value=last if ended.ending == "stopped" else ended.value,
        params={name: _internal(parameters[name], value) for name, value in ended.params.items()},
        distributions={name: _distribution(parameter) for name, parameter in parameters.items()},
        intermediate_values=dict(ended.reports),
        system_attrs=dict(ended.memory.get("trial", {})),
    )


def _distribution(parameter: Choice | IntRange | FloatRange) -> BaseDistribution:
    match parameter:
        case Choice():
            # By index: a choice may contain any JSON, and Optuna accepts only plain values.
            return CategoricalDistribution(range(len(parameter.values)))
        case IntRange():
            return IntDistribution(parameter.low, parameter.last, log=parameter.log, step=parameter.step)
        case FloatRange():
            return FloatDistribution(parameter.low, parameter.last, log=parameter.log, step=parameter.step)


def _internal(parameter: Choice | IntRange | FloatRange, value: Any) -> Any:
    return parameter.index(value) if isinstance(parameter, Choice) else value


def _suggested(trial: optuna.Trial, name: str, parameter: Choice | IntRange | FloatRange) -> Value:
    match parameter:
        case Choice():
            return parameter.values[trial.suggest_categorical(name, range(len(parameter.values)))]
        case IntRange():
            return trial.suggest_int(name, parameter.low, parameter.last, log=parameter.log, step=parameter.step)
        case FloatRange():
            value = trial.suggest_float(name, parameter.low, parameter.last, log=parameter.log, step=parameter.step)
            return parameter.nearest(value)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress messages about new studies and experimental samplers: the caller chose them by name."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(level)
