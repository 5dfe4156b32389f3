import type { QUEUE_TOKEN_SCOPES } from '../accounts/credentials.js'

/** A scope of a queue token that is not `all`. */
export type NarrowScope = Exclude<(typeof QUEUE_TOKEN_SCOPES)[number], 'all'>

const READ: readonly NarrowScope[] = ['read']
const PUBLISH: readonly NarrowScope[] = ['publish']
/** The handler compares the queue or flow-control key with that of the token. */
const PUBLISH_NAMED: readonly NarrowScope[] = ['publish', 'queue', 'flow_control']
/** Only tokens with the scope `all`. */
const NONE: readonly NarrowScope[] = []

/**
 * Which narrow scopes suffice for each operation with a queue token, by the id of the operation. Every such operation has
 * a line here: a test walks all of them, and one without a line is refused to every narrow token.
 */
export const SCOPES: Readonly<Record<string, readonly NarrowScope[]>> = {
  publishMessage: PUBLISH_NAMED,
  enqueueMessage: PUBLISH_NAMED,
  publishBatch: PUBLISH_NAMED,
  triggerWorkflow: PUBLISH,
  triggerWorkflows: PUBLISH,
  notifyEvent: PUBLISH,
  notifyRun: PUBLISH,
  waitForEvent: PUBLISH,
  getMessage: READ,
  listEvents: READ,
  listLogs: READ,
  cancelMessage: NONE,
  cancelMessages: NONE,
  getQueue: ['read', 'queue'],
  listQueues: READ,
  putQueue: NONE,
  deleteQueue: NONE,
  pauseQueue: NONE,
  resumeQueue: NONE,
  getFlowKey: ['read', 'flow_control'],
  listFlowKeys: READ,
  getGlobalParallelism: READ,
  changeFlowKey: NONE,
  pauseFlowKey: NONE,
  resumeFlowKey: NONE,
  pinFlowKey: NONE,
  unpinFlowKey: NONE,
  resetRateFlowKey: NONE,
  resetFlowKey: NONE,
  listUrlGroups: READ,
  getUrlGroup: READ,
  addUrlGroupEndpoints: NONE,
  removeUrlGroupEndpoints: NONE,
  setUrlGroupHeaders: NONE,
  deleteUrlGroup: NONE,
  listSchedules: READ,
  getSchedule: READ,
  createSchedule: NONE,
  deleteSchedule: NONE,
  pauseSchedule: NONE,
  resumeSchedule: NONE,
  pauseScheduleByPost: NONE,
  resumeScheduleByPost: NONE,
  listDeadLetters: READ,
  getDeadLetter: READ,
  deleteDeadLetter: NONE,
  deleteDeadLetters: NONE,
  retryDeadLetter: NONE,
  retryDeadLetters: NONE,
  // A holder of the signing keys can forge deliveries.
  getSigningKeys: NONE,
  rotateSigningKeys: NONE,
  rotateSigningKeysByGet: NONE,
  verifySignature: READ,
  listWorkflowRuns: READ,
  getWorkflowRunSteps: READ,
  listWorkflowEvents: READ,
  listWorkflowMessageLogs: READ,
  listWaiters: READ,
  endWorkflowRun: NONE,
  cancelWorkflowRuns: NONE,
  listDeadWorkflowRuns: READ,
  getDeadWorkflowRun: READ,
  deleteDeadWorkflowRun: NONE,
  deleteDeadWorkflowRunByVerb: NONE,
  deleteDeadWorkflowRuns: NONE,
  restartDeadWorkflowRun: NONE,
  restartDeadWorkflowRuns: NONE,
  resumeDeadWorkflowRun: NONE,
  resumeDeadWorkflowRuns: NONE,
  retryWorkflowFailureFunction: NONE,
  cancelWorkflowFailureFunction: NONE,
  listBulkActions: READ,
  getBulkAction: READ,
  listBulkOutcomes: READ,
  startBulkAction: NONE,
  changeBulkAction: NONE,
  pauseBulkAction: NONE,
  resumeBulkAction: NONE,
  abortBulkAction: NONE,
  liftBulkFence: NONE,
}
