"""The routes that workers read for the trials that they hold."""

from jobtable.systems.sweeps.web.trial_api import get_earlier_runs, get_sweep_of_job, list_others_at_rung

FOR_WORKERS = (get_earlier_runs, get_sweep_of_job, list_others_at_rung)
