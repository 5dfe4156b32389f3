import type pg from 'pg'
import { type Connector, end, type ServerFacts, type Session } from './connector.js'

/** Later statements to compare: one of them may get the server process of the first statement by chance. */
const ROUNDS = 3

/** The server processes that two connections through a pooler used. */
export interface PoolerTrace {
  /** The server process of the first statement, and of later ones of the same connection. */
  readonly first: Pick<ServerFacts, 'backend' | 'life'>
  readonly later: readonly number[]
  /** The server process of a second connection, while the first one is open. */
  readonly other: Pick<ServerFacts, 'backend' | 'life'>
}

/** Whether a pooler lends server processes for one transaction at a time, so that locks and prepared statements get lost. */
export const isInTransactionMode = ({ first, later, other }: PoolerTrace): boolean =>
  later.some((backend) => backend !== first.backend) || (other.backend === first.backend && other.life === first.life)

/** Tests the pooler through which a session was opened; see `isInTransactionMode`. */
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
