import type { Because } from '../../logs/because.js'
import type { Knowledge } from './knowledge.js'

/** Whether the reasons that a run gives for waiting are those that the model knows. */

/** Throws when a reason says something that is not so. `paused`: the keys of flow control that are held. */
export function checkReason(runId: string, reason: Because, known: Knowledge, paused: ReadonlySet<string>): void {
  const expect = (what: string, said: unknown, truth: unknown): void => {
    if (said !== truth) throw new Error(`${runId} says of its ${reason.kind} that ${what} is ${said}; it is ${truth}`)
  }
  switch (reason.kind) {
    case 'sleeping':
    case 'delayed':
      // Those of runs that were taken up again have begun anew.
      if (known.asleep.has(reason.messageId)) expect('the end', reason.until, known.asleep.get(reason.messageId))
      if (known.released.has(reason.messageId)) expect('something that an event has ended', true, false)
      return
    case 'retry': {
      const next = known.retries.get(reason.messageId)
      if (next) expect('its number', reason.retry, next.retried)
      if (next) expect('its time', reason.at, next.nextAt)
      return
    }
    case 'event': {
      const waits = [...known.waits.values()].filter(({ messageId }) => known.run(runId).waits.has(messageId))
      const same = waits.filter(({ eventId }) => eventId === reason.eventId)
      const isTrue =
        same.length === 0 || same.some(({ since, until }) => since === reason.since && until === reason.until)
      expect('when it began and ends', isTrue, true)
      return
    }
    case 'invoked-run':
      // One that has not been delivered yet is not known.
      expect('the state of that run', 'RUN_STARTED', known.stateOf(reason.workflowRunId) ?? 'RUN_STARTED')
      return
    case 'flow-control':
      expect('whether the key is paused', reason.paused, paused.has(reason.flowControlKey))
      return
    case 'bulk-cancel':
    case 'webhook':
    case 'in-flight':
    case 'queued':
      return
    case 'no-step':
    case 'discarded-branch':
      throw new Error(`${runId} goes on, and nothing will ever happen to it`)
  }
}
