/** States of runs and steps. In a separate file, because the console needs them before the schemas of runs. */

/** The states of a run. */
export const RUN_STATES = ['RUN_STARTED', 'RUN_SUCCESS', 'RUN_FAILED', 'RUN_CANCELED'] as const

/** The states of a step. */
export const STEP_STATES = ['STEP_PROGRESS', 'STEP_SUCCESS', 'STEP_RETRY', 'STEP_FAILED', 'STEP_CANCELED'] as const
