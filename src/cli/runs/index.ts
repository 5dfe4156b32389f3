/** `homeport runs`: triggers and manages workflow runs of a server. */
import { group } from '../remote/remote.js'
import { cancelCommand } from './cancel.js'
import { eventsCommand, notifyCommand, waitersCommand } from './events.js'
import { explainCommand } from './explain.js'
import { failedCommand, restartCommand, resumeCommand, retryCallbacksCommand } from './failed.js'
import { listCommand } from './list.js'
import { pauseCommand, unpauseCommand } from './pause.js'
import { showCommand } from './show.js'
import { triggerCommand } from './trigger.js'
import { undoRunsCommand } from './undo.js'
import { watchCommand } from './watch.js'

/** `homeport runs` with its commands. */
export const runsCommand = group('runs', 'trigger, list, explain, cancel and resume workflow runs', [
  triggerCommand,
  listCommand,
  showCommand,
  explainCommand,
  watchCommand,
  cancelCommand,
  undoRunsCommand,
  pauseCommand,
  unpauseCommand,
  failedCommand,
  resumeCommand,
  restartCommand,
  retryCallbacksCommand,
  waitersCommand,
  eventsCommand,
  notifyCommand,
])
