import type { IncomingMessage, ServerResponse } from 'node:http'
import { onceOver } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { DEFAULT_MAX_CLIENTS } from '../deps.js'
import type { DatabaseGuard } from '../limits/database-guard.js'
import type { PreparedCommand } from './prepare.js'
import { isPrepared, type Slot } from './slots.js'

/** Whose commands they are. */
interface Waiting {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/**
 * Resolves once the database is not paused for any of these commands: at once, as a rule. Never where the client goes
 * before, or has been answered; then nothing is carried out.
 * @throws HomeportError `too_many_clients` where as many commands are held as the database may have clients
 */
export async function whenResumed(guard: DatabaseGuard, slots: readonly Slot[], client: Waiting): Promise<void> {
  const { pause, database } = guard
  while (pause.mode !== undefined && (await isAnyHeld(guard, slots.filter(isPrepared)))) {
    if (pause.heldCount >= (database.maxClients ?? DEFAULT_MAX_CLIENTS)) throw new HomeportError('too_many_clients', {})
    await new Promise<void>((resolve) => {
      if (client.request.socket.destroyed) return
      const cancel = pause.hold(resolve)
      onceOver(client.request, client.response, cancel)
    })
  }
}

async function isAnyHeld({ pause }: DatabaseGuard, commands: readonly PreparedCommand[]): Promise<boolean> {
  for (const { command, args } of commands) {
    const words = (): { args: typeof args; count: number } => ({ args, count: args.length })
    let held = pause.holds(command, words)
    while (typeof held !== 'boolean') {
      await held
      held = pause.holds(command, words)
    }
    if (held) return true
  }
  return false
}
