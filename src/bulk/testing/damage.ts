import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { change, type Transaction } from '../../store/statement.js'

/** For `describeOnEveryStore`: the threads of the store must load the operation of this file. */
export const DAMAGE_MODULE = import.meta.url

const changePayload = query<{ messageId: string; body: Uint8Array }>(({ db, p }) =>
  db.updateTable('messages').set({ body: p.body }).where('message_id', '=', p.messageId),
)
/** Changes the body of a message but not its checksum, as a bit that flips on the disk does. */
export const damageMessage = write(
  'test.damageMessage',
  function* (args: { messageId: string; body: Uint8Array }): Transaction<void> {
    yield* change(changePayload, args)
  },
)
