import { join } from 'node:path'
import { openSqlite, type SqliteDatabase } from '../../../src/base/index.js'
import { createDatabase } from '../../e2e/support/service.js'
import type { Exchange, Exchanges, Stage } from './stage.js'

function withStore({ homeport }: Stage, work: (db: SqliteDatabase) => void): void {
  const db = openSqlite(join(homeport.place.dataDir, 'homeport.sqlite'), { mustExist: true, busyTimeoutMs: 5_000 })
  try {
    work(db)
  } finally {
    db.close()
  }
}

/** Writes a node into the store of the server, which is alone and looks at no other. */
function addNode(stage: Stage, name: string, state: string): void {
  const columns = 'name, dir, advertise, version, config, state, is_open, beat, seen, started_at, beat_at'
  const values = "?, 'dir', '10.0.0.5:8704', '0.1.0', '{}', ?, 1, 1, 0, 0, 0"
  const range = 'INSERT INTO node_generations SELECT incarnation, 3, 3, 4 FROM nodes WHERE name = ?'
  withStore(stage, (db) => {
    db.prepare(`INSERT INTO nodes (${columns}) VALUES (${values})`).run(name, state)
    db.prepare(range).run(name)
  })
}

/** A database that another node is the home of, by its id. */
async function databaseElsewhere(stage: Stage): Promise<string> {
  const { database_id } = await createDatabase(stage.service)
  withStore(stage, (db) =>
    db.prepare("UPDATE databases SET home = 'contract-e' WHERE database_id = ?").run(database_id),
  )
  return database_id
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
  moveDatabaseToNode: async (stage) => {
    addNode(stage, 'contract-d', 'live')
    const database_id = await databaseElsewhere(stage)
    return stage.homeport.api('POST', '/v2/nodes/contract-d/databases', { database_id })
  },
  setDatabaseStandby: async (stage) => {
    addNode(stage, 'contract-f', 'live')
    return stage.homeport.api('PUT', `/v2/nodes/contract-f/standbys/${await databaseElsewhere(stage)}`)
  },
  placeDatabaseStandby: async (stage) =>
    stage.homeport.api('PUT', `/v2/node-standbys/${await databaseElsewhere(stage)}`, { copies: 2, mode: 'replicated' }),
  placeDatabaseStandbys: ({ homeport }) => homeport.api('PUT', '/v2/node-standbys'),
  endDatabaseStandby: async ({ homeport, service }) => {
    const { database_id } = await createDatabase(service)
    return homeport.api('DELETE', `/v2/node-standbys/${database_id}`)
  },
  removeDatabaseStandby: async ({ homeport, service }) => {
    const { database_id } = await createDatabase(service)
    return homeport.api('DELETE', `/v2/nodes/contract-f/standbys/${database_id}`)
  },
  listDatabaseStandbys: ({ homeport }) => homeport.api('GET', '/v2/node-standbys'),
  listDatabaseMoves: ({ homeport }) => homeport.api('GET', '/v2/node-moves'),
  removeNode: about('DELETE', 'contract-c', 'dead'),
}
