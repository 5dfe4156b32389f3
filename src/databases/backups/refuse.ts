import { unreachable } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type * as backups from '../transactions/backups.js'

/** Throws what a refused change is answered with. */
export function refuse(refusal: backups.Refusal, databaseId: string): never {
  switch (refusal.kind) {
    case 'not_found':
      throw new HomeportError('database_not_found', { databaseId })
    case 'busy':
      throw new HomeportError('database_busy', { modifyingState: refusal.modifyingState })
    case 'plan':
      throw new HomeportError('daily_backup_not_allowed', { plan: refusal.plan })
    default:
      return unreachable(refusal)
  }
}
