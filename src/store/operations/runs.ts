export {
  type CallbackChange,
  cancelCallback,
  type OneDeadRun,
  retryCallback,
  retryCallbacks,
} from './runs-callbacks.js'
export { type CanceledRuns, type CancelRunsArgs, cancelRuns, cancelRunsFor } from './runs-cancel.js'
export {
  buryRuns,
  type DeadRunFilter,
  type DeadRunOrder,
  type DeadRunPage,
  type DeadRunPlace,
  type DeadRunSelector,
  deadAmong,
  deadNamed,
  deadSeqs,
  deleteDeadRuns,
  type NamedDeadRun,
} from './runs-dead.js'
export { type DeadLetterRow, listDead } from './runs-dead-list.js'
export { type FinishRunArgs, type FinishRunResult, finishRun } from './runs-finish.js'
export {
  type CancelOfRuns,
  type FlowPlace,
  type InvokedRun,
  logPage,
  type PastAttempt,
  type PendingAttempt,
  type PendingStep,
  type RunLogPage,
} from './runs-logs.js'
export type { RunLogArgs, RunLogFilter, RunMade } from './runs-matching.js'
export { expireWait, type NotifyArgs, type NotifyResult, notify, type Released, waiters } from './runs-notify.js'
export {
  beginning,
  type Contents,
  type Delivery,
  delivery,
  find,
  type ListedStep,
  type RunOfDelivery,
  withElements,
} from './runs-read.js'
export { dropRemains } from './runs-remains.js'
export { type SweepRunsArgs, sweepRuns } from './runs-retention.js'
export {
  type DeadRun,
  type Revival,
  type ReviveArgs,
  type Revived,
  type RunRevision,
  revised,
  revivable,
  revivableAmong,
  revive,
  reviving,
} from './runs-revive.js'
export * from './runs-rows.js'
export {
  type RunEffect,
  type RunFailing,
  type SettleRunArgs,
  type SettleRunResult,
  settleDone,
  settleRun,
} from './runs-settle.js'
export {
  type ElementPlace,
  type Submission,
  type SubmitArgs,
  type SubmitResult,
  type Submitted,
  submit,
} from './runs-submit.js'
export { measureRuns, trimRuns } from './runs-trim.js'
export { type WaitArgs, type WaitRecord, type WaitResult, type WaitRow, wait } from './runs-wait.js'
