import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { change, type Transaction } from '../../store/statement.js'

const forgetAll = query<object>(({ db }) => db.deleteFrom('cancelled_deliveries'))

/** Deletes what cancels have kept for an undo, as if an older version, which kept nothing, had made them. */
export const deleteUndoData = write('test.forgetKept', function* (_: object): Transaction<void> {
  yield* change(forgetAll, {})
})
