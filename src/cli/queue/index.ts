/** `homeport queue`: the queue from a terminal, by asking a server. */
import { group } from '../remote/group.js'
import { dlqCommand } from './dlq.js'
import { flowCommand } from './flow.js'
import { groupsCommand } from './groups.js'
import { signingKeysCommand } from './keys.js'
import { logsCommand, messagesCommand } from './messages.js'
import { batchCommand, enqueueCommand, publishCommand } from './publish.js'
import { queuesCommand } from './queues.js'
import { schedulesCommand } from './schedules.js'
import { verifyCommand } from './verify.js'

/** `homeport queue` with its commands. */
export const queueCommand = group('queue', 'publish messages and see what becomes of them', [
  publishCommand,
  enqueueCommand,
  batchCommand,
  messagesCommand,
  logsCommand,
  dlqCommand,
  queuesCommand,
  schedulesCommand,
  groupsCommand,
  flowCommand,
  signingKeysCommand,
  verifyCommand,
])
