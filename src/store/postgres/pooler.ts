import type pg from 'pg'
import { type Connector, end, type ServerFacts, type Session } from './connector.js'

/** Other clients of the pooler may hold the server process of the first statement at the moment of a later one. */
const ROUNDS = 3

/** What two connections through a pooler have shown. */
export interface PoolerTrace {
  /** The server process of the first statement, and of later ones of the same connection. */
  readonly first: Pick<ServerFacts, 'backend' | 'life'>
  readonly later: readonly number[]
  /** The same of a second connection, while the first one is open. */
  readonly other: Pick<ServerFacts, 'backend' | 'life'>
}

/** Whether a pooler lends server processes for one transaction at a time, so that locks and prepared statements get lost. */
export const isInTransactionMode = ({ first, later, other }: PoolerTrace): boolean =>
  later.some((backend) => backend !== first.backend) || (other.backend === first.backend && other.life === first.life)

/** Asks a pooler that a session was opened through. */
export async function lendsByTransaction(connector: Connector, { client, server }: Session): Promise<boolean> {
  const other = await connector.connect()
  try {
    const later: number[] = []
    for (let round = 0; round < ROUNDS; round++) later.push(await backendOf(client))
    return isInTransactionMode({ first: server, later, other: other.server })
  } finally {
    await end(other.client)
  }
}

async function backendOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ backend: number }>('SELECT pg_backend_pid() AS backend')
  return rows[0]?.backend ?? 0
}
