/** Bugs with keys and priorities of messages, the pause of a workflow and selectors, and the violations that reveal them. */

import type { Payload } from '../../../bulk/transactions/bulk-payloads.js'
import { Backlog, type Loaded } from '../../../queue/dispatcher/backlog.js'
import { type DispatcherFactories, REAL_FACTORIES } from '../../../queue/testing/simulated-dispatcher.js'
import type { PendingRow, PublishEntry } from '../../../queue/transactions/messages.js'
import type { DuePage } from '../../../queue/transactions/messages-due.js'
import type { Store } from '../../../store/index.js'
import type { Operation } from '../../../store/operation.js'
import type { RunsStanding } from '../../transactions/runs-standing.js'

type Bug = (store: Store, operation: Operation<never, unknown>, args: object) => Promise<unknown> | undefined

const changing =
  (change: (entry: PublishEntry) => PublishEntry): Bug =>
  (store, operation, args) => {
    if (operation.name !== 'messages.publish') return undefined
    const { entries } = args as { entries: readonly PublishEntry[] }
    return store.run(operation, { ...args, entries: entries.map(change) } as never)
  }

/** A bug in the result of an operation. */
const answering =
  <Found>(name: string, change: (found: Found) => Found): Bug =>
  async (store, operation, args) => {
    const found = await store.run(operation, args as never)
    return operation.name === name && found !== undefined ? change(found as Found) : found
  }

/** A bug in the arguments of an operation. */
const asking =
  (name: string, change: object): Bug =>
  (store, operation, args) =>
    operation.name === name ? store.run(operation, { ...args, ...change } as never) : undefined

const NOTHING = new TextEncoder().encode('{"depth": 0}')

/** Bugs of the conditions of selectors. */
const SELECTOR_BUGS: Readonly<Record<string, Bug>> = {
  'a selector takes paused runs for active ones': answering<RunsStanding>('runs.standing', (found) => ({
    ...found,
    paused: [],
  })),
  'a selector reads the wrong events': answering<RunsStanding>('runs.standing', (found) => ({
    ...found,
    waits: found.waits.map((wait) => ({ ...wait, event_id: 'event-0' })),
  })),
  'a selector counts one attempt too many': answering<RunsStanding>('runs.standing', (found) => ({
    ...found,
    pending: found.pending.map((one) => ({ ...one, retried: one.retried + 1 })),
  })),
  'a selector reads no errors': asking('runs.standing', { attempts: false }),
  'a selector reads another payload': answering<readonly Payload[]>('bulk.payloads', (found) =>
    found.map((one) => ({ ...one, body: NOTHING })),
  ),
  'a selector forgets the age': (store, operation, args) => {
    if (operation.name !== 'bulk.selectPage') return undefined
    return store.run(operation, { ...args, filter: {} } as never)
  },
}

/** Bugs of the pause of a workflow. */
const PAUSE_BUGS: Readonly<Record<string, Bug>> = {
  'a run of a paused workflow begins': asking('runs.submit', { paused: undefined }),
  'a started server knows no paused workflow': (_, operation) =>
    operation.name === 'bulkPaused.ofAccount' ? Promise.resolve([]) : undefined,
  'a dead run of a paused workflow goes on': asking('runs.revive', { paused: undefined }),
  'a run of a paused workflow is restarted': asking('runs.restart', { paused: undefined }),
  'a cancelled run of a paused workflow is brought back': asking('bulk.undoRunsBatch', { paused: undefined }),
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
  ...PAUSE_BUGS,
  ...SELECTOR_BUGS,
}

const withoutPriority = (rows: readonly PendingRow[]): PendingRow[] =>
  rows.map((row) => {
    const { priority: _, ...config } = JSON.parse(row.config) as { priority?: number }
    return { ...row, config: JSON.stringify(config) }
  })

/** Ignores priorities: sends messages in the order in which they are due. */
class LevelBacklog extends Backlog {
  override offer(rows: readonly PendingRow[], now: number, isAgain?: boolean): void {
    super.offer(withoutPriority(rows), now, isAgain)
  }

  override loaded(...[load, page, now]: Parameters<Backlog['loaded']>): Loaded {
    return super.loaded(load, { ...page, rows: withoutPriority(page.rows) } satisfies DuePage, now)
  }
}

/** Faulty factories of the dispatcher. */
export const RULED_DISPATCHER_BUGS: Readonly<Record<string, DispatcherFactories>> = {
  'a priority has no effect': { ...REAL_FACTORIES, backlog: (limits, flow) => new LevelBacklog(limits, flow) },
}

const NOT_HELD = /is paused, and msg_\w+ of it was delivered|is not paused|is not parked|"paused"\].* selects the runs/

/** The violation that reveals each bug. */
export const RULED_VIOLATIONS: Readonly<Record<string, RegExp>> = {
  'the key of a message is ignored': /was skipped for undefined|has replaced undefined, and msg_/,
  'a debounced message is due at once': /is due at \d+, and was delivered/,
  'a replaced message is delivered': /was replaced or cancelled, and was delivered/,
  'a run of a paused workflow begins': NOT_HELD,
  'a started server knows no paused workflow': NOT_HELD,
  'a dead run of a paused workflow goes on': NOT_HELD,
  'a run of a paused workflow is restarted': NOT_HELD,
  'a cancelled run of a paused workflow is brought back': NOT_HELD,
  'a selector takes paused runs for active ones': /"paused"\].* selects the runs/,
  'a selector reads the wrong events': /"event-\d"\].* selects the runs/,
  'a selector counts one attempt too many': /("attemptsAt|"retry").* selects the runs/,
  'a selector reads no errors': /"busy \d"\].* selects the runs/,
  'a selector reads another payload': /"payload".* selects the runs/,
  'a selector forgets the age': /"(older|younger)Than".* selects the runs/,
  'a priority has no effect': /which have the earlier places/,
}
