/** Announcements: stored notifications for nodes that did not answer. */
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, change, first, insertAll, type Transaction } from '../../store/statement.js'
import { lockAnnouncements, type NodeRow, takingPart } from './cluster-nodes.js'

const countUp = query<object>(({ db }) =>
  db
    .updateTable('leases')
    .set((row) => ({ epoch: row('epoch', '+', 1) }))
    .where('name', '=', 'announcements'),
)

/**
 * Stores an announcement and returns its version. Versions are counted in a locked row, so they become visible in order.
 * With a database sequence, a node could read version 6, report it as seen, and never see version 5.
 */
export const announce = write(
  'announcements.add',
  function* (args: { sender: number; topic: string; payload: string; now: number }): Transaction<number> {
    const { now: at, ...announcement } = args
    const version = ((yield* first(lockAnnouncements, {}))?.epoch ?? 0) + 1
    yield* change(countUp, {})
    yield* insertAll('announcements', [{ ...announcement, version, at }])
    return version
  },
)

/** The incarnations that take part and have not handled an announcement yet. */
export const incarnationsBehind = read(
  'announcements.unaware',
  function* (args: { version: number }): Transaction<number[]> {
    const nodes: NodeRow[] = yield* all(takingPart, {})
    return nodes.filter(({ seen }) => seen < args.version).map(({ incarnation }) => incarnation)
  },
  { isSingle: () => true },
)

const dropUntil = query<{ version: number }>(({ db, p }) =>
  db.deleteFrom('announcements').where('version', '<=', p.version),
)

/** Deletes the announcements that all nodes have handled. Nodes that join later do not need them. */
export const dropSeen = write('announcements.dropSeen', function* (_: object): Transaction<void> {
  const nodes = yield* all(takingPart, {})
  if (nodes.length > 0) yield* change(dropUntil, { version: Math.min(...nodes.map(({ seen }) => seen)) })
})
