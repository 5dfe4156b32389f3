import type pg from 'pg'
import { codeOf, systemClock } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { StoreSharing, StoreWatch } from '../types.js'
import { targetOf } from './connection.js'
import { Connections, MAX_CONNECTIONS, UPKEEP_CONNECTIONS } from './connections.js'
import { Connector, end, MAX_CLOCK_DIFFERENCE_MS, type ServerFacts, type Session } from './connector.js'
import { isLoss, reasonOf } from './errors.js'
import { countPending, migrate, migrateBeside } from './migrate.js'
import { NodeLock } from './node-lock.js'
import { lendsByTransaction } from './pooler.js'
import { skipNumbers } from './skip-numbers.js'

const TRANSACTION_MODE = 'a pooler in transaction mode is in front of PostgreSQL; use session mode or connect directly'

/** What to do about errors whose message from PostgreSQL does not say it, by code. */
const HINTS: Readonly<Record<string, string>> = {
  '42501': ': make the user the owner of the database, or grant it CREATE on the schema',
  '53300': ': raise max_connections or the limit of the role, `homeport doctor` says how many are needed',
}

/** The connections of a started store, and the durability of its commits. */
export interface Started {
  readonly connections: Connections
  /** Durability of a commit of this server, in words for the operator. */
  readonly durability: string
}

/**
 * Takes the store for this node or for its cluster, migrates it, and opens the connections.
 * @throws HomeportError `store_in_use`, `nodes_too_old`, `store_newer`, `store_clock_differs` or `store_not_opened`.
 */
export async function start(url: string, watch: StoreWatch, sharing: StoreSharing): Promise<Started> {
  const target = targetOf(url)
  const connector = new Connector(target)
  const lock = new NodeLock(watch.onFailure)
  const connections = new Connections({
    clock: systemClock,
    connect: () => guarded(connector, lock),
    onClock: (aheadMs) => watch.onClock?.(aheadMs, Math.abs(aheadMs) > MAX_CLOCK_DIFFERENCE_MS),
    most: sharing === 'cluster upkeep' ? UPKEEP_CONNECTIONS : MAX_CONNECTIONS,
  })
  try {
    const durability = await prepare(connector, lock, connections, sharing)
    return { connections, durability }
  } catch (error) {
    await connections.close()
    if (error instanceof HomeportError) throw error
    const reason = reasonOf(error) + (HINTS[codeOf(error)] ?? '')
    throw new HomeportError('store_not_opened', { where: target.place, reason })
  }
}

async function guarded(connector: Connector, lock: NodeLock): Promise<Session> {
  try {
    const session = await connector.connect()
    await makeSafe(session.client, lock).catch(async (error) => {
      await end(session.client)
      throw error
    })
    return session
  } catch (error) {
    throw error instanceof HomeportError || isLoss(error) ? error : notConnected(error)
  }
}

async function makeSafe(client: pg.Client, lock: NodeLock): Promise<void> {
  await lock.guard(client)
  await skipNumbers(client)
}

/** Makes a failed connection a lost one, which is transient: even a changed password may be corrected. */
function notConnected(error: unknown): Error {
  return Object.assign(new Error(reasonOf(error)), { code: '08001' })
}

/** Takes the lock and migrates on a connection without time limits, which ends once another connection has the lock. */
async function prepare(
  connector: Connector,
  lock: NodeLock,
  connections: Connections,
  sharing: StoreSharing,
): Promise<string> {
  const session = await connector.connect('long')
  const { client, server } = session
  try {
    refuseOtherTime(server)
    if (server.isPooled && (await lendsByTransaction(connector, session))) throw new Error(TRANSACTION_MODE)
    if (sharing === 'alone') await lock.take(client, () => migrate(client))
    else
      await lock.join(client, {
        pending: () => countPending(client),
        migrate: () => migrate(client),
        migrateBeside: () => migrateBeside(client),
      })
    await connections.open()
    return await durabilityOf(client)
  } finally {
    await end(client)
  }
}

function refuseOtherTime({ clockAheadMs }: ServerFacts): void {
  if (Math.abs(clockAheadMs) <= MAX_CLOCK_DIFFERENCE_MS) return
  throw new HomeportError('store_clock_differs', { aheadMs: clockAheadMs })
}

/** Durability of a commit of this server, in words for the operator. */
async function durabilityOf(client: pg.Client): Promise<string> {
  const settings: string[] = []
  for (const name of ['fsync', 'synchronous_commit', 'full_page_writes']) {
    const answer = await client.query<{ value: string }>('SELECT current_setting($1) AS value', [name])
    settings.push(`${name}=${answer.rows[0]?.value}`)
  }
  return `PostgreSQL's own: ${settings.join(', ')} (none may be off)`
}
