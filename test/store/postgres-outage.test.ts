import pg from 'pg'
import { afterEach, expect, it } from 'vitest'
import { pause, systemClock } from '../../src/base/index.js'
import { startPostgresServer } from '../../src/store/testing/postgres-server.js'
import { startStandby } from '../../src/store/testing/postgres-standby.js'
import { startHomeport, waitFor } from '../support/index.js'

const undo: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const work of undo.splice(0).reverse()) await work()
})

const LATER = { 'Upstash-Delay': '1h' }
/** Time between two publishes of a client. */
const BETWEEN_MS = 20

it('publishes go on over restarts and a failover of PostgreSQL, and none that was acknowledged is lost', async () => {
  const primary = await startPostgresServer('crash')
  undo.push(() => primary.stop())
  const standby = await startStandby(primary)
  undo.push(() => standby.stop())
  const { host } = new URL(standby.url)
  const store = `${primary.url},${host}/postgres?target_session_attrs=read-write`
  const homeport = await startHomeport({ env: { HOMEPORT_STORE: store }, mayHaveStrays: true })

  const acknowledged: string[] = []
  const refused = new Set<number>()
  let isOver = false
  const publish = async (): Promise<void> => {
    while (!isOver) {
      const { status, body } = await homeport.queue(
        'POST',
        '/v2/publish/https://example.com/later',
        { some: 'body' },
        LATER,
      )
      if (status < 300) acknowledged.push((body as { messageId: string }).messageId)
      else refused.add(status)
      await pause(systemClock, BETWEEN_MS)
    }
  }
  const publishers = Array.from({ length: 4 }, publish)
  const end = async (): Promise<void> => {
    isOver = true
    await Promise.all(publishers)
  }
  undo.push(end)
  const more = async (): Promise<void> => {
    const before = acknowledged.length
    await waitFor(() => acknowledged.length >= before + 20, { what: 'more acknowledged publishes' })
  }

  await more()
  await primary.restartImmediately()
  await more()
  const resume = primary.pause()
  await homeport.api('GET', '/health').catch(() => undefined)
  resume()
  await more()
  // The old primary stays reachable and accepts no writes, as after a managed failover.
  const client = new pg.Client({ connectionString: `${primary.url}/postgres` })
  await client.connect()
  await client.query('ALTER SYSTEM SET default_transaction_read_only = on')
  await client.query('SELECT pg_reload_conf()')
  await client.end()
  await standby.promote()
  await more()
  await end()

  expect([...refused].filter((status) => status !== 503)).toEqual([])
  const found = await Promise.all(acknowledged.map((id) => homeport.queue('GET', `/v2/messages/${id}`)))
  expect(found.filter(({ status }) => status !== 200)).toEqual([])
  expect(homeport.logs()).not.toContain('only-for-tests')
})
