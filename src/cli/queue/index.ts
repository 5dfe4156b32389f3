/** `homeport queue`: publishes messages and manages the queue of a server. */
import { group } from '../remote/remote.js'
import { dlqCommand } from './dlq.js'
import { flowCommand } from './flow.js'
import { groupsCommand } from './groups.js'
import { signingKeysCommand } from './keys.js'
import { logsCommand, messagesCommand } from './messages.js'
import { batchCommand, enqueueCommand, publishCommand } from './publish.js'
import { queuesCommand } from './queues.js'
import { schedulesCommand } from './schedules.js'
import { tokensCommand } from './tokens.js'
import { verifyCommand } from './verify.js'
import { watchCommand } from './watch.js'

/** `homeport queue` with its commands. */
export const queueCommand = group('queue', 'publish messages, and manage queues, schedules and dead letters', [
  publishCommand,
  enqueueCommand,
  batchCommand,
  messagesCommand,
  logsCommand,
  watchCommand,
  dlqCommand,
  queuesCommand,
  schedulesCommand,
  groupsCommand,
  flowCommand,
  signingKeysCommand,
  tokensCommand,
  verifyCommand,
])
