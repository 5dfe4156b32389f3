import { type Answer, type RunningHomeport, waitFor } from '../support/index.js'
import { wasKilledSoonAfter } from './database-ledger.js'
import { connected, type NewDatabase } from './database-load.js'
import { type Loads, Violation } from './loads.js'
import type { ManagementLedger } from './management-ledger.js'

const KEYS = 200
const BACKUPS_KEPT = 3
const USERS_KEPT = 5
/** How many of the created databases are kept until the end. */
const MAX_KEPT = 3
const STUCK_MS = 120_000
const LOCATION = { platform: 'aws', primary_region: 'us-east-1' }

interface Backup {
  readonly backup_id: string
  readonly name: string
  readonly state: string
}

let made = 0
const nextName = (prefix: string): string => `${prefix}${++made}`

/** Sends a request that may fail because of a fault or another change of the database. */
async function requestOk(homeport: RunningHomeport, method: string, path: string, body?: unknown): Promise<unknown> {
  return settled(`${method} ${path.split('/').slice(0, 4).join('/')}`, await homeport.api(method, path, body))
}

function settled(what: string, { status, body }: Answer): unknown {
  if (status < 300) return body
  const text = `${what} was answered ${status} ${JSON.stringify(body)}`
  // 409: another change is running. 5xx: the fault.
  throw status === 409 || status >= 500 ? new Error(text) : new Violation(text)
}

/** Creates a database for a whole round. */
export async function createDatabase(homeport: RunningHomeport, fields: object): Promise<NewDatabase> {
  return (await requestOk(homeport, 'POST', '/v2/redis/database', { ...LOCATION, ...fields })) as NewDatabase
}

/** Deletes databases, creates others, writes to them and changes their regions. */
export async function churnDatabases(homeport: RunningHomeport, ledger: ManagementLedger): Promise<void> {
  await deleteSome(homeport, ledger)
  const name = nextName('passing-')
  const isReplicated = made % 2 === 0
  ledger.note({ state: 'creating', name })
  const database = await createDatabase(homeport, {
    database_name: name,
    ...(isReplicated && { read_regions: ['eu-west-1'] }),
  })
  const value = `value of ${name}`
  ledger.note({ state: 'created', name, database, value: '' })
  await connected(database, (client) => client.set('kept', value))
  ledger.note({ state: 'created', name, database, value })
  const read_regions = isReplicated ? [] : ['us-west-1']
  await requestOk(homeport, 'POST', `/v2/redis/update-regions/${database.database_id}`, { read_regions })
}

/** Repeats unanswered deletions, and deletes the oldest databases. */
async function deleteSome(homeport: RunningHomeport, ledger: ManagementLedger): Promise<void> {
  const passing = [...ledger.passing.values()]
  const created = passing.filter((one) => one.state === 'created')
  const deleting = passing.filter((one) => one.state === 'deleting')
  for (const { name, database } of [...deleting, ...created.slice(0, Math.max(0, created.length - MAX_KEPT))]) {
    ledger.note({ state: 'deleting', name, database })
    const answer = await homeport.api('DELETE', `/v2/redis/database/${database.database_id}`)
    if (answer.status !== 404) settled('DELETE /v2/redis/database', answer)
    ledger.note({ state: 'deleted', name, database })
  }
}

/** Waits until no change of a database is running; a change that never ends is stuck. */
export async function untilUnchanged(homeport: RunningHomeport, { database_id }: NewDatabase): Promise<void> {
  const isUnchanged = async (): Promise<boolean> => {
    const { status, body } = await homeport.api('GET', `/v2/redis/database/${database_id}`)
    return status === 200 && (body as NewDatabase).modifying_state === ''
  }
  await waitFor(isUnchanged, {
    what: `modifying_state of ${database_id} to be empty`,
    deadlineMs: STUCK_MS,
    everyMs: 50,
  })
}

/** The backups of a database. */
export async function backupsOf(homeport: RunningHomeport, { database_id }: NewDatabase): Promise<readonly Backup[]> {
  return (await requestOk(homeport, 'GET', `/v2/redis/list-backup/${database_id}`)) as Backup[]
}

/** The distinct values of the keys in the database for backups: one, whatever was restored. */
export function valuesOf(vault: NewDatabase): Promise<string[]> {
  return connected(vault, async (client) => {
    const values = await client.mget(Array.from({ length: KEYS }, (_, index) => `key ${index}`))
    return [...new Set(values.map(String))]
  })
}

/** Throws unless all keys of the database for backups have one of the possible values. */
export async function checkVault(
  vault: NewDatabase,
  ledger: ManagementLedger,
  engineKills: readonly number[],
): Promise<void> {
  const values = await valuesOf(vault)
  const [value] = values
  const { written } = ledger
  const isWithinWindow = written !== undefined && wasKilledSoonAfter(written.atMs, engineKills)
  if (values.length === 1 && isWithinWindow && written.before.has(value ?? '') && !ledger.possible.has(value ?? '')) {
    ledger.lostWithinWindow++
    ledger.possible.add(value ?? '')
  }
  if (values.length !== 1 || value === undefined || !ledger.possible.has(value))
    throw new Violation(`the restored database holds ${values.slice(0, 4)}, and may hold ${[...ledger.possible]}`)
  ledger.possible = new Set([value])
}

async function fill(vault: NewDatabase, ledger: ManagementLedger, value: string): Promise<void> {
  // The value of a key that does not exist.
  const before = ledger.possible.size > 0 ? ledger.possible : new Set(['null'])
  ledger.possible = new Set(before)
  ledger.possible.add(value)
  await connected(vault, (client) =>
    client.mset(Object.fromEntries(Array.from({ length: KEYS }, (_, i) => [`key ${i}`, value]))),
  )
  ledger.written = { atMs: Date.now(), before }
  ledger.possible = new Set([value])
}

/** Fills a database, makes a backup, fills it again, restores a backup, deletes old ones. */
export async function backUpAndRestore(
  homeport: RunningHomeport,
  vault: NewDatabase,
  ledger: ManagementLedger,
  engineKills: readonly number[],
): Promise<void> {
  const id = vault.database_id
  await untilUnchanged(homeport, vault)
  if (ledger.possible.size > 0) await checkVault(vault, ledger, engineKills)
  const name = nextName('backup-')
  await fill(vault, ledger, name)
  await requestOk(homeport, 'POST', `/v2/redis/create-backup/${id}`, { name })
  ledger.backups.set(name, name)
  await fill(vault, ledger, nextName('after-'))
  await restoreOne(homeport, vault, ledger)
  await checkVault(vault, ledger, engineKills)
  await deleteOld(homeport, vault, ledger)
}

async function restoreOne(homeport: RunningHomeport, vault: NewDatabase, ledger: ManagementLedger): Promise<void> {
  const all = await backupsOf(homeport, vault)
  const [name] = [...ledger.backups.keys()].slice(-1 - (made % BACKUPS_KEPT))
  const backup = all.find((one) => one.name === name)
  if (name === undefined) return
  if (backup?.state !== 'completed') throw new Violation(`the answered backup ${name} is ${JSON.stringify(backup)}`)
  ledger.possible.add(name)
  await requestOk(homeport, 'POST', `/v2/redis/restore-backup/${vault.database_id}`, { backup_id: backup.backup_id })
  ledger.possible = new Set([name])
  ledger.written = undefined
  ledger.restores++
}

async function deleteOld(homeport: RunningHomeport, vault: NewDatabase, ledger: ManagementLedger): Promise<void> {
  const kept = new Set([...ledger.backups.keys()].slice(-BACKUPS_KEPT))
  for (const { backup_id, name, state } of await backupsOf(homeport, vault)) {
    if (kept.has(name) || state === 'pending') continue
    ledger.backups.delete(name)
    await requestOk(homeport, 'DELETE', `/v2/redis/delete-backup/${vault.database_id}/${backup_id}`)
  }
}

/** Creates users of a database, logs in as them, and deletes them. */
export async function manageUsers(database: NewDatabase, ledger: ManagementLedger): Promise<void> {
  const name = nextName('user')
  const token = await connected(database, async (client) => {
    const fresh = String(await client.call('ACL', 'GENTOKEN', name))
    await client.call('ACL', 'SETUSER', name, 'on', `>${fresh}`, '~*', '+get')
    return fresh
  })
  ledger.users.set(name, token)
  for (const [username, password] of ledger.users) await logIn(database, username, password)
  if (ledger.users.size <= USERS_KEPT) return
  const [oldest = '', password = ''] = [...ledger.users][0] ?? []
  ledger.users.delete(oldest)
  await connected(database, (client) => client.call('ACL', 'DELUSER', oldest))
  ledger.formerUsers.set(oldest, password)
}

/** Throws a violation if a valid password is refused. */
export async function logIn(database: NewDatabase, username: string, password: string): Promise<void> {
  try {
    await connected(database, (client) => client.get('anything'), { username, password })
  } catch (error) {
    if (/WRONGPASS|NOAUTH/.test(String(error))) throw new Violation(`the user ${username} was refused: ${error}`)
    throw error
  }
}

/** Starts callers of the management API. */
export function startManagementLoad(
  loads: Loads,
  ledger: ManagementLedger,
  databases: { readonly vault: NewDatabase; readonly shop: NewDatabase },
  engineKills: readonly number[],
): void {
  loads.repeat('come and go', (homeport) => churnDatabases(homeport, ledger))
  loads.repeat('back up and restore', (homeport) => backUpAndRestore(homeport, databases.vault, ledger, engineKills))
  loads.repeat('users', () => manageUsers(databases.shop, ledger))
}
