import type { Selectable } from 'kysely'
import { isPending, type MessageRow } from '../../queue/transactions/messages.js'
import { dueTime } from '../../queue/transactions/messages-parked.js'
import { query } from '../../store/query.js'
import type { RunRemainsTable } from '../../store/schema/runs.js'
import { all, change, insertAll, type Transaction } from '../../store/statement.js'
import type { DeliveryColumns } from './runs-rows.js'
import type { WaitRow } from './runs-wait.js'

/** A message or wait that was pending when its run failed. */
export type RemainRow = Selectable<RunRemainsTable>
type NewRemain = Omit<RemainRow, 'seq'>

const DELIVERY_COLUMNS = [
  'url',
  'method',
  'headers',
  'config',
  'max_retries',
  'labels',
  'flow_key',
  'caller_ip',
  'host',
  'path',
] as const satisfies readonly (keyof DeliveryColumns & keyof MessageRow)[]

type PendingOfRun = Pick<MessageRow, 'message_id' | 'next_at' | (typeof DELIVERY_COLUMNS)[number]>

const pendingOf = query<{ seq: number }, PendingOfRun>(({ db, p }) =>
  db
    .selectFrom('messages')
    .select(['message_id', 'next_at', ...DELIVERY_COLUMNS])
    .where('group_key', '=', p.seq)
    .where(isPending)
    .orderBy('seq'),
)
const waitsOf = query<{ seq: number }, WaitRow>(({ db, p }) =>
  db.selectFrom('run_waits').selectAll().where('run_seq', '=', p.seq).orderBy('seq'),
)
const remainsOf = query<{ seqs: readonly number[] }, RemainRow>(({ db, p, d }) =>
  db.selectFrom('run_remains').selectAll().where(d.inNumbers('run_seq', p.seqs)).orderBy('seq'),
)
const remove = query<{ seqs: readonly number[] }>(({ db, p, d }) =>
  db.deleteFrom('run_remains').where(d.inNumbers('run_seq', p.seqs)),
)

/** Reads the pending messages and waits of a run that is about to fail. Call it before the failed message is settled. */
export function* remainsToKeep(seq: number): Transaction<NewRemain[]> {
  const waits = yield* all(waitsOf, { seq })
  const deadlines = new Set(waits.map((wait) => wait.message_id))
  const messages = (yield* all(pendingOf, { seq })).filter((message) => !deadlines.has(message.message_id))
  return [...messages.map((message) => messageRemain(seq, message)), ...waits.map(waitRemain)]
}

function messageRemain(run_seq: number, { message_id, next_at, ...delivery }: PendingOfRun): NewRemain {
  return { run_seq, kind: 'message', message_id, due_at: dueTime(next_at), data: JSON.stringify(delivery) }
}

function waitRemain({ run_seq, message_id, deadline, event_id, wait }: WaitRow): NewRemain {
  return { run_seq, kind: 'wait', message_id, due_at: deadline, data: JSON.stringify({ event_id, wait }) }
}

/** Stores the result of `remainsToKeep`. */
export function* keepRemains(remains: readonly NewRemain[]): Transaction<void> {
  yield* insertAll('run_remains', remains)
}

/** Reads the kept messages and waits of failed runs, oldest first. */
export function* readRemains(seqs: readonly number[]): Transaction<RemainRow[]> {
  return seqs.length > 0 ? yield* all(remainsOf, { seqs }) : []
}

/** Deletes the kept messages and waits of runs that will not be resumed. */
export function* dropRemains(seqs: readonly number[]): Transaction<void> {
  if (seqs.length > 0) yield* change(remove, { seqs })
}
