import pg from 'pg'
import { afterEach, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import type { NewMessage } from '../../queue/transactions/messages.js'
import * as messagesPublish from '../../queue/transactions/messages-publish.js'
import * as messagesSettle from '../../queue/transactions/messages-settle.js'
import * as queues from '../../queue/transactions/queues.js'
import { read, write } from '../operation.js'
import type { Query } from '../query.js'
import { all } from '../statement.js'
import { describeOnStore } from '../testing/index.js'
import { raw } from '../testing/inspect.js'
import type { Store } from '../types.js'

const T = 1_700_000_000_000
const QUEUE = { accountId: 'acc', name: 'q' }

const isolation: Query<object, { transaction_isolation: string }> = {
  compile: () => ({ name: 'isolation', sql: 'SHOW transaction_isolation', slots: [] }),
}
const isolationOfWrite = write('test.isolationOfWrite', () => all(isolation, {}))
const isolationOfRead = read('test.isolationOfRead', () => all(isolation, {}))

const message = (message_id: string): NewMessage => ({
  message_id,
  account_id: 'acc',
  kind: 'http',
  url: 'http://x.test/',
  method: 'POST',
  headers: '{}',
  config: '{}',
  max_retries: 3,
  next_at: T,
  created_at: T,
  labels: '',
  host: 'x.test',
  path: '/',
  queue: 'q',
})
const publish = (store: Store, ...messages: NewMessage[]) => {
  const entries = messages.map((each) => ({ message: each, dedup: null }))
  return store.run(messagesPublish.publish, { entries, now: T })
}
const delivered = (seq: number) => ({
  seq,
  retried: 0,
  at: T,
  attempt: { startedAt: T, status: 200, headers: '{}', body: null, error: null },
  end: { kind: 'delivered', keep: true } as const,
  follow: [],
  turn: seq,
})

describeOnStore('postgres', 'concurrent transactions', (openStore, on) => {
  const clients: pg.Client[] = []
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.end()
  })

  /** A store, and another connection that can lock its rows. */
  async function beside() {
    const place = await on.newPlace()
    const store = await openStore(place)
    const other = new pg.Client({ connectionString: place.location })
    clients.push(other)
    await other.connect()
    /** Resolves when this many transactions of the store wait for a lock. */
    const waiting = (count: number) =>
      waitFor(
        async () => {
          await other.query('SELECT pg_stat_clear_snapshot()')
          const { rows } = await other.query(
            "SELECT count(*)::int AS waiting FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
          )
          return rows[0].waiting === count
        },
        { what: `${count} waiting transactions` },
      )
    return { store, other, waiting }
  }

  it('name their isolation, whatever the default of the server is', async () => {
    const place = await on.newPlace()
    const name = new URL(place.location).pathname.slice(1)
    await raw(place).execute(`ALTER DATABASE ${name} SET default_transaction_isolation = 'serializable'`)
    const store = await openStore(place)
    // With an older snapshot, a transaction would count the turns of a queue from before it got the lock.
    expect(await store.run(isolationOfWrite, {})).toEqual([{ transaction_isolation: 'read committed' }])
    expect(await store.run(isolationOfRead, {})).toEqual([{ transaction_isolation: 'repeatable read' }])
  })

  it('give no turn to a message that is cancelled at the same time', async () => {
    const { store, other, waiting } = await beside()
    const { seqs } = await publish(store, message('msg_1'), message('msg_2'), message('msg_3'))
    const [first = 0, second = 0, third = 0] = seqs
    await other.query('BEGIN')
    await other.query(`UPDATE messages SET state = 'canceled', finished_at = ${T} WHERE seq = ${second}`)
    const settling = store.run(messagesSettle.settle, delivered(first))
    await waiting(1)
    await other.query('COMMIT')
    expect(await settling).toMatchObject({ kind: 'settled', next: [{ seq: third }] })
    expect((await other.query('SELECT message_seq::int FROM queue_turns')).rows).toEqual([{ message_seq: third }])
  })

  it('recreate a queue that is deleted while a message is published to it', async () => {
    const { store, other, waiting } = await beside()
    for (const name of ['a', 'q']) {
      await store.run(queues.upsert, { accountId: 'acc', name, parallelism: 2, paused: 0, now: T })
    }
    await other.query('BEGIN')
    await other.query("SELECT 1 FROM queues WHERE name = 'a' FOR UPDATE")
    const publishing = publish(store, { ...message('msg_1'), queue: 'a' }, message('msg_2'))
    await waiting(1)
    // The message is not committed yet, so the queue looks empty.
    expect(await store.run(queues.removeEmpty, QUEUE)).toBe(true)
    await other.query('COMMIT')
    const { seqs, turns } = await publishing
    expect(turns.map(({ seq }) => seq)).toEqual(seqs)
    expect(await store.run(queues.get, QUEUE)).toMatchObject({ parallelism: 1 })
  })

  it('keep a queue to which a message has just been published', async () => {
    const { store, other, waiting } = await beside()
    await store.run(queues.upsert, { ...QUEUE, parallelism: 2, paused: 0, now: T })
    await other.query('BEGIN')
    await other.query('SELECT 1 FROM queues FOR UPDATE')
    const publishing = publish(store, message('msg_1'))
    await waiting(1)
    const removing = store.run(queues.removeEmpty, QUEUE)
    await waiting(2)
    await other.query('COMMIT')
    const { seqs } = await publishing
    expect(await removing).toBe(false)
    expect((await other.query('SELECT message_seq::int FROM queue_turns')).rows).toEqual([{ message_seq: seqs[0] }])
  })
})
