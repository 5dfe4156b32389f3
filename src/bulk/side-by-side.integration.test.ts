import pg from 'pg'
import { expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { describeOnStore } from '../store/testing/index.js'
import { startRuns, statesOf } from './testing/runs.js'
import * as bulkAction from './transactions/bulk-action.js'
import * as bulkControl from './transactions/bulk-control.js'
import { cancelRunsBatch } from './transactions/bulk-kinds.js'
import { packChunks } from './transactions/bulk-select.js'

const ACTION = {
  actionId: 'bulk_side',
  accountId: 'acc',
  kind: 'cancelRuns',
  selector: '{}',
  settings: null,
  reason: null,
  ratePerSecond: null,
  fence: null,
  actor: 'a@example.test',
  source: 'QUEUE_TOKEN',
  ip: '127.0.0.1',
  at: 1,
} as const
const control = (logId: string) => ({
  accountId: 'acc',
  actionId: ACTION.actionId,
  by: { actor: 'a@example.test', source: 'QUEUE_TOKEN', ip: '127.0.0.1', logId },
  reason: null,
  at: 2,
})

describeOnStore('postgres', 'batches of one action', (openStore, on) => {
  it('run side by side; a pause waits for those in flight, and later ones do nothing', async () => {
    const place = await on.newPlace()
    const store = await openStore(place)
    const other = new pg.Client({ connectionString: place.location })
    await other.connect()
    const waiting = (count: number) =>
      waitFor(
        async () => {
          const blocked = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
          // Inside a transaction, PostgreSQL would show the same as before.
          await other.query('SELECT pg_stat_clear_snapshot()')
          return (await other.query(blocked)).rows.length === count
        },
        { what: `${count} transactions to wait for a lock` },
      )
    try {
      const ids = await startRuns(store, 'acc', 6)
      const { rows } = await other.query('SELECT seq FROM runs WHERE run_id = ANY($1) ORDER BY seq', [ids])
      const chunks = packChunks(
        rows.map(({ seq }) => Number(seq)),
        2,
      )
      const { seq: actionSeq } = await store.run(bulkAction.createAction, { ...ACTION, chunks, absent: [] })
      const batch = (chunk: number) => store.run(cancelRunsBatch, { actionSeq, chunk, from: 0, to: 2, at: 3 })

      await other.query('BEGIN')
      await other.query('SELECT 1 FROM runs WHERE run_id = $1 FOR UPDATE', [ids[0]])
      const held = batch(0)
      await waiting(1)
      expect(await batch(1)).toMatchObject({ succeeded: [expect.any(Number), expect.any(Number)] })
      const paused = store.run(bulkControl.pause, control('log_1'))
      await waiting(2)
      const late = batch(2)
      await other.query('COMMIT')

      expect((await held).succeeded).toHaveLength(2)
      // The last batch may have come before the pause or after it, but never in the middle.
      const done = 4 + (await late).succeeded.length
      const result = await paused
      if (done === 6) expect(result).toMatchObject({ kind: 'refused', action: { state: 'finished', succeeded: 6 } })
      else expect(result).toMatchObject({ kind: 'changed', action: { state: 'paused', succeeded: 4 } })
      expect((await batch(2)).succeeded).toHaveLength(done - 4)
      const aborted = await store.run(bulkControl.abort, control('log_2'))
      expect(aborted).toMatchObject({ action: { succeeded: done, skipped: 6 - done } })
      const states = await statesOf(store, 'acc', ids)
      expect(states.filter((state) => state === 'RUN_CANCELED')).toHaveLength(done)
    } finally {
      await other.end()
    }
  })
})
