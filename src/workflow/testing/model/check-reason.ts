import type { Because } from '../../logs/reason.js'
import type { Knowledge } from './knowledge.js'

/** Throws if a reason to wait contradicts the expected state. `paused`: the paused flow-control keys. */
export function checkReason(runId: string, reason: Because, known: Knowledge, paused: ReadonlySet<string>): void {
  const expect = (what: string, actual: unknown, expected: unknown): void => {
    if (actual !== expected) throw new Error(`${runId}: ${what} of ${reason.kind} is ${actual}; expected ${expected}`)
  }
  switch (reason.kind) {
    case 'sleeping':
    case 'delayed':
      // In resumed runs, waits and sleeps have started again.
      if (known.asleep.has(reason.messageId)) expect('end', reason.until, known.asleep.get(reason.messageId))
      if (known.released.has(reason.messageId)) expect('the wait, which an event has ended,', 'pending', 'over')
      return
    case 'retry': {
      const next = known.retries.get(reason.messageId)
      if (next) expect('number', reason.retry, next.retried)
      if (next) expect('time', reason.at, next.nextAt)
      return
    }
    case 'event': {
      const waits = [...known.waits.values()].filter(({ messageId }) => known.run(runId).waits.has(messageId))
      const same = waits.filter(({ eventId }) => eventId === reason.eventId)
      const isTrue =
        same.length === 0 || same.some(({ since, until }) => since === reason.since && until === reason.until)
      expect('the correctness of start and end', isTrue, true)
      return
    }
    case 'invoked-run':
      // A run without a delivery so far is unknown here.
      expect('the state of the invoked run', 'RUN_STARTED', known.stateOf(reason.workflowRunId) ?? 'RUN_STARTED')
      return
    case 'flow-control':
      expect('paused', reason.paused, paused.has(reason.flowControlKey))
      return
    case 'bulk-cancel':
    case 'webhook':
    case 'in-flight':
    case 'queued':
    case 'paused':
    case 'debounced':
      return
    case 'no-step':
    case 'discarded-branch':
      throw new Error(`${runId} is active, and nothing will ever happen to it`)
  }
}
