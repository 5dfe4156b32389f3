import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { openStore } from '../open.js'
import { type PostgresServer, startPostgresServer } from '../testing/postgres-server.js'
import { type PostgresStandby, startStandby } from '../testing/postgres-standby.js'
import { add, install, list } from '../testing/probe.js'
import type { Store } from '../types.js'

const undo: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const work of undo.splice(0).reverse()) await work()
})

async function standbyOf(primary: PostgresServer): Promise<PostgresStandby> {
  const standby = await startStandby(primary)
  undo.push(() => standby.stop())
  return standby
}

/** The location of the store on whichever of two servers is the primary. */
const eitherOf = (one: PostgresServer, other: PostgresServer, options = ''): string =>
  `${one.url},${new URL(other.url).host}/postgres${options}`

async function storeOn(location: string): Promise<Store> {
  const store = await openStore({ location, dataDir: '', onFailure: () => undefined })
  undo.push(() => store.close())
  await store.run(install, {})
  return store
}

async function ask(url: string, ...statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: `${url}/postgres` })
  await client.connect()
  try {
    for (const statement of statements) await client.query(statement)
  } finally {
    await client.end()
  }
}

/** Eight writers that continue through every failure, and the writes that were acknowledged to them. */
function writing(store: Store) {
  const acknowledged = new Set<string>()
  const failures = new Set<string>()
  let isOver = false
  let made = 0
  const write = async (): Promise<void> => {
    while (!isOver) {
      const name = `row ${made++}`
      await store.run(add, { rows: [{ name }] }).then(
        () => acknowledged.add(name),
        (error) => failures.add(error.code ?? String(error)),
      )
    }
  }
  const writers = Array.from({ length: 8 }, write)
  const end = async (): Promise<void> => {
    isOver = true
    await Promise.all(writers)
  }
  undo.push(end)
  /** Resolves when this many more writes were acknowledged. */
  const more = (count: number): Promise<unknown> => {
    const before = acknowledged.size
    return waitFor(() => acknowledged.size >= before + count, { what: 'more acknowledged writes' })
  }
  /** Ends the writers. Every acknowledged write must be there. */
  const check = async (): Promise<void> => {
    await end()
    const found = new Set((await store.run(list, {})).map(({ name }) => name))
    expect([...acknowledged].filter((name) => !found.has(name))).toEqual([])
    expect([...failures].filter((code) => !/^store_(unavailable|outcome_unknown)$/.test(code))).toEqual([])
  }
  return { more, check, failures }
}

let first: PostgresServer
beforeAll(async () => {
  first = await startPostgresServer('crash')
})
afterAll(() => first.stop())

it('the store keeps every acknowledged write over immediate restarts and a pause of the server, and continues', async () => {
  const writes = writing(await storeOn(`${first.url}/postgres`))
  for (let restart = 0; restart < 3; restart++) {
    await writes.more(50)
    await first.restartImmediately()
  }
  await writes.more(50)
  const resume = first.pause()
  await new Promise((resolve) => setImmediate(resolve))
  resume()
  await writes.more(50)
  await writes.check()
})

it('the store follows promoted standbys: from a server that accepts no more writes, and from one that vanishes', async () => {
  const second = await standbyOf(first)
  const store = await storeOn(eitherOf(first, second, '?target_session_attrs=read-write'))
  const writes = writing(store)
  await writes.more(100)
  // The connections to the old primary stay alive.
  await ask(first.url, 'ALTER SYSTEM SET default_transaction_read_only = on', 'SELECT pg_reload_conf()')
  await waitFor(() => writes.failures.size > 0, { what: 'the first refused write' })
  await second.promote()
  await writes.more(100)
  await first.stop()
  await writes.more(100)
  await writes.check()
  await store.close()

  const third = await standbyOf(second)
  // A store does not start on a standby alone.
  await expect(storeOn(`${third.url}/postgres`)).rejects.toMatchObject({
    code: 'store_not_opened',
    details: { reason: expect.stringContaining('accepts no writes') },
  })
  const later = writing(await storeOn(eitherOf(second, third)))
  await later.more(100)
  await second.stop()
  await third.promote()
  await later.more(100)
  await later.check()
})
