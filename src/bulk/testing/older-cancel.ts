import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { change, type Transaction } from '../../store/statement.js'

/** For tests: forgets what cancels have kept, as if a version that kept nothing had made them. */

const forgetAll = query<object>(({ db }) => db.deleteFrom('cancelled_deliveries'))

export const forgetKept = write('test.forgetKept', function* (_: object): Transaction<void> {
  yield* change(forgetAll, {})
})
