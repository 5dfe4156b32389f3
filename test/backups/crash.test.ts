import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'iovalkey'
import { afterAll, expect, it } from 'vitest'
import { randomFrom } from '../../src/base/testing/random.js'
import {
  type Answer,
  atCleanup,
  processesMarked,
  type RunningHomeport,
  startHomeport,
  waitFor,
} from '../support/index.js'

/**
 * The server is killed with SIGKILL at random moments of backups and restores and started again on its data. Then all
 * data is old or all data is new, and the records match the files. `HOMEPORT_CRASH_CYCLES` sets the number of cycles, of
 * which each has a backup and a restore; a run of one cycle kills during one of the two.
 */

const CYCLES = Number(process.env.HOMEPORT_CRASH_CYCLES ?? 1)
const SEED = Number(process.env.HOMEPORT_CRASH_SEED ?? Math.floor(Math.random() * 2 ** 32))
/** Longer than a backup or restore of this little data takes, so that some kills happen after its end. */
const LATEST_KILL_MS = 900
const KEYS = 2_000
/** Time for a cycle on a slow, busy machine. */
const CYCLE_TAKES_MS = 30_000

interface Database {
  readonly database_id: string
  readonly port: number
  readonly password: string
  readonly modifying_state: string
}

interface Backup {
  readonly backup_id: string
  readonly name: string
  readonly state: string
  readonly internal_backup_tag: string
  readonly failure?: string
}

const moments: number[] = []
afterAll(() => {
  const kills = moments.map((ms) => `${Math.round(ms)} ms`).join(', ')
  console.log(
    `backup crash test: HOMEPORT_CRASH_SEED=${SEED} HOMEPORT_CRASH_CYCLES=${CYCLES}; kills came after ${kills}`,
  )
})

function connect({ port, password }: Database): Redis {
  const client = new Redis({ host: '127.0.0.1', port, password, retryStrategy: () => null })
  client.on('error', () => undefined)
  atCleanup(() => client.disconnect())
  return client
}

/** Gives every key the same value, so that a mixture of old and new data is visible. */
async function fill(database: Database, value: string): Promise<void> {
  const client = connect(database)
  await client.mset(Object.fromEntries(Array.from({ length: KEYS }, (_, i) => [`key ${i}`, value])))
  client.disconnect()
}

async function valuesOf(database: Database): Promise<string[]> {
  const client = connect(database)
  const values = await client.mget(Array.from({ length: KEYS }, (_, i) => `key ${i}`))
  expect(await client.dbsize()).toBe(KEYS)
  client.disconnect()
  return [...new Set(values.map(String))]
}

/** Kills the server during a request and starts it again. @returns it, and whether the request has succeeded. */
async function killDuring(homeport: RunningHomeport, request: Promise<Answer>, random: () => number) {
  const answer = request.catch(() => undefined)
  const delayMs = random() * LATEST_KILL_MS
  const killAt = performance.now() + delayMs
  moments.push(delayMs)
  await waitFor(() => performance.now() >= killAt, { what: 'the moment of the kill', everyMs: 1 })
  await homeport.kill('SIGKILL')
  const isDone = (await answer)?.status === 200
  return { next: await startHomeport(homeport.place), isDone }
}

/** Lets a request end without a kill. */
async function letEnd(homeport: RunningHomeport, request: Promise<Answer>) {
  expect(await request).toMatchObject({ status: 200 })
  return { next: homeport, isDone: true }
}

const backupsOf = async (homeport: RunningHomeport, { database_id }: Database) =>
  (await homeport.api('GET', `/v2/redis/list-backup/${database_id}`)).body as Backup[]

/** Waits until a database is not changed: a start completes the backup that was being checked at the kill. */
async function untilFree(homeport: RunningHomeport, { database_id }: Database): Promise<void> {
  const stateOf = async () => (await homeport.api('GET', `/v2/redis/database/${database_id}`)).body as Database
  await waitFor(async () => (await stateOf()).modifying_state === '', { what: 'the end of a backup' })
}

/** Checks that every file belongs to a record, and that no record is unfinished. */
async function expectTruth(homeport: RunningHomeport, database: Database): Promise<void> {
  await untilFree(homeport, database)
  const backups = await backupsOf(homeport, database)
  for (const { state, failure } of backups) {
    if (state === 'failed') expect(failure).toContain('the server ended while it was being made')
    else expect(state).toBe('completed')
  }
  const dir = join(homeport.place.dataDir, 'backups', database.database_id)
  const completed = backups.filter((backup) => backup.state === 'completed').map((one) => `${one.backup_id}.rdb`)
  expect((existsSync(dir) ? readdirSync(dir) : []).sort()).toEqual(completed.sort())
  expect(readdirSync(join(homeport.place.dataDir, 'databases'))).toEqual([database.database_id])
  expect(processesMarked(join(homeport.place.dataDir, 'databases', 'check-'))).toEqual([])
}

it(
  'a server killed during a backup or restore leaves old or new data, and correct records',
  async () => {
    const random = randomFrom(SEED)
    const chance = random()
    const during = (isKilled: boolean) => (isKilled || CYCLES > 1 ? killDuring : letEnd)
    let homeport = await startHomeport()
    const fields = { database_name: 'shop', platform: 'aws', primary_region: 'us-east-1' }
    const database = (await homeport.api('POST', '/v2/redis/database', fields)).body as Database
    const path = (verb: string) => `/v2/redis/${verb}/${database.database_id}`
    await fill(database, 'kept')
    expect(await homeport.api('POST', path('create-backup'), { name: 'kept' })).toMatchObject({ status: 200 })
    const [kept] = await backupsOf(homeport, database)

    for (let cycle = 0; cycle < CYCLES; cycle++) {
      await fill(database, `now ${cycle}`)
      const backup = homeport.api('POST', path('create-backup'), { name: `cycle ${cycle}` })
      const made = await during(chance < 0.5)(homeport, backup, random)
      homeport = made.next
      expect(await valuesOf(database)).toEqual([`now ${cycle}`])
      await expectTruth(homeport, database)
      const ours = (await backupsOf(homeport, database)).find((backup) => backup.name === `cycle ${cycle}`)
      if (made.isDone) expect(ours?.state).toBe('completed')

      const request = homeport.api('POST', path('restore-backup'), { backup_id: kept?.backup_id })
      const restored = await during(chance >= 0.5)(homeport, request, random)
      homeport = restored.next
      const values = await valuesOf(database)
      expect([['kept'], [`now ${cycle}`]]).toContainEqual(values)
      if (restored.isDone) expect(values).toEqual(['kept'])
      await expectTruth(homeport, database)
    }
    await fill(database, 'last')
    expect(await homeport.api('POST', path('restore-backup'), { backup_id: kept?.backup_id })).toMatchObject({
      status: 200,
    })
    expect(await valuesOf(database)).toEqual(['kept'])
  },
  60_000 + CYCLES * CYCLE_TAKES_MS,
)
