import { query } from '../../store/query.js'
import { first, type Transaction } from '../../store/statement.js'

const lockRow = query<object, { installation_id: string }>(({ db, d }) =>
  d.forUpdate(db.selectFrom('installation').select('installation_id')),
)

/**
 * Locks the row of the installation until the commit. So transactions that begin with it run one after the other, also
 * on nodes that start at the same time.
 */
export function* lockInstallation(): Transaction<void> {
  yield* first(lockRow, {})
}
