/** Bugs with keys and priorities of messages, and with the pause of a workflow, and the violations that reveal them. */
import { Backlog } from '../../../queue/dispatcher/backlog.js'
import { type DispatcherFactories, REAL_FACTORIES } from '../../../queue/testing/simulated-dispatcher.js'
import type { PendingRow, PublishEntry } from '../../../queue/transactions/messages.js'
import type { DuePage } from '../../../queue/transactions/messages-due.js'
import type { Store } from '../../../store/index.js'
import type { Operation } from '../../../store/operation.js'

type Bug = (store: Store, operation: Operation<never, unknown>, args: object) => Promise<unknown> | undefined

const changing =
  (change: (entry: PublishEntry) => PublishEntry): Bug =>
  (store, operation, args) => {
    if (operation.name !== 'messages.publish') return undefined
    const { entries } = args as { entries: readonly PublishEntry[] }
    return store.run(operation, { ...args, entries: entries.map(change) } as never)
  }

/** Bugs of the store. */
export const RULED_BUGS: Readonly<Record<string, Bug>> = {
  'the key of a message is ignored': changing(({ rule: _, ...entry }) => entry),
  'a debounced message is due at once': changing((entry) => ({
    ...entry,
    message: { ...entry.message, next_at: entry.message.created_at },
  })),
  'a replaced message is delivered': (store, operation, args) => {
    if (operation.name !== 'messages.publish') return undefined
    return store.run(operation, args as never).then((published) => ({ ...(published as object), dropped: [] }))
  },
  'a run of a paused workflow begins': (store, operation, args) =>
    operation.name === 'runs.submit' ? store.run(operation, { ...args, paused: undefined } as never) : undefined,
  'a started server knows no paused workflow': (_, operation) =>
    operation.name === 'bulkPaused.ofAccount' ? Promise.resolve([]) : undefined,
}

const withoutPriority = (rows: readonly PendingRow[]): PendingRow[] =>
  rows.map((row) => {
    const { priority: _, ...config } = JSON.parse(row.config) as { priority?: number }
    return { ...row, config: JSON.stringify(config) }
  })

/** Sends messages in the order in which they come. */
class LevelBacklog extends Backlog {
  override offer(rows: readonly PendingRow[], now: number, isAgain?: boolean): void {
    super.offer(withoutPriority(rows), now, isAgain)
  }

  override loaded(...[load, page, now]: Parameters<Backlog['loaded']>): number {
    return super.loaded(load, { ...page, rows: withoutPriority(page.rows) } satisfies DuePage, now)
  }
}

/** Faulty factories of the dispatcher. */
export const RULED_DISPATCHER_BUGS: Readonly<Record<string, DispatcherFactories>> = {
  'a priority has no effect': { ...REAL_FACTORIES, backlog: (limits, flow) => new LevelBacklog(limits, flow) },
}

/** The violation that reveals each bug. */
export const RULED_VIOLATIONS: Readonly<Record<string, RegExp>> = {
  'the key of a message is ignored': /was skipped for undefined|has replaced undefined, and msg_/,
  'a debounced message is due at once': /is due at \d+, and was delivered/,
  'a replaced message is delivered': /was replaced or cancelled, and was delivered/,
  'a run of a paused workflow begins': /is paused, and msg_\w+ of it was delivered|is not paused/,
  'a started server knows no paused workflow': /is paused, and msg_\w+ of it was delivered|is not paused/,
  'a priority has no effect': /which have the earlier places/,
}
