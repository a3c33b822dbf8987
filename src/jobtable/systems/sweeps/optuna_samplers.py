"""Optuna's samplers, asked so that the answer depends on the records of a sweep alone.

A study is made in memory for each generation: every trial before is told, in the order of the numbers, with what the
sampler noted on it; then the generation is asked for. Optuna's samplers keep what they learn in the study and only
their random state in the process. That state is seeded for each generation, so a process that takes over asks for
exactly what the one before would have asked for.
"""

from __future__ import annotations

import hashlib
import inspect
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from jobtable.errors import TaskError
from jobtable.systems.sweeps.parameters import Choice, FloatRange, IntRange, Params, Value
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
"""Samplers whose trials are points of one sequence, which the seed belongs to."""
_OWN_OPTIONS: dict[str, dict[str, Any]] = {
    "cmaes": {"warn_independent_sampling": False},
    "gp": {"warn_independent_sampling": False},
    "qmc": {"warn_independent_sampling": False, "warn_asynchronous_seeding": False},
}
"""A parameter under a condition is sampled by itself, and every generation is seeded: nothing to warn of."""
_TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "dict[str, Any]": (dict,),
    "None": (type(None),),
}
"""The annotations of arguments that JSON can express, and the Python types of each."""
_STATES = {"completed": TrialState.COMPLETE, "stopped": TrialState.PRUNED, "failed": TrialState.FAIL}


def propose(name: str, options: Mapping[str, Any], question: TrialRequest) -> list[Proposal]:
    """The next generation of trials, as the sampler of that name in Optuna asks for it."""
    with _quiet():
        storage = optuna.storages.InMemoryStorage()
        direction = optuna.study.StudyDirection[question.direction.upper()]
        study_id = storage.create_new_study([direction], "sweep")
        for key, noted in _memory_of_study(question).items():
            storage.set_study_system_attr(study_id, key, noted)
        sampler = _sampler(name, options, question)
        study = optuna.load_study(study_name="sweep", storage=storage, sampler=sampler)
        study.add_trials([_told(ended, question.space) for ended in question.ended])
        for given in question.given:
            study.enqueue_trial({name: _internal(question.space.root[name], value) for name, value in given.items()})
        return [_asked(study, storage, study_id, question.space) for _ in range(question.count)]


def _asked(study: optuna.Study, storage: optuna.storages.BaseStorage, study_id: int, space: Space) -> Proposal:
    trial = study.ask()
    params = space.assemble(lambda name, parameter: _suggested(trial, name, parameter))
    noted = {
        "trial": dict(storage.get_trial(trial._trial_id).system_attrs),
        "study": dict(storage.get_study_system_attrs(study_id)),
    }
    return Proposal(params, {key: value for key, value in noted.items() if value})


def _sampler(name: str, options: Mapping[str, Any], question: TrialRequest) -> optuna.samplers.BaseSampler:
    if (problem := find_problem(name, options)) is not None:
        raise TaskError(problem)
    part = "all" if name in _ONE_SEQUENCE else question.first_number
    digest = hashlib.sha256(f"{question.seed}/{part}".encode()).digest()
    return _made(name, options, int.from_bytes(digest[:4]))


def _made(name: str, options: Mapping[str, Any], seed: int) -> optuna.samplers.BaseSampler:
    sampler: optuna.samplers.BaseSampler = _class(name)(**{**_OWN_OPTIONS.get(name, {}), **options}, seed=seed)
    return sampler


def _class(name: str) -> Any:
    return getattr(optuna.samplers, f"{_CLASSES[name]}Sampler")


def find_problem(name: str, options: Mapping[str, Any]) -> str | None:
    """Why the sampler of that name in Optuna does not take these options, in one line; None if it does."""
    taken = _options_of(name)
    for option, value in options.items():
        if option not in taken:
            return f"the sampler {name} has no option {option}; it takes {', '.join(sorted(taken))}"
        if not any(_is_of(value, kind) for kind in taken[option]):
            return f"the option {option} of the sampler {name} is of {' or '.join(taken[option])}, not {value!r:.100}"
    try:
        with _quiet():
            _made(name, options, 0)
    except ValueError as error:
        return f"the sampler {name} cannot be made with {dict(options)}: {' '.join(str(error).split())}"
    return None


def _options_of(name: str) -> dict[str, list[str]]:
    """The sampler's arguments, with the types of each, but for those that JSON cannot say, such as functions."""
    arguments = inspect.signature(_class(name)).parameters.values()
    types = {argument.name: str(argument.annotation).split(" | ") for argument in arguments if argument.name != "seed"}
    return {option: kinds for option, kinds in types.items() if all(kind in _TYPES for kind in kinds)}


def _is_of(value: Any, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "bool" or not isinstance(value, bool))


def _told(ended: EndedTrial, space: Space) -> FrozenTrial:
    parameters = {name: space.root[name] for name in ended.params}
    return optuna.create_trial(
        state=_STATES[ended.ending],
        value=_last(ended.reports) if ended.ending == "stopped" else ended.value,
        params={name: _internal(parameters[name], value) for name, value in ended.params.items()},
        distributions={name: _distribution(parameter) for name, parameter in parameters.items()},
        intermediate_values=dict(ended.reports),
        system_attrs=dict(ended.memory.get("trial", {})),
    )


def _last(reports: Mapping[int, float]) -> float | None:
    return reports[max(reports)] if reports else None


def _memory_of_study(question: TrialRequest) -> Params:
    """What the sampler has noted on the study by the last trial."""
    return dict(question.ended[-1].memory.get("study", {})) if question.ended else {}


def _distribution(parameter: Choice | IntRange | FloatRange) -> BaseDistribution:
    match parameter:
        case Choice():
            # By their place: a choice may hold any JSON, and Optuna takes only plain values.
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
    """Without messages about new studies or experimental samplers: whoever names one has chosen it."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(level)
