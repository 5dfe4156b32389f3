import { define, type None } from './entry.js'

/** Errors of workflow runs and bulk actions. */
export const workflowErrors = {
  run_ended: define<{ runId: string; state: string }>({
    status: 400,
    text: ({ runId, state }) =>
      `The workflow run "${runId}" has ended (${state}), so no step can be added to it. Trigger a new run instead.`,
  }),
  run_unknown: define<{ runId: string }>({
    status: 400,
    text: ({ runId }) =>
      `There is no workflow run "${runId}", so no step can be added to it. Trigger it first, or check the id.`,
  }),
  step_refused: define<{ problem: string }>({
    // Not 400: SDKs would consider the run ended and report nothing. With 412 the run fails and shows this text.
    status: 412,
    text: ({ problem }) => problem,
  }),
  run_not_found: define<{ runId: string }>({
    status: 404,
    text: ({ runId }) => `There is no workflow run "${runId}". GET /v2/workflows/logs lists the runs of this account.`,
  }),
  webhook_not_found: define<None>({
    status: 404,
    // The caller has no credentials, so the text does not reveal which of the two is the case.
    text: () =>
      'There is no webhook at this address, or its run has ended. Use the whole webhookUrl that context.createWebhook returned.',
  }),
  run_events_full: define<{ runId: string }>({
    status: 429,
    retry: 'later',
    text: ({ runId }) =>
      `The workflow run "${runId}" has reached the limit of stored events that it does not wait for yet: 1,000 events or 16 MiB. Send the event again when the run has consumed some.`,
  }),
  run_not_active: define<{ runId: string; state: string }>({
    status: 404,
    text: ({ runId, state }) =>
      `The workflow run "${runId}" has ended (${state}), so its list of steps is no longer available. GET /v2/workflows/logs?workflowRunId=${runId} shows what it did.`,
  }),
  run_already_ended: define<{ runId: string; state: string }>({
    status: 409,
    text: ({ runId, state }) =>
      `The workflow run "${runId}" has already ended (${state}) and cannot be cancelled. GET /v2/workflows/logs?workflowRunId=${runId} shows what it did.`,
  }),
  run_not_pausable: define<{ runId: string; state: string }>({
    status: 409,
    text: ({ runId, state }) =>
      `The workflow run "${runId}" has ended (${state}), so it can neither be paused nor resumed. To continue a failed run, use POST /v2/workflows/dlq/resume; to repeat one, POST /v2/workflows/runs/${runId}/restart.`,
  }),
  restart_refused: define<{ runId: string; problem: string }>({
    status: 409,
    text: ({ runId, problem }) => `The workflow run "${runId}" cannot be restarted this way: ${problem}.`,
  }),
  callback_refused: define<{ runId: string; state: string; needed: string }>({
    status: 400,
    text: ({ runId, state, needed }) =>
      `The failure function of the workflow run "${runId}" is in state ${state}, but this operation requires ${needed}. GET /v2/workflows/logs?workflowRunId=${runId} shows its progress.`,
  }),
  bulk_action_not_found: define<{ actionId: string }>({
    status: 404,
    text: ({ actionId }) =>
      `There is no bulk action ${actionId}. GET /v2/workflows/bulkActions lists the bulk actions of this account.`,
  }),
  too_many_progress_readers: define<{ most: number }>({
    status: 429,
    retry: 'later',
    text: ({ most }) =>
      `This account has ${most} streams of bulk actions open, which is the limit. Close one of them, or send the request without \`Accept: text/event-stream\`.`,
  }),
  saved_selector_not_found: define<{ name: string }>({
    status: 404,
    text: ({ name }) =>
      `There is no saved selector "${name}". GET /v2/workflows/bulkSelectors lists those of this account.`,
  }),
  bulk_action_refused: define<{ actionId: string; state: string; act: string }>({
    status: 409,
    text: ({ actionId, state, act }) =>
      `The bulk action ${actionId} is ${state}, so it cannot be ${act}. GET /v2/workflows/bulkActions/${actionId} shows its progress.`,
  }),
  undo_refused: define<{ what: 'run' | 'message'; id: string; problem: string }>({
    status: 409,
    text: ({ what, id, problem }) =>
      what === 'run'
        ? `The run ${id} cannot be brought back. ${problem} Read its log with GET /v2/workflows/logs?workflowRunId=${id}.`
        : `The message ${id} cannot be brought back. ${problem} Read its log with GET /v2/logs?messageId=${id}.`,
  }),
  run_fenced: define<{ runId: string; actionId: string; until: string }>({
    status: 409,
    text: ({ runId, actionId, until }) =>
      `The workflow run "${runId}" was not started: the fence of the bulk cancel ${actionId} refuses matching runs until ${until}. Trigger it later, or lift the fence with DELETE /v2/workflows/bulkActions/${actionId}/fence.`,
  }),
  bulk_action_interrupted: define<{ actionId: string; reason: string }>({
    status: 503,
    retry: 'later',
    text: ({ actionId, reason }) =>
      `The bulk action ${actionId} was interrupted: ${reason} The server finishes it in the background. Follow it with GET /v2/workflows/bulkActions/${actionId}.`,
  }),
} as const
