import { auditRow } from '../accounts/index.js'
import type { Store } from '../store/index.js'
import * as homes from './transactions/homes.js'
import * as lostHomes from './transactions/lost-homes.js'
import { systemCaller } from './usage/index.js'

/**
 * Forgets a node that is gone for good although it is the home of databases. Each owner gets an entry in the audit log.
 * @param atMs now, Unix milliseconds.
 * @throws HomeportError `node_not_found`, `node_running`, `node_has_standbys`.
 */
export async function removeNodeWithDatabases(store: Pick<Store, 'run'>, name: string, atMs: number): Promise<void> {
  const rows = await store.run(homes.servedBy, { home: name })
  const audits = rows.map(({ account_id, database_id: entity }) =>
    auditRow(systemCaller(account_id), { action: 'Lose Database Node', entity, details: { node: name } }, atMs),
  )
  await store.run(lostHomes.remove, { name, audits })
}
