import { join } from 'node:path'
import { openSqlite } from '../../../src/base/index.js'
import type { Exchange, Exchanges, Stage } from './stage.js'

/** Writes a node into the store of the server, which is alone and looks at no other. */
function addNode({ homeport }: Stage, name: string, state: string): void {
  const db = openSqlite(join(homeport.place.dataDir, 'homeport.sqlite'), { mustExist: true, busyTimeoutMs: 5_000 })
  const columns = 'name, dir, advertise, version, config, state, is_open, beat, seen, started_at, beat_at'
  try {
    db.prepare(
      `INSERT INTO nodes (${columns}) VALUES (?, 'dir', '10.0.0.5:8704', '0.1.0', '{}', ?, 1, 1, 0, 0, 0)`,
    ).run(name, state)
  } finally {
    db.close()
  }
}

const about =
  (method: string, name: string, state: string, action = ''): Exchange =>
  async (stage) => {
    addNode(stage, name, state)
    return stage.homeport.api(method, `/v2/nodes/${name}${action}`)
  }

/** The nodes of a cluster. */
export const nodeExchanges: Exchanges = {
  listNodes: ({ homeport }) => homeport.api('GET', '/v2/nodes'),
  drainNode: about('POST', 'contract-a', 'live', '/drain'),
  resumeNode: about('POST', 'contract-b', 'draining', '/resume'),
  moveDatabaseToNode: ({ homeport }) => homeport.api('POST', '/v2/nodes/contract-a/databases', { database_id: 'none' }),
  listDatabaseMoves: ({ homeport }) => homeport.api('GET', '/v2/node-moves'),
  removeNode: about('DELETE', 'contract-c', 'dead'),
}
