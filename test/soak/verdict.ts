import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { endOf } from '../crash/aftermath.js'
import { seal } from '../crash/load.js'
import { accountOf, NO_BREACHES } from '../crash/queue-account.js'
import { runsInState, storedMessages, unfinishedSoon, unfired } from '../crash/queue-ledger-store.js'
import { isPortFree, processesMarked, type RunningHomeport, waitFor } from '../support/index.js'
import { connected, type NewDatabase } from './database-load.js'
import type { Passing } from './management-ledger.js'
import { backupsOf, checkVault, logIn, untilUnchanged, valuesOf } from './management-load.js'
import { verdictOf } from './rich-runs.js'
import type { Scene } from './scene.js'

/** Everything started by the load has to end within this time. */
const REST_MS = 240_000
const MAX_SHOWN = 5

/** Compares a running server with the ledgers when the load is over, and stops it. Returns the violations. */
export async function judge(scene: Scene): Promise<string[]> {
  const homeport = await scene.server.whenUp()
  const wrong: string[] = []
  const check = async (name: string, look: () => Promise<readonly string[]>): Promise<void> => {
    const found = await look().catch((error: unknown) => [error instanceof Error ? error.message : String(error)])
    wrong.push(...found.slice(0, MAX_SHOWN).map((text) => `${name}: ${text}`))
    if (found.length > MAX_SHOWN) wrong.push(`${name}: ${found.length} in all`)
  }
  await check('databases', () => databasesHold(scene))
  await check('management', () => managementHolds(scene, homeport))
  await check('cancelled runs', () => cancelsHold(scene, homeport))
  await check('runs', () => runsHold(scene))
  await check('runs with waits', () => richRunsHold(scene, homeport))
  await check('messages', () => messagesHold(scene, homeport))
  await check('files', () => filesHold(scene, homeport))
  await scene.server.checkAlive()
  const ports = [...databasesOf(scene), ...gone(scene)].map(({ port }) => port)
  await scene.server.stop()
  await check('after the end', () => nothingIsLeft(scene, ports))
  const { server, loads, data } = scene
  return [...wrong, ...server.violations, ...loads.violations, ...data.ledger.violations.slice(0, MAX_SHOWN)]
}

const databasesOf = ({ databases }: Scene): NewDatabase[] => [databases.shop, databases.till, databases.vault]

const gone = ({ management }: Scene): NewDatabase[] =>
  [...management.passing.values()].flatMap((one) => (one.state === 'deleted' ? [one.database] : []))

async function databasesHold({ data, databases, management }: Scene): Promise<string[]> {
  for (const clients of data.clients) await clients.checkAll()
  for (const [name, password] of management.users) await logIn(databases.shop, name, password)
  const wrong: string[] = []
  for (const [name, password] of management.formerUsers) {
    const answer = await connected(databases.shop, (client) => client.get('anything'), { username: name, password })
      .then(() => 'let in')
      .catch((error: unknown) => String(error))
    if (!/WRONGPASS|NOAUTH/.test(answer)) wrong.push(`the deleted user ${name} was answered ${answer}`)
  }
  return wrong
}

async function managementHolds(scene: Scene, homeport: RunningHomeport): Promise<string[]> {
  const { management, databases } = scene
  const { body } = await homeport.api('GET', '/v2/redis/databases')
  const listed = body as NewDatabase[]
  const wrong: string[] = []
  for (const database of listed) await untilUnchanged(homeport, database)
  for (const passing of management.passing.values()) {
    const found = listed.filter(({ database_name }) => database_name === passing.name)
    wrong.push(...(await passingHolds(passing, found)))
  }
  const known = new Set([...management.passing.keys(), 'shop', 'till', 'vault'])
  for (const { database_name } of listed) if (!known.has(database_name)) wrong.push(`unknown database ${database_name}`)
  if (management.possible.size > 0) await checkVault(databases.vault, management, scene.server.engineKills)
  wrong.push(...(await backupsHold(scene, homeport)))
  return wrong
}

async function passingHolds(passing: Passing, found: readonly NewDatabase[]): Promise<string[]> {
  const { name, state } = passing
  if (found.length > 1) return [`${name} is there ${found.length} times`]
  const [database] = found
  switch (state) {
    case 'creating':
    case 'deleting':
      // The request was not answered: either state is right, but an existing database must work.
      if (database) await connectedAs(database)
      return []
    case 'deleted':
      return database ? [`${name} was deleted and is listed`] : []
    case 'created': {
      if (!database) return [`${name} was created and is not listed`]
      const value = await connected({ ...passing.database, port: database.port }, (client) => client.get('kept'))
      return passing.value === '' || value === passing.value ? [] : [`${name} holds ${value}`]
    }
  }
}

/** Checks that a listed database accepts clients. The list has its password. */
async function connectedAs(database: NewDatabase): Promise<void> {
  await connected(database, (client) => client.ping())
}

/** Every acknowledged backup can be restored and has the data of the database at that time. */
async function backupsHold(scene: Scene, homeport: RunningHomeport): Promise<string[]> {
  const { vault } = scene.databases
  const wrong: string[] = []
  const all = await backupsOf(homeport, vault)
  for (const { name, state } of all) if (state === 'pending') wrong.push(`the backup ${name} is pending forever`)
  for (const [name, value] of scene.management.backups) {
    const backup = all.find((one) => one.name === name)
    if (backup?.state !== 'completed') {
      wrong.push(`the answered backup ${name} is ${backup?.state ?? 'gone'}`)
      continue
    }
    const path = `/v2/redis/restore-backup/${vault.database_id}`
    const { status, body } = await homeport.api('POST', path, { backup_id: backup.backup_id })
    if (status !== 200) wrong.push(`to restore ${name} was answered ${status} ${JSON.stringify(body)}`)
    else if (String(await valuesOf(vault)) !== value) wrong.push(`the restored backup ${name} holds something else`)
  }
  return wrong
}

async function cancelsHold({ runs, server }: Scene, homeport: RunningHomeport): Promise<string[]> {
  const { ledger, destinations } = runs
  const wrong: string[] = []
  for (const { actionIds, runIds } of ledger.actions) {
    const ended = await Promise.all(actionIds.map((actionId) => endOf(homeport, actionId, REST_MS)))
    const cancelled = ended.reduce((sum, { outcomes }) => sum + outcomes.cancelled, 0)
    if (cancelled !== runIds.length) wrong.push(`${actionIds} of ${runIds.length} came to ${JSON.stringify(ended)}`)
    await seal(runIds, destinations, ledger)
  }
  await untilInState(server.place, ledger.sealed, 'RUN_CANCELED')
  return wrong
}

async function untilInState(place: Scene['server']['place'], ids: ReadonlySet<string>, state: string): Promise<void> {
  let left: string[] = []
  const all = async (): Promise<boolean> => {
    const there = await runsInState(place, state)
    left = [...ids].filter((id) => !there.has(id))
    return left.length === 0
  }
  await waitFor(all, { what: `every run to be ${state}`, deadlineMs: REST_MS, everyMs: 200 }).catch((error: Error) => {
    throw new Error(`${error.message}; ${left.length} are not, ${left.slice(0, 3)} among them`)
  })
}

async function runsHold({ runs, server }: Scene): Promise<string[]> {
  const { ledger } = runs
  await untilInState(server.place, ledger.triggered, 'RUN_SUCCESS')
  const isThere = () => ledger.lost().length === 0
  await waitFor(isThere, { what: 'every published message', deadlineMs: REST_MS, everyMs: 100 })
  return ledger.broken.map((runId) => `the cancelled run ${runId} was delivered`)
}

async function richRunsHold({ rich, server }: Scene, homeport: RunningHomeport): Promise<string[]> {
  await untilInState(server.place, new Set(rich.triggered.keys()), 'RUN_SUCCESS')
  const wrong: string[] = []
  for (const runId of rich.triggered.keys()) {
    const verdict = await verdictOf(homeport, rich, runId)
    if (verdict !== undefined) wrong.push(verdict)
  }
  return wrong
}

async function messagesHold({ queue, runs, server }: Scene, homeport: RunningHomeport): Promise<string[]> {
  // Messages whose cancellation was interrupted.
  await homeport.queue('DELETE', '/v2/messages?label=silent')
  await homeport.queue('DELETE', '/v2/workflows/runs', { workflowUrl: `${runs.destinations.url}/long` })
  const { place } = server
  let left = 0
  const isCalm = async (): Promise<boolean> => {
    left = (await unfired(place)) + (await unfinishedSoon(place))
    return left === 0
  }
  await waitFor(isCalm, { what: 'every message to end', deadlineMs: REST_MS, everyMs: 100 }).catch((error: Error) => {
    throw new Error(`${error.message}; ${left} are left`)
  })
  const { breaches } = accountOf(queue.ledger, await storedMessages(place))
  return Object.keys(NO_BREACHES).flatMap((name) =>
    breaches[name as keyof typeof breaches].map((breach) => `${name} ${JSON.stringify(breach)}`),
  )
}

const TOP = new Set([
  'crashes',
  ...['addresses.json', 'backups', 'credentials.json', 'databases', 'homeport.sqlite', 'homeport.sqlite-shm'],
  ...['homeport.sqlite-wal', 'lock', 'lock-journal', 'lock.pid', 'quarantine', 'reserve', 'run', 'store-id', 'tls'],
  ...['store-mark', 'store-mark.new', 'token-key'],
])

const entriesOf = (directory: string): string[] => (existsSync(directory) ? readdirSync(directory) : [])

/** The quarantine's entries, by their notes. The end of a log that a kill has cut short may be there. */
export function quarantined(dataDir: string): { readonly kind: string; readonly reason: string }[] {
  const root = join(dataDir, 'quarantine')
  return entriesOf(root).map((entry) => JSON.parse(readFileSync(join(root, entry, 'note.json'), 'utf8')))
}

/** Every file belongs to an existing record. */
async function filesHold({ server, databases }: Scene, homeport: RunningHomeport): Promise<string[]> {
  const { dataDir } = server.place
  const { body } = await homeport.api('GET', '/v2/redis/databases')
  const listed = new Set((body as NewDatabase[]).map(({ database_id }) => database_id))
  const unknown = (folder: string): string[] =>
    entriesOf(join(dataDir, folder))
      .filter((name) => !listed.has(name))
      .map((name) => `${folder}/${name} belongs to nothing`)
  const completed = (await backupsOf(homeport, databases.vault)).filter(({ state }) => state === 'completed')
  const kept = new Set(completed.map(({ backup_id }) => `${backup_id}.rdb`))
  const files = entriesOf(join(dataDir, 'backups', databases.vault.database_id))
  return [
    ...entriesOf(dataDir)
      .filter((name) => !TOP.has(name))
      .map((name) => `${name} is an unknown file`),
    ...unknown('databases'),
    ...unknown('backups'),
    ...entriesOf(join(dataDir, 'crashes')).map((name) => `the server has crashed: crashes/${name}`),
    ...quarantined(dataDir)
      .filter(({ kind }) => kind !== 'tail')
      .map(({ kind, reason }) => `a ${kind} was quarantined: ${reason}`),
    ...files.filter((name) => !kept.has(name)).map((name) => `backups/…/${name} belongs to no record`),
    ...[...kept].filter((name) => !files.includes(name)).map((name) => `backups/…/${name} is missing`),
  ]
}

/** After the end no process, socket or open port is left. */
async function nothingIsLeft({ server }: Scene, ports: readonly number[]): Promise<string[]> {
  const { dataDir, apiPort, restPort, queuePort } = server.place
  const wrong = processesMarked(dataDir).map(({ command }) => `the process ${command.slice(0, 100)} is left`)
  for (const name of entriesOf(join(dataDir, 'run'))) wrong.push(`the socket run/${name} is left`)
  for (const port of [apiPort, restPort, queuePort, ...ports]) {
    if (!(await isPortFree(port))) wrong.push(`port ${port} is taken`)
  }
  return wrong
}
