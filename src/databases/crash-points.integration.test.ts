/**
 * Every change of a database with a crash at every point: after each commit, and during and after each effect on engines,
 * files or ports. The points are not listed anywhere: each try crashes at a later point than the last, until one finishes.
 * Then the same with a killed engine in place of a crashed server. A run takes every third point (`npm run test:all`: each).
 */

import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { freePortRange, isSampled, processesMarked, waitFor } from '../../test/support/index.js'
import { readRegionsOf } from './desired-engine.js'
import { type DatabaseRow, everyRow } from './lifecycle.js'
import { ask, databaseDirs, enginesOf, least } from './testing/checks.js'
import { CrashableDatabases, type CrashPoint } from './testing/crashable.js'
import { type ManagementServer, startManagement } from './testing/management.js'
import * as backupsTransactions from './transactions/backups.js'

type Outcome = 'done' | 'undone'

/** A database before a change. */
interface Before {
  readonly row: DatabaseRow
  /** A completed backup in which the key `k` is `new`. */
  readonly backupId: string
  readonly backup: Buffer
}

/** A change that can be repeated on the same database, because it always asks for another state than the current one. */
interface Change {
  readonly make: (server: CrashableDatabases, before: Before) => Promise<unknown>
  /** Tells from the row (undefined when there is none) and the value of `k` whether the change was made. */
  readonly outcome: (after: After, before: Before) => Outcome
  /** Each run needs a database of its own. */
  readonly isFinal?: true
  /** Whether engines take part, so that the test kills them too. */
  readonly hasEngines?: true
}

interface After {
  readonly row: DatabaseRow | undefined
  readonly value: unknown
  readonly backups: number
}

let management: ManagementServer
let server: CrashableDatabases
let teamId: string
/** Called at the next points; undefined continues. */
let onPoint: ((point: CrashPoint) => 'continue' | 'crash') | undefined
const seen: string[] = []

beforeAll(async () => {
  management = await startManagement({ redisPorts: await freePortRange(60) })
  teamId = (await management.accounts.teams.create(management.owner, { team_name: 'team', copy_cc: false })).team_id
  server = await begin()
})

afterEach(async () => {
  for (const { database_id } of await server.databases.list(management.owner, 'hide'))
    await server.databases.remove(management.owner, database_id)
})

afterAll(async () => {
  await server.cleanUp()
  await management.close()
  console.log(`crash points: ${seen.join('; ')}`)
})

async function begin(): Promise<CrashableDatabases> {
  const next = new CrashableDatabases(management, { at: (point) => onPoint?.(point) ?? 'continue' })
  await next.databases.start()
  await next.databases.backups.start()
  return next
}

/** Restarts after a crash: no port is open, no engine runs, and the fleet knows nothing. */
async function restart(): Promise<void> {
  onPoint = undefined
  killEngines('')
  await server.cleanUp()
  await Promise.all((await rows()).map(({ database_id }) => management.fleet.suspend(database_id)))
  server = await begin()
}

function killEngines(databaseId: string): void {
  for (const { pid } of processesMarked(join(management.dataDir, 'databases', databaseId))) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has exited meanwhile, as engines that only check a snapshot do.
    }
  }
}

const rows = () => everyRow(management.store)
const rowOf = async (id: string) => (await rows()).find((row) => row.database_id === id)
const withServer = (): ManagementServer => ({ ...management, databases: server.databases })

/** Retries until there is an answer: the fleet may not have noticed yet that an engine was killed. */
async function command({ database_id, primary_region, password }: DatabaseRow, ...words: string[]): Promise<unknown> {
  let answer: unknown
  const asks = async (): Promise<boolean> => {
    answer = await ask(withServer(), database_id, primary_region, ['default', password], words)
    return true
  }
  await waitFor(() => asks().catch(() => false), { what: `an answer to ${words.join(' ')}` })
  return answer
}

async function newDatabase(): Promise<Before> {
  const { database_id } = await server.databases.create(management.owner, {
    ...least,
    platform: 'aws',
    primary_region: 'us-east-1',
  })
  const row = (await rowOf(database_id)) as DatabaseRow
  return { row, backupId: '', backup: Buffer.alloc(0) }
}

/** The same with a backup in which `k` is `new`. */
async function newDatabaseWithBackup(): Promise<Before> {
  const before = await newDatabase()
  await command(before.row, 'SET', 'k', 'new')
  await server.databases.backups.create(management.owner, before.row.database_id, 'b')
  const [made] = await server.databases.backups.list(management.owner, before.row.database_id)
  const backupId = made?.backup_id ?? ''
  const { stream } = await server.databases.backups.download(management.owner, before.row.database_id, backupId)
  const backup = await buffer(stream)
  return { ...before, backupId, backup }
}

const databases = () => server.databases
const toggled = (row: DatabaseRow, column: 'eviction' | 'auto_upgrade'): boolean => row[column] === 0
const byRow =
  (columns: readonly (keyof DatabaseRow)[]): Change['outcome'] =>
  ({ row }, before) => {
    const same = columns.filter((column) => row?.[column] === before.row[column])
    expect([0, columns.length], `only ${same.join()} of ${columns.join()} is as before`).toContain(same.length)
    const others = (one: DatabaseRow | undefined) =>
      Object.entries(one ?? {}).filter(
        ([name]) => !(columns as readonly string[]).includes(name) && name !== 'last_upgrade_at',
      )
    expect(others(row)).toEqual(others(before.row))
    return same.length === 0 ? 'done' : 'undone'
  }
const byValue: Change['outcome'] = ({ row, value }, before) => {
  expect(row).toEqual(before.row)
  expect(['old', 'new']).toContain(value)
  return value === 'new' ? 'done' : 'undone'
}

const CHANGES: Readonly<Record<string, Change>> = {
  'a new name': {
    make: (_, { row }) => databases().changes.rename(management.owner, row.database_id, `${row.name}x`),
    outcome: byRow(['name']),
  },
  'another budget': {
    make: (_, { row }) => databases().changes.setBudget(management.owner, row.database_id, row.budget + 1),
    outcome: byRow(['budget']),
  },
  'auto upgrade': {
    make: (_, { row }) =>
      databases().changes.setAutoUpgrade(management.owner, row.database_id, toggled(row, 'auto_upgrade')),
    outcome: byRow(['auto_upgrade']),
  },
  'another allow list': {
    make: (_, { row }) =>
      databases().changes.setAllowList(
        management.owner,
        row.database_id,
        row.allowed_ips === '[]' ? ['127.0.0.1'] : [],
      ),
    outcome: byRow(['allowed_ips']),
  },
  eviction: {
    make: (_, { row }) => databases().changes.setEviction(management.owner, row.database_id, toggled(row, 'eviction')),
    outcome: byRow(['eviction']),
    hasEngines: true,
  },
  'new credentials': {
    make: (_, { row }) => databases().changes.resetPassword(management.owner, row.database_id),
    outcome: byRow(['password', 'rest_token', 'read_only_rest_token']),
    hasEngines: true,
  },
  TLS: {
    make: (_, { row }) => databases().changes.enableTls(management.owner, row.database_id),
    outcome: byRow(['tls']),
    isFinal: true,
  },
  'another plan': {
    make: (_, { row }) =>
      databases().changes.changePlan(management.owner, row.database_id, {
        plan: row.plan === 'payg' ? 'fixed_1gb' : 'payg',
      }),
    outcome: byRow(['plan']),
    hasEngines: true,
  },
  'other read regions': {
    make: (_, { row }) =>
      databases().changes.setReadRegions(
        management.owner,
        row.database_id,
        row.read_regions === '[]' ? ['us-west-1'] : [],
      ),
    outcome: byRow(['read_regions']),
    hasEngines: true,
  },
  'a move to a team': {
    make: (_, { row }) => databases().changes.moveToTeam(management.owner, row.database_id, teamId),
    outcome: byRow(['account_id']),
    isFinal: true,
  },
  'a deletion': {
    make: (_, { row }) => databases().remove(management.owner, row.database_id),
    outcome: ({ row }, before) => {
      if (row) expect(row).toEqual(before.row)
      return row ? 'undone' : 'done'
    },
    isFinal: true,
  },
  'a backup': {
    make: (_, { row }) => databases().backups.create(management.owner, row.database_id, 'another'),
    outcome: ({ row, backups }, before) => {
      expect(row).toEqual(before.row)
      return backups > 0 ? 'done' : 'undone'
    },
    isFinal: true,
    hasEngines: true,
  },
  'a restore': {
    make: (_, { row, backupId }) => databases().backups.restore(management.owner, row.database_id, backupId),
    outcome: byValue,
    hasEngines: true,
  },
  'an import': {
    make: (_, { row, backup }) =>
      databases().backups.importFile(management.owner, row.database_id, {
        content: Readable.from([backup]),
        isStillAllowed: async () => true,
      }),
    outcome: byValue,
  },
}

const needsBackup = ({ outcome }: Change): boolean => outcome === byValue

/** Expects that no change is active, that all regions serve the data, and that no file or record is left over. */
async function inspect({ row: { database_id: id } }: Before, point?: CrashPoint): Promise<After> {
  // The start completes a backup whose file was whole.
  const hasEnded = async () => (await rowOf(id))?.modifying_state !== 'backing_up'
  await waitFor(hasEnded, { what: `the end of a backup after ${point}` })
  const row = await rowOf(id)
  const known = new Set((await rows()).map(({ database_id }) => database_id))
  await waitFor(() => databaseDirs(management).every((name) => known.has(name)), {
    what: 'files without a database to go',
  })
  if (!row) return { row, value: undefined, backups: 0 }
  expect(row.modifying_state, `after ${point}`).toBe('')
  const value = await command(row, 'GET', 'k')
  const running = async () => enginesOf(management, id).length === 1 + readRegionsOf(row).length
  await waitFor(running, { what: 'as many engines as regions' })
  const args = { accountId: row.account_id, databaseId: id }
  const listed = (await management.store.run(backupsTransactions.list, args)) ?? []
  expect(listed.map(({ state }) => state)).not.toContain('pending')
  const backups = listed.filter(({ state, kind }) => state === 'completed' && kind === 'manual').length
  return { row, value, backups }
}

async function ready(change: Change, last: Before | undefined): Promise<Before> {
  const fresh = !last || change.isFinal
  const before = fresh ? await (needsBackup(change) ? newDatabaseWithBackup() : newDatabase()) : last
  const row = (await rowOf(before.row.database_id)) as DatabaseRow
  await command(row, 'SET', 'k', 'old')
  return { ...before, row }
}

/** The numbers of the points at which this run crashes, from 1, without an end. */
function* places(): Generator<number, void> {
  for (let place = 1; ; place++) if (isSampled(place, 3)) yield place
}

/** Makes a change that crashes at point number `place`; resolves to that point, if the change reached it. */
async function make(change: Change, before: Before, place: number, act: (id: string) => 'continue' | 'crash') {
  let reached: CrashPoint | undefined
  let points = 0
  onPoint = (point) => {
    points++
    if (points !== place) return 'continue'
    reached = point
    return act(before.row.database_id)
  }
  await Promise.race([server.crashed, change.make(server, before).catch(() => undefined)])
  onPoint = undefined
  return reached
}

describe('a server crash at any point of', () => {
  it.each(Object.entries(CHANGES))('%s leaves it done completely or not at all', async (name, change) => {
    const outcomes: Outcome[] = []
    const points: CrashPoint[] = []
    let before: Before | undefined
    for (const place of places()) {
      before = await ready(change, before)
      const point = await make(change, before, place, () => 'crash')
      await restart()
      outcomes.push(change.outcome(await inspect(before, point), before))
      if (point === undefined) break
      points.push(point)
    }
    seen.push(`${name}: ${points.join(', ')}`)
    // Once a crash at some point leaves the change done, so does a crash at each later point; a finished change is done.
    expect(outcomes).toEqual([...outcomes].sort().reverse())
    expect(outcomes.at(-1)).toBe('done')
  })

  it('a creation leaves a complete database or nothing', async () => {
    const outcomes: Outcome[] = []
    for (const place of places()) {
      const known = new Set((await rows()).map(({ database_id }) => database_id))
      const create: Change = { make: () => newDatabase(), outcome: () => 'done' }
      const nothing = { row: {} as DatabaseRow, backupId: '', backup: Buffer.alloc(0) }
      const point = await make(create, nothing, place, () => 'crash')
      await restart()
      const made = (await rows()).filter(({ database_id }) => !known.has(database_id))
      for (const row of made) {
        expect(row.modifying_state).toBe('')
        expect(await command(row, 'PING')).toBe('PONG')
        await server.databases.remove(management.owner, row.database_id)
      }
      outcomes.push(made.length === 1 ? 'done' : 'undone')
      expect(databaseDirs(management).sort()).toEqual([...known].sort())
      if (point === undefined) break
    }
    expect(outcomes).toEqual([...outcomes].sort().reverse())
    expect([outcomes[0], outcomes.at(-1)]).toEqual(['undone', 'done'])
  })
})

describe('an engine crash at any point of', () => {
  const changes = Object.entries(CHANGES).filter(([, { hasEngines }]) => hasEngines)

  it.each(changes)('%s loses no data and leaves a consistent row', async (_, change) => {
    let before: Before | undefined
    for (const place of places()) {
      before = await ready(change, before)
      const point = await make(change, before, place, (id) => {
        killEngines(id)
        return 'continue'
      })
      change.outcome(await inspect(before), before)
      if (point === undefined) break
    }
  })
})
