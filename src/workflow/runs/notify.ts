import type { Clock } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { Queue } from '../../queue/index.js'
import type { Store } from '../../store/index.js'
import type { NotifyArgs, NotifyResult } from '../transactions/runs-notify.js'
import * as runsNotify from '../transactions/runs-notify.js'

/** Collaborators of `notify`. */
export interface NotifyDeps {
  readonly store: Pick<Store, 'run'>
  readonly queue: Pick<Queue, 'offer' | 'drop'>
  readonly clock: Clock
}

/**
 * Ends the waits for an event, batch by batch, so that other writers need not wait for all of them. If it fails between two
 * batches, the caller gets an error and repeats the request for the rest.
 * @throws HomeportError `run_events_full`.
 */
export async function* notify(
  { store, queue, clock }: NotifyDeps,
  event: Omit<NotifyArgs, 'at' | 'rest'>,
): AsyncGenerator<NotifyResult> {
  const at = clock.now()
  let rest: NotifyArgs['rest']
  do {
    const result: NotifyResult = await store.run(runsNotify.notify, { ...event, at, rest })
    // Dropped on this node only: the offer's hint makes the node that holds a deadline read its message again.
    queue.drop({ seqs: result.drop, mayBeOfferedAgain: true })
    queue.offer(result.offers)
    if (result.kind === 'full') throw new HomeportError('run_events_full', { runId: event.runId ?? '' })
    yield result
    rest = result.rest
  } while (rest)
}
