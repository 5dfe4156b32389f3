/**
 * Every change of a database, cut short at every point: after each commit, and in and after everything that engines,
 * files or ports take part in. The points are not listed anywhere; each run dies one point later than the last, until
 * one comes to its end. Then the same with an engine that is killed in place of the server.
 */

import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { freePortRange, processesMarked, waitFor } from '../../test/support/index.js'
import { readRegionsOf } from './desired-engine.js'
import { type DatabaseRow, everyRow } from './life.js'
import { ask, databaseDirs, enginesOf, least } from './testing/checks.js'
import { type House, openHouse } from './testing/house.js'
import { type CrashPoint, Mortal } from './testing/mortal.js'
import * as backupsTransactions from './transactions/backups.js'

type Outcome = 'done' | 'undone'

/** What is known of the database of a change before it is made. */
interface Before {
  readonly row: DatabaseRow
  /** A completed backup in which the key `k` is `new`. */
  readonly backupId: string
  readonly backup: Buffer
}

/** A change, made so that it can be repeated on the same database: what it asks for differs from what is. */
interface Change {
  readonly make: (life: Mortal, before: Before) => Promise<unknown>
  /** What has become of it, by the row (undefined when there is none) and the value of `k`. */
  readonly outcome: (after: After, before: Before) => Outcome
  /** Each run needs a database of its own. */
  readonly isFinal?: true
  /** Whether engines take part, so that they may be killed in it. */
  readonly hasEngines?: true
}

interface After {
  readonly row: DatabaseRow | undefined
  readonly value: unknown
  readonly backups: number
}

let at: House
let life: Mortal
let teamId: string
/** What happens at the next points; nothing while it is undefined. */
let onPoint: ((point: CrashPoint) => 'goes on' | 'ends') | undefined
const seen: string[] = []

beforeAll(async () => {
  at = await openHouse({ redisPorts: await freePortRange(60) })
  teamId = (await at.accounts.teams.create(at.owner, { team_name: 'team', copy_cc: false })).team_id
  life = await begin()
})

afterEach(async () => {
  for (const { database_id } of await life.databases.list(at.owner, 'hide'))
    await life.databases.remove(at.owner, database_id)
})

afterAll(async () => {
  await life.bury()
  await at.close()
  console.log(`crash points: ${seen.join('; ')}`)
})

async function begin(): Promise<Mortal> {
  const next = new Mortal(at, { at: (point) => onPoint?.(point) ?? 'goes on' })
  await next.databases.start()
  return next
}

/** What a kill of the server leaves: no port, no engine, and a fleet that knows nothing. */
async function restart(): Promise<void> {
  onPoint = undefined
  killEngines('')
  await life.bury()
  await Promise.all((await rows()).map(({ database_id }) => at.fleet.suspend(database_id)))
  life = await begin()
}

function killEngines(databaseId: string): void {
  for (const { pid } of processesMarked(join(at.dataDir, 'databases', databaseId))) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended by itself meanwhile, as engines that only check a snapshot do.
    }
  }
}

const rows = () => everyRow(at.store)
const rowOf = async (id: string) => (await rows()).find((row) => row.database_id === id)
const withLife = (): House => ({ ...at, databases: life.databases })

/** Asks until there is an answer: an engine that was just killed may still be taken for alive. */
async function command({ database_id, primary_region, password }: DatabaseRow, ...words: string[]): Promise<unknown> {
  let answer: unknown
  const asks = async (): Promise<boolean> => {
    answer = await ask(withLife(), database_id, primary_region, ['default', password], words)
    return true
  }
  await waitFor(() => asks().catch(() => false), { what: `an answer to ${words.join(' ')}` })
  return answer
}

async function newDatabase(): Promise<Before> {
  const { database_id } = await life.databases.create(at.owner, {
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
  await life.databases.backups.create(at.owner, before.row.database_id, 'b')
  const [made] = await life.databases.backups.list(at.owner, before.row.database_id)
  const backupId = made?.backup_id ?? ''
  const { stream } = await life.databases.backups.download(at.owner, before.row.database_id, backupId)
  const backup = await buffer(stream)
  return { ...before, backupId, backup }
}

const databases = () => life.databases
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
    make: (_, { row }) => databases().changes.rename(at.owner, row.database_id, `${row.name}x`),
    outcome: byRow(['name']),
  },
  'another budget': {
    make: (_, { row }) => databases().changes.setBudget(at.owner, row.database_id, row.budget + 1),
    outcome: byRow(['budget']),
  },
  'auto upgrade': {
    make: (_, { row }) => databases().changes.setAutoUpgrade(at.owner, row.database_id, toggled(row, 'auto_upgrade')),
    outcome: byRow(['auto_upgrade']),
  },
  'another allow list': {
    make: (_, { row }) =>
      databases().changes.setAllowList(at.owner, row.database_id, row.allowed_ips === '[]' ? ['127.0.0.1'] : []),
    outcome: byRow(['allowed_ips']),
  },
  eviction: {
    make: (_, { row }) => databases().changes.setEviction(at.owner, row.database_id, toggled(row, 'eviction')),
    outcome: byRow(['eviction']),
    hasEngines: true,
  },
  'new credentials': {
    make: (_, { row }) => databases().changes.resetPassword(at.owner, row.database_id),
    outcome: byRow(['password', 'rest_token', 'read_only_rest_token']),
    hasEngines: true,
  },
  TLS: {
    make: (_, { row }) => databases().changes.enableTls(at.owner, row.database_id),
    outcome: byRow(['tls']),
    isFinal: true,
  },
  'another plan': {
    make: (_, { row }) =>
      databases().changes.changePlan(at.owner, row.database_id, { plan: row.plan === 'payg' ? 'fixed_1gb' : 'payg' }),
    outcome: byRow(['plan']),
    hasEngines: true,
  },
  'other read regions': {
    make: (_, { row }) =>
      databases().changes.setReadRegions(at.owner, row.database_id, row.read_regions === '[]' ? ['us-west-1'] : []),
    outcome: byRow(['read_regions']),
    hasEngines: true,
  },
  'a move to a team': {
    make: (_, { row }) => databases().changes.moveToTeam(at.owner, row.database_id, teamId),
    outcome: byRow(['account_id']),
    isFinal: true,
  },
  'a deletion': {
    make: (_, { row }) => databases().remove(at.owner, row.database_id),
    outcome: ({ row }, before) => {
      if (row) expect(row).toEqual(before.row)
      return row ? 'undone' : 'done'
    },
    isFinal: true,
  },
  'a backup': {
    make: (_, { row }) => databases().backups.create(at.owner, row.database_id, 'another'),
    outcome: ({ row, backups }, before) => {
      expect(row).toEqual(before.row)
      return backups > 0 ? 'done' : 'undone'
    },
    isFinal: true,
    hasEngines: true,
  },
  'a restore': {
    make: (_, { row, backupId }) => databases().backups.restore(at.owner, row.database_id, backupId),
    outcome: byValue,
    hasEngines: true,
  },
  'an import': {
    make: (_, { row, backup }) => databases().backups.importFile(at.owner, row.database_id, Readable.from([backup])),
    outcome: byValue,
  },
}

const needsBackup = ({ outcome }: Change): boolean => outcome === byValue

/** The database is at rest, serves its data in every region, and no file or record is left over. */
async function look({ row: { database_id: id } }: Before, point?: CrashPoint): Promise<After> {
  const row = await rowOf(id)
  const known = new Set((await rows()).map(({ database_id }) => database_id))
  await waitFor(() => databaseDirs(at).every((name) => known.has(name)), { what: 'files without a database to go' })
  if (!row) return { row, value: undefined, backups: 0 }
  expect(row.modifying_state, `after ${point}`).toBe('')
  const value = await command(row, 'GET', 'k')
  const running = async () => enginesOf(at, id).length === 1 + readRegionsOf(row).length
  await waitFor(running, { what: 'as many engines as regions' })
  const args = { accountId: row.account_id, databaseId: id }
  const listed = (await at.store.run(backupsTransactions.list, args)) ?? []
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

/** Makes a change that meets its fate at point number `place`; answers that point, if it came so far. */
async function make(change: Change, before: Before, place: number, fate: (id: string) => 'goes on' | 'ends') {
  let reached: CrashPoint | undefined
  let points = 0
  onPoint = (point) => {
    points++
    if (points !== place) return 'goes on'
    reached = point
    return fate(before.row.database_id)
  }
  await Promise.race([life.ended, change.make(life, before).catch(() => undefined)])
  onPoint = undefined
  return reached
}

describe('a server that is killed at any point of', () => {
  it.each(Object.entries(CHANGES))('%s has made it wholly or not at all', async (name, change) => {
    const outcomes: Outcome[] = []
    const points: CrashPoint[] = []
    let before: Before | undefined
    for (let place = 1; ; place++) {
      before = await ready(change, before)
      const point = await make(change, before, place, () => 'ends')
      await restart()
      outcomes.push(change.outcome(await look(before, point), before))
      if (point === undefined) break
      points.push(point)
    }
    seen.push(`${name}: ${points.join(', ')}`)
    // What is done stays done at every later point, and a change that came to its end is done.
    expect(outcomes).toEqual([...outcomes].sort().reverse())
    expect(outcomes.at(-1)).toBe('done')
  })

  it('a creation has made it wholly or left nothing', async () => {
    const outcomes: Outcome[] = []
    for (let place = 1, point: CrashPoint | undefined = ''; point !== undefined; place++) {
      const known = new Set((await rows()).map(({ database_id }) => database_id))
      const create: Change = { make: () => newDatabase(), outcome: () => 'done' }
      point = await make(create, { row: {} as DatabaseRow, backupId: '', backup: Buffer.alloc(0) }, place, () => 'ends')
      await restart()
      const made = (await rows()).filter(({ database_id }) => !known.has(database_id))
      for (const row of made) {
        expect(row.modifying_state).toBe('')
        expect(await command(row, 'PING')).toBe('PONG')
        await life.databases.remove(at.owner, row.database_id)
      }
      outcomes.push(made.length === 1 ? 'done' : 'undone')
      expect(databaseDirs(at).sort()).toEqual([...known].sort())
    }
    expect(outcomes).toEqual([...outcomes].sort().reverse())
    expect([outcomes[0], outcomes.at(-1)]).toEqual(['undone', 'done'])
  })
})

describe('an engine that is killed at any point of', () => {
  const changes = Object.entries(CHANGES).filter(([, { hasEngines }]) => hasEngines)

  it.each(changes)('%s costs neither data nor truth', async (_, change) => {
    let before: Before | undefined
    for (let place = 1, point: CrashPoint | undefined = ''; point !== undefined; place++) {
      before = await ready(change, before)
      point = await make(change, before, place, (id) => {
        killEngines(id)
        return 'goes on'
      })
      change.outcome(await look(before), before)
    }
  })
})
