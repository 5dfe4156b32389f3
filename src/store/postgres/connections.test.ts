import type pg from 'pg'
import { afterEach, expect, it, vi } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { describeOnStore } from '../testing/index.js'
import { raw } from '../testing/inspect.js'
import { targetOf } from './connection.js'
import { Connections } from './connections.js'
import { Connector, end, type Session } from './connector.js'

const UPKEEP_MS = 15_000
const backend = async (client: pg.ClientBase): Promise<number> =>
  (await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]?.pid ?? 0

describeOnStore('postgres', 'connections', (_openStore, on) => {
  const undo: (() => Promise<void>)[] = []
  afterEach(async () => {
    for (const work of undo.splice(0)) await work()
  })

  /** Connections of which `refuse` may refuse the n-th. */
  async function connections(
    refuse: (before: number) => Error | undefined = () => undefined,
    lifeOf: (before: number) => string = () => 'life',
  ) {
    const place = await on.newPlace()
    const connector = new Connector(targetOf(place.location))
    const clock = new ManualClock()
    const sessions: Session[] = []
    const clocks: number[] = []
    let asked = 0
    const pool = new Connections({
      clock,
      onClock: (aheadMs) => clocks.push(aheadMs),
      connect: async () => {
        const refused = refuse(asked++)
        if (refused) throw refused
        const life = lifeOf(asked)
        const { client, server } = await connector.connect()
        const session = { client, server: { ...server, life } }
        sessions.push(session)
        return session
      },
    })
    undo.push(() => pool.close())
    return { pool, clock, place, sessions, clocks }
  }

  it('have their own limits and isolation, whatever the defaults of the server are', async () => {
    const { pool, place } = await connections()
    const name = new URL(place.location).pathname.slice(1)
    const expected = {
      statement_timeout: '30s',
      lock_timeout: '10s',
      idle_in_transaction_session_timeout: '3s',
      transaction_timeout: '30s',
      idle_session_timeout: '0',
      tcp_user_timeout: '5000',
      default_transaction_isolation: 'read committed',
      bytea_output: 'hex',
      standard_conforming_strings: 'on',
    }
    const others = Object.keys(expected).map((each) => `ALTER DATABASE ${name} SET ${each} = '${otherOf(each)}'`)
    await raw(place).execute(others.join(';'))
    // The driver sends these options at the start of a connection.
    const options = Object.keys(expected).map((each) => `-c ${each}=${otherOf(each).replaceAll(' ', '\\ ')}`)
    vi.stubEnv('PGOPTIONS', [...options, '-c geqo=off'].join(' '))
    undo.push(async () => void vi.unstubAllEnvs())
    const isSent = await pool.use(async (client) => (await client.query('SHOW geqo')).rows[0]?.geqo === 'off')
    expect(isSent).toBe(true)
    const found: Record<string, unknown> = {}
    for (const setting of Object.keys(expected)) {
      found[setting] = await pool.use(async (client) => (await client.query(`SHOW ${setting}`)).rows[0]?.[setting])
    }
    expect(found).toEqual(expected)
  })

  it('look their host up like the names of destinations, and end with an error when no name server answers', async () => {
    const { location } = await on.newPlace()
    const url = new URL(location)
    const host = url.hostname
    url.hostname = 'postgres.invalid'
    const names: string[] = []
    const connector = new Connector(targetOf(url.href), (name, _, done) => {
      names.push(name)
      done(null, [{ address: host, family: 4 }])
    })
    await end((await connector.connect()).client)
    expect(names).toEqual(['postgres.invalid'])
    const noAnswer = Object.assign(new Error('no name server answers for postgres.invalid'), { code: 'EAI_AGAIN' })
    const silent = new Connector(targetOf(url.href), (_name, _, done) => done(noAnswer, []))
    await expect(silent.connect()).rejects.toThrow('no name server answers')
  })

  it('recognize a server that shows times in another zone', async () => {
    const { location } = await on.newPlace()
    const connector = new Connector(targetOf(location))
    const lifeOf = async (): Promise<string> => {
      const { client, server } = await connector.connect()
      await end(client)
      return server.life
    }
    const before = await lifeOf()
    const zone = `ALTER DATABASE ${new URL(location).pathname.slice(1)} SET timezone = 'Asia/Kathmandu'`
    await raw({ location, dataDir: '' }).execute(zone)
    expect(await lifeOf()).toBe(before)
  })

  it('report once that another server, or a restarted one, answers at the address', async () => {
    const { pool } = await connections(undefined, (asked) => (asked < 3 ? 'one' : 'other'))
    const met: string[] = []
    pool.onOtherServer(() => met.push('other'))
    const { end } = await occupy(pool, 2)
    expect(met).toEqual([])
    const more = await occupy(pool, 2)
    expect(met).toEqual(['other'])
    await Promise.all([end(), more.end()])
    await pool.use(backend)
    expect(met).toEqual(['other'])
  })

  it('are made when they are needed, and closed when they are not, except one', async () => {
    const { pool, clock, sessions, clocks } = await connections()
    const { end } = await occupy(pool, 10)
    let ended = 0
    for (const { client } of sessions) client.once('end', () => ended++)
    await end()
    clock.advance(UPKEEP_MS) // All of them were needed since the last upkeep.
    await pool.use(backend)
    expect(ended).toBe(0)
    const upkeep = (): boolean => {
      clock.advance(UPKEEP_MS)
      return ended === 9
    }
    await waitFor(upkeep, { what: 'nine connections to end' })
    // An upkeep needs a connection for a moment, to read the clock.
    const read = clocks.length
    upkeep()
    await waitFor(() => clocks.length > read, { what: 'the upkeep to end' })
    expect(await pool.use(backend)).toBeGreaterThan(0)
    expect(sessions).toHaveLength(10)
  })

  it('serve everybody with fewer when the server refuses more', async () => {
    const tooMany = Object.assign(new Error('too many connections'), { code: '53300' })
    const { pool } = await connections((before) => (before >= 2 ? tooMany : undefined))
    const pids = await Promise.all(Array.from({ length: 40 }, () => pool.use(backend)))
    expect(new Set(pids).size).toBeLessThanOrEqual(2)
  })

  it('refuse all waiting callers when none can be made, and try again for the next caller', async () => {
    let isDown = true
    const down = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    const { pool } = await connections(() => (isDown ? down : undefined))
    const failed = await Promise.allSettled(Array.from({ length: 40 }, () => pool.use(backend)))
    expect(new Set(failed.map(({ status }) => status))).toEqual(new Set(['rejected']))
    isDown = false
    expect(await pool.use(backend)).toBeGreaterThan(0)
  })

  it('refuse a caller that has waited too long', async () => {
    const { pool, clock } = await connections()
    const { end } = await occupy(pool, 10)
    const late = pool.use(backend).then(
      () => 'done',
      (error: Error) => error.message,
    )
    clock.advance(3 * UPKEEP_MS)
    expect(await late).toMatch(/timeout exceeded/)
    await end()
    expect(await pool.use(backend)).toBeGreaterThan(0)
  })

  it('are all replaced after one was lost, and none that broke while idle is used', async () => {
    const { pool, place, sessions } = await connections()
    await (await occupy(pool, 4)).end()
    const lost = Object.assign(new Error('terminating connection'), { code: '57P01' })
    let attempts = 0
    const next = await pool.use((client) => (attempts++ === 0 ? Promise.reject(lost) : backend(client)))
    expect(attempts).toBe(2)
    expect(sessions.at(-1)?.server.backend).toBe(next)
    await expect(pool.use(() => Promise.reject(lost))).rejects.toBe(lost)
    const unknown = new HomeportError('store_outcome_unknown', {})
    const commit = vi.fn(() => Promise.reject(unknown))
    await expect(pool.use(commit)).rejects.toBe(unknown)
    expect(commit).toHaveBeenCalledOnce()
    const last = await pool.use(backend)
    let isEnded = false
    sessions.at(-1)?.client.once('end', () => (isEnded = true))
    await raw(place).execute(`SELECT pg_terminate_backend(${last})`)
    await waitFor(() => isEnded, { what: 'the end to be noticed' })
    expect(await pool.use(backend)).not.toBe(last)
  })
})

const OTHERS: Readonly<Record<string, string>> = {
  bytea_output: 'escape',
  default_transaction_isolation: 'serializable',
  standard_conforming_strings: 'off',
}

const otherOf = (setting: string): string => OTHERS[setting] ?? '1min'

/** Uses this many connections until `end` is called. */
async function occupy(pool: Connections, count: number) {
  let free = (): void => undefined
  const held = new Promise<void>((resolve) => {
    free = resolve
  })
  let busy = 0
  const hold = async (): Promise<void> => {
    busy++
    await held
  }
  const working = Array.from({ length: count }, () => pool.use(hold))
  await waitFor(() => busy === count, { what: `${count} busy connections` })
  const end = async (): Promise<void> => {
    free()
    await Promise.all(working)
  }
  return { end }
}
